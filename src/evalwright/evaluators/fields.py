"""Choosing a value of a trace by path: JSONPath over the trace as it is stored, first match only.

Plain dotted paths, the common case, are read from the record itself; everything else goes through jsonpath-ng,
parsed once for each path. `output.final_answer` and `$.output.final_answer` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from evalwright.errors import EvaluatorError

__all__ = ["ABSENT", "Absent", "select"]


class Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()
"""What a path that matches nothing gives; null is a value."""

_PLAIN = re.compile(r"(?:\$\.)?([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*|\[\d+\])*)")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


@cache
def select(path: str) -> Callable[[Any], Any]:
    """A function from a record (struct or plain data) to the first match of `path` in it, or ABSENT.

    A malformed path shows when the function is called, as an EvaluatorError.
    """
    plain = _PLAIN.fullmatch(path)
    if plain is None:
        return _jsonpath(path)
    steps: list[str | int] = [plain[1]]
    steps += [int(number) if number else name for name, number in _STEP.findall(plain[2])]
    return lambda record: _walk(record, steps)


def _walk(record: Any, steps: list[str | int]) -> Any:
    for step in steps:
        if isinstance(step, int):
            if not isinstance(record, list) or step >= len(record):
                return ABSENT
            record = record[step]
        elif isinstance(record, dict):
            record = record.get(step, ABSENT)
        elif isinstance(record, msgspec.Struct) and step in record.__struct_fields__:
            record = getattr(record, step)
        else:
            return ABSENT
        if record is ABSENT:
            return ABSENT
    return msgspec.to_builtins(record) if isinstance(record, msgspec.Struct) else _plain_items(record)


def _plain_items(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
        return msgspec.to_builtins(value)
    return value


def _jsonpath(path: str) -> Callable[[Any], Any]:
    parsed: list[Any] = []

    def first(record: Any) -> Any:
        if not parsed:
            parsed.append(_parse(path))
        matches = parsed[0].find(msgspec.to_builtins(record))
        return matches[0].value if matches else ABSENT

    return first


def _parse(path: str) -> Any:
    from jsonpath_ng.ext import parse  # type: ignore[attr-defined]

    try:
        return parse(path)
    except Exception as error:
        raise EvaluatorError(f"the path {path!r} is malformed: {error}", type(error).__name__) from error
