"""Records as plain data, without fields that only have their defaults."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

__all__ = ["brief"]


def brief(value: Any) -> Any:
    """A record, or a list of records, without the fields that have their defaults, at any depth of records."""
    if isinstance(value, msgspec.Struct):
        values = ((name, getattr(value, attribute), default) for name, attribute, default in _fields(type(value)))
        return {name: brief(item) for name, item, default in values if item != default and item is not msgspec.UNSET}
    if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
        return [brief(item) for item in value]
    return value


@cache
def _fields(kind: type[msgspec.Struct]) -> list[tuple[str, str, Any]]:
    """Name in a file, attribute and default of each field; required ones have a default that equals nothing."""
    return [
        (field.encode_name, field.name, field.default if made is msgspec.NODEFAULT else made())
        for field in msgspec.structs.fields(kind)
        for made in [field.default_factory]
    ]
