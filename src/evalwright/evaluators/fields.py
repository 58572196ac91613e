"""Selects a value of a trace by path: JSONPath over the trace as it is stored, first match only.

Plain dotted paths with indexes, the common case, are read from the record itself; everything else goes through
jsonpath-ng, parsed once for each path. `output.final_answer` and `$.output.final_answer` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from operator import attrgetter
from typing import Any

import msgspec

from evalwright.errors import EvaluatorError, shorten
from evalwright.model.cell import OfCase
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.model.trace_parts import TRACE_PARTS

__all__ = ["ABSENT", "Absent", "as_stored", "must_be_there", "part_of_trace", "parts_at", "select", "text_at"]


class Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()
"""The result of a path that matches nothing. Null is a value."""

_AS_THEY_ARE = frozenset((str, dict, int, float, bool, type(None)))
"""Types whose values are stored as they are."""
_DOTTED = re.compile(r"(?:\$\.)?([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*|\[-?\d{1,9}\])*)")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(-?\d+)\]")


@cache
def select(path: str) -> Callable[[Any], Any]:
    """A function from a record (struct or plain data) to the first match of `path` in it, or ABSENT.

    A malformed path is reported when the function is called, as an EvaluatorError.
    """
    steps = _steps(path)
    if steps is None:
        return _jsonpath(path)
    if (read := _part_of_trace(steps)) is None:
        return partial(_walk, steps=steps)

    def first(record: Any) -> Any:
        try:
            value = read(record) if isinstance(record, OfCase) else _walk(record, steps)
        except AttributeError:  # the trace was made from plain data, or the record is none
            value = _walk(record, steps)
        return value if value.__class__ in _AS_THEY_ARE else as_stored(value)

    return first


def part_of_trace(path: str) -> Callable[[Trace], Any] | None:
    """Reads a part that every trace has in memory just as it is stored; None for other paths."""
    steps = _steps(path)
    return None if steps is None else _part_of_trace(steps)


def parts_at(path: str) -> frozenset[str]:
    """The `TRACE_PARTS` of a trace in which the first match of `path` may be."""
    steps = _steps(path)
    return TRACE_PARTS if steps is None else TRACE_PARTS.intersection(steps[:1])


def _steps(path: str) -> list[str | int] | None:
    """The steps of a plain dotted path."""
    dotted = _DOTTED.fullmatch(path)
    if dotted is None:
        return None
    return [dotted[1], *(int(number) if number else name for name, number in _STEP.findall(dotted[2]))]


def _part_of_trace(steps: list[str | int]) -> Callable[[Any], Any] | None:
    """Reads a part that every trace has, reached through attributes alone; None if steps lead into values."""
    shape: Any = Trace
    for step in steps:
        if step not in getattr(shape, "__struct_fields__", ()):
            return None
        shape = shape.__annotations__[step]
    return attrgetter(".".join(map(str, steps)))


def must_be_there(path: str, value: Any) -> Any:
    """What was found at a path. Raises EvaluatorError if there is nothing: checking it would prove nothing."""
    if value is ABSENT:
        raise EvaluatorError(f"there is nothing at {shorten(path)}", "absent_field")
    return value


def text_at(path: str, record: Any, *, absent: str = "error") -> str:
    """The value at a path as text, "" for null. Raises EvaluatorError if there is nothing at the path.

    With `absent="empty"`, nothing is also "".
    """
    value = select(path)(record)
    if absent == "error":
        must_be_there(path, value)
    return "" if value is None or value is ABSENT else str(value)


def _walk(record: Any, steps: list[str | int]) -> Any:
    for step in steps:
        if isinstance(step, int):
            if not isinstance(record, list) or not -len(record) <= step < len(record):
                return ABSENT
            record = record[step]
        elif isinstance(record, dict):
            if step not in record:
                return ABSENT
            record = record[step]
        elif isinstance(record, msgspec.Struct) and step in record.__struct_fields__:
            record = getattr(record, step)
        else:
            return ABSENT
    return record if record.__class__ in _AS_THEY_ARE else as_stored(record)


def as_stored(value: Any) -> Any:
    """A part of a trace or case as it is stored: mappings, lists, strings, numbers, booleans, null."""
    if isinstance(value, msgspec.Raw):
        return ABSENT
    if isinstance(value, Case):
        return value.argument()
    if isinstance(value, (msgspec.Struct, datetime)) or (
        isinstance(value, list) and value and isinstance(value[0], msgspec.Struct)
    ):
        return msgspec.to_builtins(value)
    return value


def _jsonpath(path: str) -> Callable[[Any], Any]:
    def first(record: Any) -> Any:
        parsed = _parsed_path(path)
        if isinstance(parsed, EvaluatorError):
            raise EvaluatorError(str(parsed), parsed.type)
        try:
            matches = parsed.find(as_stored(record))
        except EvaluatorError:
            raise
        except Exception as error:
            raise _failure(path, "cannot be followed", error) from error
        return matches[0].value if matches else ABSENT

    return first


@cache
def _parsed_path(path: str) -> Any:
    """The parsed path, or why it cannot be parsed. Cached: building the parser for every trace would be expensive."""
    from evalwright.sandbox.jsonpaths import parsed

    try:
        return parsed(path)
    except Exception as error:
        return _failure(path, "is malformed", error)


def _failure(path: str, what: str, error: Exception) -> EvaluatorError:
    return EvaluatorError(f"the path {shorten(repr(path))} {what}: {error}", type(error).__name__)
