"""The places of a case's parts in the records of a file: a path for each part's name.

A path is plain keys joined by dots, with list positions in brackets (`info.task.actions`, `runs[0].messages`), or any
JSONPath, which begins with `$`. A JSONPath with several matches gives the list of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evalwright.errors import EvaluatorError, InputError, Problem, did_you_mean

__all__ = ["DEFAULTS", "MISSING", "PARTS", "RecordMapping", "compile_mapping", "pairs_to_mapping", "read_mapping"]

PARTS = ("id", "trial", "messages", "reply", "actions", "reward", "started_at", "finished_at", "records")
"""The parts that can be mapped, besides `metadata.NAME` (of the case) and `extra.NAME` (of the trace)."""

DEFAULTS: dict[str, tuple[str, ...]] = {
    "id": ("id", "case_id", "task_id"),
    "trial": ("trial",),
    "messages": ("messages", "traj", "conversation", "conversations"),
    "reward": ("reward", "score"),
    "started_at": ("started_at",),
    "finished_at": ("finished_at",),
}
"""Keys that are tried in this order for a part that is not mapped."""

MISSING: Final = object()
"""The value of a path that finds nothing in a record."""

_FREE = ("metadata.", "extra.")
_KEY = r"[^.\[\]\s$*?@()'\"|&]+(?:\[\d+\])*"
_PLAIN = re.compile(rf"(?:\$\.)?{_KEY}(?:\.{_KEY})*")
_HEAD = re.compile(r"(?!\$(?!\.\w))(?:\$\.)?([^.\[\]\s$*?@()'\"|&]+)")
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")

_Find = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class RecordMapping:
    """Compiled paths by the name of the part."""

    paths: dict[str, tuple[tuple[str, _Find], ...]]
    stated: frozenset[str]
    """Parts that the user mapped; the others are looked up under their default keys."""

    heads: frozenset[str | None]
    """The keys of a record at which a path begins; None among them for one that may begin at any."""

    def find(self, record: Any, part: str) -> tuple[Any, str]:
        """The value of a part (MISSING if there is none) and the path at which it was found or expected."""
        ways = self.paths.get(part, ())
        for path, find in ways:
            value = find(record)
            if value is not MISSING:
                return value, path
        return MISSING, " or ".join(path for path, _ in ways)

    def named(self, prefix: str) -> list[str]:
        """The NAMEs that are mapped as `prefix.NAME`."""
        return [part[len(prefix) + 1 :] for part in self.paths if part.startswith(f"{prefix}.")]


def compile_mapping(mapping: Mapping[str, str] | None) -> RecordMapping:
    """The user's paths over the defaults, ready to use. Raises InputError with every mistake."""
    stated = dict(mapping or {})
    problems: list[Problem] = []
    paths: dict[str, tuple[tuple[str, _Find], ...]] = {
        part: tuple((path, _compiled_path(path)) for path in defaults) for part, defaults in DEFAULTS.items()
    }
    for part, path in stated.items():
        try:
            paths[part] = ((path, _finder_of(part, path)),)
        except ValueError as error:
            problems.append(Problem("mapping", str(error), key=part))
    if problems:
        raise InputError(problems)
    heads = frozenset(_head(path) for ways in paths.values() for path, _ in ways)
    return RecordMapping(paths, frozenset(stated), heads)


def pairs_to_mapping(pairs: Iterable[str]) -> dict[str, str]:
    """`NAME=PATH` words of a command line as a mapping. Raises InputError with each word of another form."""
    mapping: dict[str, str] = {}
    problems = []
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (equals and name.strip() and path.strip()):
            problems.append(Problem("--map", f"expected NAME=PATH, found {pair!r}"))
        mapping[name.strip()] = path.strip()
    if problems:
        raise InputError(problems)
    return mapping


def read_mapping(file: Path) -> dict[str, str]:
    """A mapping kept as a YAML file of `name: path` lines. Raises InputError with every mistake."""
    from evalwright.files.yaml import load

    document = load(file)
    if not isinstance(document.value, dict):
        raise InputError(Problem(str(file), "expected a mapping of names to paths"))
    problems = []
    for name, path in document.value.items():
        try:
            if not isinstance(name, str) or not isinstance(path, str):
                raise ValueError(f"expected a path as a string, found {path!r}")
            _finder_of(name, path)
        except ValueError as error:
            problems.append(Problem(str(file), str(error), document.line((name,)), str(name)))
    if problems:
        raise InputError(problems)
    return dict(document.value)


def _finder_of(part: str, path: str) -> _Find:
    """What finds a part at the path that the user states. Raises ValueError."""
    _check_name(part)
    return _compiled_path(path)


def _check_name(part: str) -> None:
    if part in PARTS or any(part.startswith(prefix) and len(part) > len(prefix) for prefix in _FREE):
        return
    known = [*PARTS, "metadata.NAME", "extra.NAME"]
    raise ValueError(f"unknown part {part!r}{did_you_mean(part, known)} (known: {', '.join(known)})")


def _compiled_path(path: str) -> _Find:
    """A function from a record to the value at `path`. Raises ValueError for an invalid path."""
    if _PLAIN.fullmatch(path):
        steps: list[str | int] = [
            int(position) if position else key for position, key in _STEP.findall(path.removeprefix("$."))
        ]
        return lambda record: _walk(record, steps)
    if not path.startswith("$"):
        raise ValueError(f"{path!r} is not a path: expected keys joined by dots, or a JSONPath that begins with $")
    return _json_path(path)


def _head(path: str) -> str | None:
    begin = _HEAD.match(path)
    return None if begin is None else begin[1]


def _walk(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return MISSING
            value = value[step]
        else:
            if not isinstance(value, dict) or step not in value:
                return MISSING
            value = value[step]
    return value


def _json_path(path: str) -> _Find:
    from evalwright.sandbox.jsonpaths import parsed

    try:
        expression = parsed(path)
    except Exception as error:
        raise ValueError(f"{path!r} is not a JSONPath: {error}") from None

    def find(record: Any) -> Any:
        try:
            values = [match.value for match in expression.find(record)]
        except EvaluatorError as error:
            raise InputError(f"{path!r} cannot be evaluated: {error}") from None
        except Exception:  # a filter that does not fit the record's types, for instance
            return MISSING
        return MISSING if not values else values[0] if len(values) == 1 else values

    return find
