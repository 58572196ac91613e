"""JSON text read as every program reads it, without the extensions of Python's reader."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["as_text", "loaded_json"]

_MOST_DIGITS = 300
"""Integers with more digits do not fit into a float, and Python refuses to read those with thousands."""


def loaded_json(text: str) -> Any:
    """The value in JSON text; an integer beyond the range of floats is infinite.

    Raises ValueError for other text, NaN and infinities included, and RecursionError for a value that is nested too
    deeply.
    """
    return json.loads(text, parse_constant=_reject_constant, parse_int=_integer)


def as_text(value: Any) -> str:
    """A value as text: a string as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)
