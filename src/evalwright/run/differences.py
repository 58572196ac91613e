"""Describes where two plain documents first differ."""

from __future__ import annotations

from itertools import zip_longest

import msgspec

from evalwright.errors import shorten

__all__ = ["first_difference_in"]

_LONGEST = 80
_NOTHING = object()


def first_difference_in(one: object, other: object, place: str = "") -> str:
    """The first key whose value differs in the second document, with both values; empty if they are equal."""
    if one == other:
        return ""
    if isinstance(one, dict) and isinstance(other, dict):
        dot = "." if place else ""
        places = ((f"{place}{dot}{key}", one.get(key, _NOTHING), other.get(key, _NOTHING)) for key in [*one, *other])
    elif isinstance(one, list) and isinstance(other, list):
        pairs = zip_longest(one, other, fillvalue=_NOTHING)
        places = ((f"{place}[{number}]", *pair) for number, pair in enumerate(pairs))
    else:
        return f"{place} is {_short(other)}, not {_short(one)}"
    return next(filter(None, (first_difference_in(before, after, inner) for inner, before, after in places)), "")


def _short(value: object) -> str:
    if value is _NOTHING:
        return "missing"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return shorten(text, _LONGEST, "…")
