"""Values of an application as JSON and back. Tuples, sets and objects carry the type tags of pixie's files."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

__all__ = ["OBJECT", "JsonText", "served", "stored"]

OBJECT = "py/object"
"""The key under which an object names its class."""
_TUPLE, _SET = "py/tuple", "py/set"


class JsonText(str):
    """A value as JSON text. Arguments and results are kept this way because the application may change them."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> JsonText:
        """The text of any value."""
        return cls(json.dumps(stored(value), ensure_ascii=False))


def stored(value: Any, depth: int = 0) -> Any:
    """A value as JSON. What is nested deeper than 100 levels (cycles included), or has no fields, becomes text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > 100:
        return repr(type(value))
    if isinstance(value, dict):
        return {str(key): stored(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [stored(one, depth + 1) for one in value]
    if isinstance(value, tuple):
        return {_TUPLE: [stored(one, depth + 1) for one in value]}
    if isinstance(value, (set, frozenset)):
        # Sorted, so that equal sets are stored alike in every process; by `repr`, as members may not be comparable.
        return {_SET: [stored(one, depth + 1) for one in sorted(value, key=repr)]}
    fields = _fields(value)
    if fields is None:
        return str(value)
    kind = type(value)
    return {OBJECT: f"{kind.__module__}.{kind.__qualname__}", **stored(fields, depth + 1)}


def _fields(value: Any) -> dict[str, Any] | None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return dict(value.model_dump(mode="json"))
    return dict(vars(value)) if hasattr(value, "__dict__") and not callable(value) else None


def served(value: Any) -> Any:
    """The value that the application gets for a stored one: tuples and sets restored, objects as plain mappings."""
    if isinstance(value, list):
        return [served(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if key == _TUPLE and isinstance(inner, list):
            return tuple(served(one) for one in inner)
        if key == _SET and isinstance(inner, list):
            return _set_of(inner)
    return {key: served(one) for key, one in value.items() if key != OBJECT}


def _set_of(items: list[Any]) -> Any:
    try:
        return {served(one) for one in items}
    except TypeError:  # objects come back as mappings, which cannot be in a set: they stay a list
        return [served(one) for one in items]
