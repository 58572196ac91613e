"""An empty home for one call of an agent: only the login, none of the user's own settings, skills and memories."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.targets.coding_agent.programs import Program

__all__ = ["clean_home", "homes_of", "login_secrets"]

_ELSEWHERE = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
"""Variables that lead to the user's own files even if HOME does not."""
_OF_A_SESSION = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
"""Set within a session of Claude Code, which refuses to start another one inside it."""
_SHORTEST = 12
"""Minimum length of a text in a login file that may be a token."""


def clean_home(program: Program, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for an agent whose home is the new folder `folder`, with the user's login. Raises OSError."""
    env = {name: value for name, value in environ.items() if name not in _OF_A_SESSION}
    homes = homes_of(program, str(folder))
    Path(homes[program.home[0]]).mkdir(mode=0o700, parents=True)
    for name, source in _logins(program, environ):
        target = folder / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o400)
        if program.signed_in is not None:
            env |= program.signed_in(environ)
    if "HOME" in program.home:
        env = {name: value for name, value in env.items() if name not in _ELSEWHERE}
    return env | homes


def homes_of(program: Program, folder: str) -> dict[str, str]:
    """The variables of a clean home in `folder`: versions that do not know the agent's own find its files by HOME."""
    return dict.fromkeys(program.home, folder) | {program.home[0]: str(Path(folder, _below(program)))}


def login_secrets(program: Program, environ: Mapping[str, str]) -> dict[str, str]:
    """Texts in the login files that may be tokens, each by a name."""
    secrets: dict[str, str] = {}
    for _, source in _logins(program, environ):
        try:
            text = source.read_text(errors="replace")
        except OSError:
            continue
        try:
            values = list(_texts(json.loads(text)))
        except (ValueError, RecursionError):
            values = [word for line in text.splitlines() for word in line.split()]
        for value in values:
            if len(value) >= _SHORTEST and " " not in value and "/" not in value:
                secrets[f"{source.name}_{len(secrets)}"] = value
    return secrets


def _below(program: Program) -> str:
    """Where the agent's files are in a clean home."""
    return program.default_home if "HOME" in program.home else ""


def _logins(program: Program, environ: Mapping[str, str]) -> Iterator[tuple[Path, Path]]:
    """The login files that there are, each after its place in a clean home."""
    user = Path(environ.get("HOME") or Path.home())
    named = environ.get(program.home[0]) if program.home else None
    own = Path(named) if named else user / program.default_home
    files = [(Path(_below(program), name), own / name) for name in program.logins]
    files += [(Path(name), user / name) for name in program.logins_of_user]
    yield from ((place, file) for place, file in files if file.is_file())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
