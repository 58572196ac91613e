"""The configuration of a target as a msgspec struct; all mistakes in it are reported together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from evalwright.errors import InputError, Problem

__all__ = ["settings"]

T = TypeVar("T", bound=msgspec.Struct)


def settings(kind: type[T], config: Mapping[str, Any]) -> T:
    """The fields of `kind` in `config`; other keys are ignored here. Raises InputError.

    A static method `problems(values)` of `kind` checks fields against each other; it gets those that are valid by
    themselves.
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for field in msgspec.structs.fields(kind):
        value = config.get(field.name)
        if value is None and field.required:
            problems.append(Problem("", f"{field.name!r} is missing", key=field.name))
        elif value is not None:
            try:
                values[field.name] = msgspec.convert(value, field.type)
            except (msgspec.ValidationError, RecursionError) as error:
                problems.append(_mismatch(field.name, str(error)))
    problems += getattr(kind, "problems", lambda _: [])(values)
    if problems:
        raise InputError(problems)
    return kind(**values)


def _mismatch(key: str, message: str) -> Problem:
    what, _, place = message.partition(" - at `$")
    what = what.replace("`", "").replace(", got ", ", found ")
    return Problem("", f"{key!r}: {what[:1].lower()}{what[1:]}", key=key + place.rstrip("`"))
