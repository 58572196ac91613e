"""Means of cases that come in groups (conversations, documents): cases of one group are not independent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, t_quantile, t_two_sided
from evalwright.statistics.units import Units, units_of

__all__ = ["ClusterJackknife", "cluster_jackknife", "jackknife_error"]


class ClusterJackknife(NamedTuple):
    """A mean whose error comes from leaving out one group at a time; None with a single group."""

    mean: float | None
    se: float | None
    df: float | None
    effective_units: float
    units: int
    t: float | None
    p_two_sided: float | None
    ci: Interval | None


def cluster_jackknife(
    differences: Sequence[float], groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> ClusterJackknife:
    """The mean of `differences` against 0, with errors that hold for groups of unequal size; the interval is not cut.

    CR3, the jackknife over groups (Bell and McCaffrey 2002; Cameron and Miller 2015, VI); degrees of freedom n²/Σ m²
    - 1 for groups of m cases (Carter, Schnepel and Steigerwald 2017). Without groups this is the paired t-test. t and p
    are None without spread. Raises ValueError for values that are not finite.
    """
    units = units_of(differences, groups)
    number = units.number
    if number < 2:
        return ClusterJackknife(units.mean if number else None, None, None, units.effective, number, None, None, None)
    error, df = jackknife_error(units), units.df
    t = units.mean / error if error else None
    half = t_quantile((1 + confidence) / 2, df) * error
    return ClusterJackknife(
        units.mean,
        error,
        df,
        units.effective,
        number,
        t,
        None if t is None else t_two_sided(t, df),
        (units.mean - half, units.mean + half),
    )


def jackknife_error(units: Units) -> float:
    """The standard error of the mean of at least two units, by leaving out one at a time (CR3)."""
    number, n, mean = units.number, units.n, units.mean
    total = mean * n
    squares = fsum(times * ((total - unit.total) / (n - unit.size) - mean) ** 2 for unit, times in units.parts.items())
    return sqrt((number - 1) / number * squares)
