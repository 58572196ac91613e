"""Values of cases as totals of independent units: a group of cases is one unit, an ungrouped case another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum, isfinite
from typing import NamedTuple

__all__ = ["FEW_UNITS", "Cluster", "Units", "by_group", "require_finite", "units_from", "units_of"]

FEW_UNITS = 12
"""With fewer units than this that differ from the rest, Student's t is not to be trusted."""


class Cluster(NamedTuple):
    """The total of the values of so many cases."""

    total: float
    size: int


class Units(NamedTuple):
    """Units with everything that tests need of them; `n` cases with the given mean (0 without any)."""

    parts: Mapping[Cluster, int]
    """The number of units with each total and size: most are alike, so that 10⁵ cases are counted quickly."""
    number: int
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
        means: dict[float, int] = {}
        for unit, times in self.parts.items():
            mean = round(unit.total / unit.size, 12)
            means[mean] = means.get(mean, 0) + times
        return self.number - max(means.values(), default=0)


def require_finite(values: Iterable[float]) -> None:
    """Raises ValueError for NaN and infinity: an estimate from them would be NaN, too, or worse, look like a number."""
    if not all(map(isfinite, values)):
        raise ValueError("expected finite values, found NaN or infinity")


def units_of(values: Sequence[float], groups: Sequence[Hashable] | None = None) -> Units:
    """The units of `values`; without `groups` each value is one.

    Raises ValueError unless there are as many groups as values, and all values are finite.
    """
    if groups is None:
        return units_from({Cluster(value, 1): times for value, times in Counter(values).items()})
    if len(groups) != len(values):
        raise ValueError(f"expected a group for each value, found {len(groups)} for {len(values)}")
    members = by_group(values, groups).values()
    return units_from(Counter(Cluster(fsum(member), len(member)) for member in members))


def by_group(values: Sequence[float], groups: Sequence[Hashable]) -> dict[Hashable, list[float]]:
    """The values of each group, in the order in which they first appear."""
    members: dict[Hashable, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    return members


def units_from(parts: Mapping[Cluster, int]) -> Units:
    """Units from the number with each total and size. Raises ValueError for totals that are not finite."""
    require_finite(unit.total for unit in parts)
    n = sum(times * unit.size for unit, times in parts.items())
    squares = sum(times * unit.size**2 for unit, times in parts.items())
    total = fsum(times * unit.total for unit, times in parts.items())
    return Units(parts, sum(parts.values()), n, total / n if n else 0.0, n * n / squares if n else 0.0)
