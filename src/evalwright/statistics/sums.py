"""Sums that do not depend on the order of their values, nor on how they are shared out between processes."""

from __future__ import annotations

from math import fsum, isfinite

__all__ = ["ExactSum"]

_MOST = 1024
"""Values that wait to be summed: many, so that one costs as little as an append; few, so that memory stays flat."""


class ExactSum:
    """The sum of many floats, rounded once at the end (Shewchuk 1997, as `math.fsum`). Sums of parts can be merged."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: list[float] = []

    def add(self, value: float) -> None:
        values = self._values
        values.append(value)
        if len(values) > _MOST:
            self._values = _condensed(values)

    def merge(self, other: ExactSum) -> None:
        """Add all values of another sum."""
        self._values = _condensed(self._values + other._values)

    @property
    def total(self) -> float:
        """The exact sum, rounded to the nearest float; infinite or NaN where the values are."""
        return _rounded(self._values)


def _condensed(values: list[float]) -> list[float]:
    """A few values with the same exact sum: the rounded one, what is missing from it, and so on."""
    parts: list[float] = []
    while (part := _rounded([*values, *(-known for known in parts)])) and isfinite(part):
        parts.append(part)
    return parts if isfinite(part) else [part]


def _rounded(values: list[float]) -> float:
    try:
        return fsum(values)
    except (OverflowError, ValueError):  # beyond the range of floats, or infinities of both signs
        return sum(values)
