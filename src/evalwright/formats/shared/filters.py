"""Choosing cases by their contents: dotted paths into them, each with the value or values that it must lead to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from evalwright.errors import did_you_mean
from evalwright.model.case import EvalCase, ExpectedBehavior
from evalwright.model.snapshot import Case

__all__ = ["absent_path", "matches_filter", "why_none_fits"]

_NOTHING = object()


def matches_filter(case: EvalCase | Case, wanted: Mapping[str, Any]) -> bool:
    """Whether every path leads to its value, or to one of its values; these are plain JSON."""
    return all(_is(_at(case, path), value) for path, value in wanted.items())


def _is(actual: Any, wanted: Any) -> bool:
    if actual is _NOTHING:
        return False
    return actual in wanted if isinstance(wanted, list) else bool(actual == wanted)


def why_none_fits(cases: Sequence[EvalCase | Case], wanted: Mapping[str, Any]) -> str:
    """The filter, and its first path that no case has, with the nearest one that some case has."""
    rule = ", ".join(f"{path}: {value!r}" for path, value in wanted.items())
    for path in wanted:
        if absent := absent_path(cases, path):
            return f"no case matches the filter {{{rule}}}: {absent}"
        text = next(
            (given_value for given_value in _given_values(wanted[path]) if not isinstance(given_value, str)), None
        )
        if text is not None and any(_at(case, path) == str(text) for case in cases):
            return (
                f"no case matches the filter {{{rule}}}: {path} is text there, {str(text)!r}; `types` converts a column"
            )
    return f"no case matches the filter {{{rule}}}"


def absent_path(cases: Sequence[EvalCase | Case], path: str) -> str:
    """That no case has a path, with the nearest one that some case has; empty if some case has it."""
    if any(_at(case, path) is not _NOTHING for case in cases):
        return ""
    known = dict.fromkeys(other for case in cases for other in _paths(case))
    return f"no case has {path}{did_you_mean(path, known)}"


def _given_values(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def _at(value: Any, path: str) -> Any:
    """The value at a path; `_NOTHING` if there is none."""
    for step in path.split("."):
        value = _inside(value).get(step, _NOTHING)
    return value


def _inside(value: Any) -> Mapping[str, Any]:
    if isinstance(value, EvalCase | ExpectedBehavior):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    return value if isinstance(value, dict) else {}


def _paths(value: Any, before: str = "") -> Iterator[str]:
    for key, inner in _inside(value).items():
        yield f"{before}{key}"
        yield from _paths(inner, f"{before}{key}.")
