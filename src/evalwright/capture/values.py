"""Values of an application as JSON and back. Tuples, sets and objects carry the type tags of pixie's files."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["OBJECT", "JsonText", "recorded_value", "served", "stored"]

OBJECT = "py/object"
"""The key under which an object names its class."""
_TUPLE, _SET = "py/tuple", "py/set"
_DEEPEST = 100
_MOST = 100_000
"""Lists and objects in one value: those that refer to each other may be reached in any number of ways."""
_LONGEST_INTEGER = 14_000
"""Bits of an integer that Python still writes in decimal digits."""
_HALVES = re.compile("[\ud800-\udfff]")
"""Halves of pairs, which are no text on their own and cannot be stored."""


class JsonText(str):
    """A value as JSON text. Arguments and results are kept this way because the application may change them."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> JsonText:
        """The text of any value."""
        return cls(json.dumps(stored(value), ensure_ascii=False))


def stored(value: Any) -> Any:
    """A value as JSON; never raises, as the application must not fail because it is observed.

    Text takes the place of what is nested deeper than 100 levels, contains itself, has no fields or cannot be read, and
    of what comes after 100,000 lists and objects.
    """
    return value if value is None or isinstance(value, bool) else _StoredForm().value(value, 0)


def recorded_value(value: Any) -> Any:
    """The input or output of a span as JSON, whether the span keeps it as text or as the application gave it."""
    return json.loads(value) if isinstance(value, JsonText) else stored(value)


class _StoredForm:
    """One value on its way to JSON."""

    def __init__(self) -> None:
        self._left = _MOST
        self._around: set[int] = set()
        """Of the objects that contain the current one."""

    def value(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if value.bit_length() <= _LONGEST_INTEGER else hex(value)
        if isinstance(value, str):
            return value if value.isascii() else _HALVES.sub("\ufffd", value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if depth > _DEEPEST or id(value) in self._around or not self._left:
            return repr(type(value))
        self._left -= 1
        self._around.add(id(value))
        try:
            return self._inside(value, depth)
        except (Exception, SystemExit) as error:  # of the methods of the value's class
            return f"({type(value).__name__} that cannot be stored: {type(error).__name__})"
        finally:
            self._around.discard(id(value))

    def _inside(self, value: Any, depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.value(_plain(value), depth + 1)
        if isinstance(value, dict):
            return self._mapping(value, depth)
        if isinstance(value, list):
            return self._list(value, depth)
        if isinstance(value, tuple):
            return {_TUPLE: self._list(value, depth)}
        if isinstance(value, (set, frozenset)):
            # Sorted, so that equal sets are stored alike in every process; by `repr`, as members may not be comparable.
            return {_SET: self._list(sorted(value, key=repr), depth)}
        fields = _fields(value)
        if fields is None:
            return _HALVES.sub("\ufffd", str(value))
        kind = type(value)
        return {OBJECT: f"{kind.__module__}.{kind.__qualname__}", **self._mapping(fields, depth + 1)}

    def _mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        return {_HALVES.sub("\ufffd", str(_plain(key))): self.value(item, depth + 1) for key, item in value.items()}

    def _list(self, value: Iterable[Any], depth: int) -> list[Any]:
        return [self.value(item, depth + 1) for item in value]


def _plain(value: Any) -> Any:
    """The value of a member of an enumeration, like those of text and numbers, which are stored as such."""
    return value.value if isinstance(value, enum.Enum) else value


def _fields(value: Any) -> dict[str, Any] | None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return dict(value.model_dump(mode="json"))
    return dict(vars(value)) if hasattr(value, "__dict__") and not callable(value) else None


def served(value: Any) -> Any:
    """The value that the application gets for a stored one: tuples and sets restored, objects as plain mappings."""
    if isinstance(value, list):
        return [served(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if key == _TUPLE and isinstance(inner, list):
            return tuple(served(item) for item in inner)
        if key == _SET and isinstance(inner, list):
            return _set_of(inner)
    return {key: served(item) for key, item in value.items() if key != OBJECT}


def _set_of(items: list[Any]) -> Any:
    try:
        return {served(item) for item in items}
    except TypeError:  # objects come back as mappings, which cannot be in a set: they stay a list
        return [served(item) for item in items]
