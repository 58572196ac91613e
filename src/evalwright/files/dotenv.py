"""`.env` files: variables of a suite. Those of the process take precedence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from evalwright.errors import InputError, Problem
from evalwright.files.paths import unreadable

__all__ = ["is_address", "nearest_dotenv", "read_dotenv", "read_env_files", "unread_lines"]

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*\Z")
_QUOTED = re.compile(r"""(["'])(.*?)\1\s*(?:#.*)?""")
_ADDRESS = re.compile(r"(.+?)_(?:API_)?(?:BASE_URL|BASE_URI|BASE|ENDPOINT|ENDPOINT_URL|URL|URI|HOST|SERVER)")
"""A variable with the address of a service, and the prefix of that service's variables."""
_KEY = re.compile(r".*(KEY|TOKEN|SECRET|PASSWORD|PASSWD|AUTH|CREDENTIALS?)")
_SAME = {"GEMINI": ("GOOGLE",), "GOOGLE_GEMINI": ("GEMINI", "GOOGLE"), "AZURE_OPENAI": ("AZURE",)}
"""Services whose keys are in variables with other names, too."""


def read_dotenv(folders: Sequence[Path], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of the `.env` files in folders; the first folder takes precedence. Raises InputError as
    `read_env_files` does."""
    return read_env_files([folder / ".env" for folder in folders], environ)


def read_env_files(files: Sequence[Path], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of the files that exist; the first one takes precedence. Raises InputError if one is unreadable.

    With `environ`, the process's environment, also if one of its keys would go to an address that only a file has: such
    a file comes with a suite, and the user who runs it need not have written it.
    """
    env_files = _read(files)
    if environ is not None and (problems := list(_diverted_keys(env_files, environ, files))):
        raise InputError(problems)
    return env_files


def is_address(name: str) -> bool:
    """Whether a variable or configuration key of this name contains the address of a service."""
    return _ADDRESS.fullmatch(f"X_{name.upper()}") is not None


def _diverted_keys(
    variables: Mapping[str, str], environ: Mapping[str, str], files: Sequence[Path]
) -> Iterator[Problem]:
    keys = [name for name, value in environ.items() if value and variables.get(name) != value and _KEY.fullmatch(name)]
    for name, address in variables.items():
        match = _ADDRESS.fullmatch(name)
        if not match or not address or environ.get(name):
            continue
        of_service = tuple(f"{prefix}_" for prefix in (match[1], *_SAME.get(match[1], ())))
        diverted = sorted(key for key in keys if key.startswith(of_service))
        if diverted:
            file = next(file for file in files if name in _read([file]))
            message = (
                f"{', '.join(diverted)} of your environment would be sent to the address that only this file sets: "
                f"set {name} in the environment, too, or unset {', '.join(diverted)} there and set both here"
            )
            yield Problem(str(file), message, key=name)


def _read(files: Sequence[Path]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for path in reversed(files):
        if path.is_file():
            for _, line in _lines(path):
                if match := _LINE.match(line):
                    variables[match[1]] = _unquoted(match[2])
    return variables


def unread_lines(files: Iterable[Path]) -> list[Problem]:
    """The first line of each file that sets no variable, and how many more there are; their texts may be secret."""
    problems = []
    for path in dict.fromkeys(files):
        lines = [number for number, line in (_lines(path) if path.is_file() else ()) if not _LINE.match(line)]
        if lines:
            message = "nothing reads this line: expected NAME=VALUE, on one line"
            problems.append(Problem(str(path), message, lines[0], more=len(lines) - 1))
    return problems


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines with their numbers, without comments and blank ones."""
    try:
        text = path.read_text("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(Problem(str(path), unreadable(path, error))) from error
    lines = enumerate(text.replace("\0", "").splitlines(), start=1)  # an environment cannot contain NUL
    return [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]


def nearest_dotenv(start: Path) -> list[Path]:
    """The folder of the `.env` nearest to a folder, in it or above it; empty if there is none."""
    return [folder for folder in (start, *start.parents) if (folder / ".env").is_file()][:1]


def _unquoted(value: str) -> str:
    if quoted := _QUOTED.fullmatch(value):
        return quoted[2]
    return value.partition(" #")[0].rstrip()
