"""Sums of many floats without intermediate rounding, so that sums of parts add up to the sum of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import copysign, fsum, inf, isfinite
from numbers import Rational
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["ExactSum", "Mean", "exact_mean", "exact_parts", "exact_sum"]

_MOST_VALUES = 1024
"""Values waiting to be summed: many, so that one costs as little as an append; few, so that memory stays flat."""


class ExactSum:
    """The sum of many floats, rounded once at the end (Shewchuk 1997, as `math.fsum`). Sums of parts can be merged."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: list[float | Fraction] = []

    def add(self, value: float) -> None:
        values = self._values
        values.append(value)
        if len(values) > _MOST_VALUES:
            self._values = _condensed_values(values)

    def add_all(self, values: Iterable[float]) -> None:
        self._values += values
        if len(self._values) > _MOST_VALUES:
            self._values = _condensed_values(self._values)

    def merge(self, other: ExactSum) -> None:
        """Add all values of another sum."""
        self._values = _condensed_values(self._values + other._values)

    def over(self, n: float) -> float:
        """The sum divided by `n`: finite for a mean of finite values, even if the sum is beyond the range of floats."""
        total = self.total
        return total / n if isfinite(total) else _rounded_mean(_exact(self._values), n)

    @property
    def total(self) -> float:
        """The exact sum, rounded to the nearest float; infinite or NaN where the values are."""
        return exact_sum(self._values)


def exact_parts(values: Sequence[float | Fraction]) -> list[float]:
    """A few values with the same exact sum: the rounded one, the remainder, and so on.

    One value that is not finite if the sum is beyond the range of floats.
    """
    parts: list[float] = []
    while (part := exact_sum([*values, *(-known for known in parts)])) and isfinite(part):
        parts.append(part)
    return parts if isfinite(part) else [part]


def exact_sum(values: Sequence[float | Fraction]) -> float:
    """The exact sum, rounded to the nearest float; infinite beyond their range, infinite or NaN where values are."""
    try:
        return fsum(values)
    except (OverflowError, ValueError):  # beyond the range of floats on the way, or infinities of both signs
        return _rounded_mean(_exact(values))


def exact_mean(values: Sequence[float]) -> float:
    """The mean of some values from their exact sum, finite if they are."""
    total = exact_sum(values)
    return total / len(values) if isfinite(total) else _rounded_mean(_exact(values), len(values))


def _condensed_values(values: Sequence[float | Fraction]) -> list[float | Fraction]:
    """A few values with the same exact sum, one of them beyond the range of floats if the sum is."""
    parts = exact_parts(values)
    return [*parts] if all(map(isfinite, parts)) else [_exact(values)]


def _exact(values: Sequence[float | Fraction]) -> float | Fraction:
    """The exact sum; infinite or NaN if a value is."""
    from fractions import Fraction  # takes longer to import than everything here, and sums this large are rare

    try:
        return sum((Fraction(value) for value in values), Fraction())
    except (OverflowError, ValueError):
        return sum(value for value in values if not (isinstance(value, Rational) or isfinite(value)))


def _rounded_mean(total: float | Fraction, n: float = 1) -> float:
    """The nearest float to an exact sum divided by `n`, infinite beyond their range."""
    try:
        return float(total / type(total)(n))
    except OverflowError:
        return copysign(inf, 1 if total > 0 else -1)


class Mean:
    """An exact sum and how many values are in it."""

    __slots__ = ("_sum", "n")

    def __init__(self) -> None:
        self.n: int = 0
        self._sum = ExactSum()

    def add(self, value: float) -> None:
        self.n += 1
        values = self._sum._values  # `add` of the sum, written out: every cell adds to several means
        values.append(value)
        if len(values) > _MOST_VALUES:
            self._sum._values = _condensed_values(values)

    def add_all(self, values: Iterable[float | None]) -> None:
        """Add the values that are not missing."""
        known = [value for value in values if value is not None]
        self.n += len(known)
        self._sum.add_all(known)

    def add_sum(self, n: int, total: float) -> None:
        """Add that many values by their exact sum."""
        self.n += n
        self._sum.add(total)

    def merge(self, other: Mean) -> None:
        self.n += other.n
        self._sum.merge(other._sum)

    @property
    def total(self) -> float:
        return self._sum.total

    @property
    def mean(self) -> float | None:
        return self._sum.over(self.n) if self.n else None

    def change(self, after: Mean) -> float | None:
        """The difference of the means, where both are known."""
        mine, theirs = self.mean, after.mean
        return None if mine is None or theirs is None else theirs - mine
