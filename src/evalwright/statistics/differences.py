"""The mean of paired differences of cases, and whether it lies above a margin: test and interval never disagree.

`alpha` is two-sided; the interval has the level 1 - alpha, and the p-value of a null is at most alpha exactly when the
null lies outside. Cases of one group are not independent: the group is the unit then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import t_quantile, t_two_sided
from evalwright.statistics.paired import mcnemar_exact
from evalwright.statistics.proportions import Interval

__all__ = ["MeanDifference", "mean_difference"]

_FEW = 12
"""Below so many units that differ from the rest, Student's t is not to be trusted."""


class MeanDifference(NamedTuple):
    """A mean difference; `p_margin` is the two-sided p of the difference being -margin."""

    method: str
    """`mcnemar`, `t`, `sign_flip` or `guarded`."""
    difference: float
    ci: Interval
    p_value: float
    p_margin: float
    n: int
    units: int
    """Groups, and cases of no group."""
    effective_units: float
    """n²/Σ m², for groups of m cases (Kish 1965)."""


class _Unit(NamedTuple):
    total: float
    size: int


def mean_difference(
    differences: Sequence[float],
    groups: Sequence[Hashable] | None = None,
    *,
    alpha: float = 0.05,
    margin: float = 0.0,
    one_trial: bool = False,
    scale: float = 1.0,
) -> MeanDifference | None:
    """The mean of `differences` (after - before, by case) with interval and p-values; None without any.

    `one_trial` says that each is -1, 0 or 1 of a single pass or failure on either side; `scale` is the range of the
    values. Units whose mean is not the most common one have moved. With `one_trial` and no groups McNemar's exact
    test; else from 12 moved units on Student's t with errors by leaving out one unit (Bell and McCaffrey 2002); with
    fewer units, of which 6 moved, the exact sign-flip test (Hartigan 1969); else `guarded`: one unit is added at each
    end of the scale (after Bonett and Price 2012).
    """
    units = _units(differences, groups)
    if not units:
        return None
    n = len(differences)
    mean = fsum(unit.total for unit in units) / n
    effective = n * n / sum(unit.size**2 for unit in units)
    means = Counter(round(unit.total / unit.size, 12) for unit in units)
    moved = len(units) - max(means.values())
    if one_trial and len(units) == n:
        method, (ci, p_value, p_margin) = "mcnemar", _mcnemar(units, mean, effective, alpha, margin)
    elif moved >= _FEW:
        method, (ci, p_value, p_margin) = "t", _student(units, mean, effective, alpha, margin, scale)
    elif len(units) < _FEW and moved >= _FEW // 2:
        method, (ci, p_value, p_margin) = "sign_flip", _sign_flip(units, alpha, margin, scale)
    else:
        method, (ci, p_value, p_margin) = "guarded", _guarded(units, mean, effective, alpha, margin, scale)
    return MeanDifference(method, mean, ci, p_value, p_margin, n, len(units), effective)


_Found = tuple[Interval, float, float]
"""Interval, p of no difference, p of a difference of -margin."""


def _units(differences: Sequence[float], groups: Sequence[Hashable] | None) -> list[_Unit]:
    if groups is None:
        return [_Unit(value, 1) for value in differences]
    members: dict[Hashable, list[float]] = {}
    for value, group in zip(differences, groups, strict=True):
        members.setdefault(group, []).append(value)
    return [_Unit(fsum(values), len(values)) for values in members.values()]


def _cut(interval: Interval, scale: float) -> Interval:
    return max(-scale, interval[0]), min(scale, interval[1])


def _around(centre: float, error: float, df: float, alpha: float, margin: float, scale: float) -> _Found:
    if error == 0:
        return _cut((centre, centre), scale), float(centre == 0), float(centre == -margin)
    half = t_quantile(1 - alpha / 2, df) * error
    p_value, p_margin = (t_two_sided((centre - null) / error, df) for null in (0.0, -margin))
    return _cut((centre - half, centre + half), scale), p_value, p_margin


def _student(
    units: Sequence[_Unit], mean: float, effective: float, alpha: float, margin: float, scale: float
) -> _Found:
    number, n = len(units), sum(unit.size for unit in units)
    total = mean * n
    squares = fsum(((total - unit.total) / (n - unit.size) - mean) ** 2 for unit in units)
    return _around(mean, sqrt((number - 1) / number * squares), max(1.0, effective - 1), alpha, margin, scale)


def _guarded(
    units: Sequence[_Unit], mean: float, effective: float, alpha: float, margin: float, scale: float
) -> _Found:
    n = sum(unit.size for unit in units)
    square = fsum(unit.total**2 / unit.size for unit in units) / n
    centre = mean * effective / (effective + 2)
    variance = ((effective * square + 2 * scale**2) / (effective + 2) - centre**2) / (effective + 2)
    return _around(centre, sqrt(max(0.0, variance)), max(1.0, effective - 1), alpha, margin, scale)


def _mcnemar(units: Sequence[_Unit], mean: float, effective: float, alpha: float, margin: float) -> _Found:
    """The exact p of no difference; the guarded interval, stretched to hold 0 where that p is above alpha."""
    (low, high), _, p_margin = _guarded(units, mean, effective, alpha, margin, 1.0)
    worse, better = sum(unit.total < 0 for unit in units), sum(unit.total > 0 for unit in units)
    exact = mcnemar_exact(worse, better)
    ends = (min(low, 0.0), max(high, 0.0)) if exact > alpha else (low, high)
    return ends, exact, exact if margin == 0 else p_margin


def _sign_flip(units: Sequence[_Unit], alpha: float, margin: float, scale: float) -> _Found:
    """By the means of all non-empty subsets of the units, of which there are at most 2^11."""
    sums = [(0.0, 0)]
    for unit in units:
        sums += [(total + unit.total, size + unit.size) for total, size in sums]
    means = sorted(total / size for total, size in sums if size)
    rank = int(len(sums) * alpha / 2)
    ends = (means[rank - 1], means[-rank]) if rank else (-scale, scale)

    def p_of(null: float) -> float:
        near = 1e-12 * max(1.0, abs(null))  # sums of the same units in another order differ by so much
        below, above = sum(m <= null + near for m in means), sum(m >= null - near for m in means)
        return min(1.0, 2 * (1 + min(below, above)) / len(sums))

    return _cut(ends, scale), p_of(0.0), p_of(-margin)
