"""Values of cases as totals of independent units: a group of cases is one unit, a case of no group another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import fsum, isfinite
from typing import NamedTuple

__all__ = ["FEW_UNITS", "Cluster", "Units", "units_from", "units_of"]

FEW_UNITS = 12
"""Below so many units that differ from the rest, Student's t is not to be trusted."""


class Cluster(NamedTuple):
    """The total of the values of so many cases."""

    total: float
    size: int


class Units(NamedTuple):
    """Units with what every test needs of them; `n` cases, of the given mean (0 without any)."""

    parts: Sequence[Cluster]
    n: int
    mean: float
    effective: float
    """n²/Σ m² for units of m cases (Kish 1965); n without groups."""

    @property
    def df(self) -> float:
        """Degrees of freedom (Carter, Schnepel and Steigerwald 2017), at least 1."""
        return max(1.0, self.effective - 1)

    def moved(self) -> int:
        """How many units differ from the most common mean, to 12 digits."""
        if not self.parts:
            return 0
        means = Counter(round(unit.total / unit.size, 12) for unit in self.parts)
        return len(self.parts) - max(means.values())


def units_of(values: Sequence[float], groups: Sequence[Hashable] | None = None) -> Units:
    """The units of `values`; without `groups` each value is one.

    Raises ValueError unless there are as many groups as values, and all values are finite.
    """
    if not all(isfinite(value) for value in values):
        raise ValueError("expected finite values, found NaN or infinity")
    if groups is None:
        parts = [Cluster(value, 1) for value in values]
    else:
        if len(groups) != len(values):
            raise ValueError(f"expected a group for each value, found {len(groups)} for {len(values)}")
        members: dict[Hashable, list[float]] = {}
        for value, group in zip(values, groups, strict=True):
            members.setdefault(group, []).append(value)
        parts = [Cluster(fsum(member), len(member)) for member in members.values()]
    return units_from(parts)


def units_from(parts: Sequence[Cluster]) -> Units:
    """Units from their totals and sizes."""
    n = sum(unit.size for unit in parts)
    squares = sum(unit.size**2 for unit in parts)
    total = fsum(unit.total for unit in parts)
    return Units(parts, n, total / n if n else 0.0, n * n / squares if n else 0.0)
