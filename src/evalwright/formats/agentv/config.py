"""`.agentv/config.yaml`: the settings of a repository for all of its AgentEvals files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files import yaml
from evalwright.files.key_paths import as_written

__all__ = ["CONFIG_KEYS", "Config", "config_file", "read_project_config"]

CONFIG_KEYS = ("$schema", "guideline_patterns", "eval_patterns", "defaults")
_DEFAULTS = ("timeout_seconds", "target")
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\{[^{}]*\}|.", re.DOTALL)
_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class Config(NamedTuple):
    """The settings; without a file, none is set."""

    guidelines: re.Pattern[str] | None = None
    """Paths, relative to the repository, of files that contain guidelines."""
    evals: re.Pattern[str] | None = None
    """Paths, relative to the repository, of the files that count as evals when a folder is searched."""
    target: str | None = None
    timeout_seconds: float | None = None
    warnings: tuple[Problem, ...] = ()


def config_file(roots: Iterable[Path]) -> Path | None:
    """The nearest configuration file."""
    return next((path for root in roots if (path := root / ".agentv" / "config.yaml").is_file()), None)


def read_project_config(path: Path) -> Config:
    """Raises InputError with every mistake of the file."""
    document = yaml.load(path, "yaml12")
    problems: list[Problem] = []

    def wrong(place: tuple[str, ...], expected: str, value: Any) -> None:
        key = ".".join(place)
        problems.append(
            Problem(str(path), f"{key}: expected {expected}, found {as_written(value)}", document.line(place), key)
        )

    values = {} if document.value is None else document.value
    if not isinstance(values, dict):
        raise InputError(Problem(str(path), f"expected a mapping, found {as_written(values)}"))
    defaults = {} if values.get("defaults") is None else values["defaults"]
    if not isinstance(defaults, dict):
        wrong(("defaults",), "a mapping", defaults)
        defaults = {}
    for key in ("guideline_patterns", "eval_patterns"):
        if values.get(key) is not None and not _are_texts(values[key]):
            wrong((key,), "a list of globs", values[key])
    target, limit = defaults.get("target"), defaults.get("timeout_seconds")
    if target is not None and not isinstance(target, str):
        wrong(("defaults", "target"), "the name of a target", target)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float)) or limit <= 0):
        wrong(("defaults", "timeout_seconds"), "a number above 0", limit)
    if problems:
        raise InputError(problems)
    unknown: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
        ((key,), CONFIG_KEYS) for key in values if key not in CONFIG_KEYS
    ]
    unknown += [(("defaults", key), _DEFAULTS) for key in defaults if key not in _DEFAULTS]
    warnings = tuple(
        Problem(
            str(path),
            f"nothing reads the key {place[-1]!r}{did_you_mean(str(place[-1]), known)}",
            document.line(place),
            ".".join(map(str, place)),
            unread=True,
        )
        for place, known in unknown
    )
    guidelines, evals = (_any_of(values.get(key) or []) for key in ("guideline_patterns", "eval_patterns"))
    return Config(guidelines, evals, target, limit, warnings)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _any_of(globs: list[str]) -> re.Pattern[str] | None:
    """`**` crosses folders, `*` and `?` stay within a name, `{a,b}` are alternatives."""
    return re.compile("|".join(f"(?:{_translated_glob(glob)})" for glob in globs)) if globs else None


def _translated_glob(glob: str) -> str:
    def token(match: re.Match[str]) -> str:
        word = match[0]
        if word[0] == "{" and len(word) > 1:
            return f"(?:{'|'.join(map(_translated_glob, word[1:-1].split(',')))})"
        return _WILD.get(word) or re.escape(word)

    return _TOKEN.sub(token, glob)
