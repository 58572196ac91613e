"""How messages write what is in a file: the key path of a value, such as `systems[0].target`, and the value.

Some original programs write `systems.0.target`: messages about suites that are read by their rules use this form, and
users may write either.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["Place", "as_written", "bracketed", "dotted", "kind_in_words", "steps_of"]

Place = tuple[str | int, ...]
"""Keys of mappings and positions in lists, from the outside in."""

_LONGEST = 60
"""Characters of a value in a message."""
_STEP = re.compile(r"\[(\d+)\]|([^.\[]+)")


def dotted(place: Place) -> str:
    """`systems.0.target`, as evalh and pixie-qa write it."""
    return ".".join(map(str, place))


def bracketed(place: Place) -> str:
    """`systems[0].target`"""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def steps_of(path: str) -> Place:
    """The place that a path of either form names; a step of digits is a position in a list."""
    return tuple(int(i or name) if i or name.isdecimal() else name for i, name in _STEP.findall(path))


def as_written(value: Any, mapping: str = "a mapping", nothing: str = "null") -> str:
    """A value as YAML writes it, such as `null`, `true`, `5` or `'text'`; of a list or mapping, only what it is.

    JSON calls a mapping an object; `nothing` stands for a key without a value, where that counts as missing.
    """
    if isinstance(value, dict):
        return mapping if value else "{}"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "[]"
    if value is None or isinstance(value, bool):
        return nothing if value is None else str(value).lower()
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST else f"{value[:_LONGEST]!r}..."
    return f"{value!s:.{_LONGEST}}"


def kind_in_words(value: Any) -> str:
    """What a value is, without the value: for keys whose values may be secrets."""
    if isinstance(value, str):
        return "a text"
    return as_written(value) if value is None or isinstance(value, (bool, dict, list)) else "a number"
