"""What counts as a number in data that files and programs give, where it may also be text."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

__all__ = ["finite_number_in", "is_number", "whole_number_in"]


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number; `True` and `False` are numbers in Python, but not in data."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def finite_number_in(value: Any) -> float | None:
    """A finite number, or the one that a text contains; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def whole_number_in(value: Any) -> int | None:
    """A whole number, also as 2.0 or as text; None for anything else."""
    number = finite_number_in(value)
    if number is None or not number.is_integer():
        return None
    return value if isinstance(value, int) else int(number)
