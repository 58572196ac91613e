"""The rate of one run from the shares of its cases; trials and groups count for the independent cases they equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.clusters import jackknife_error
from evalwright.statistics.distributions import Interval, t_quantile, two_sided_z
from evalwright.statistics.small_samples import guarded_units
from evalwright.statistics.units import FEW_UNITS, Cluster, Units, units_from, units_of

__all__ = [
    "DesignRate", "rate_of_cases", "rate_of_counts", "rate_of_singles", "rate_of_units", "rate_with_design_effect",
    "score_ends", "wilson",
]  # fmt: skip

_Z_95 = 1.959963984540054
"""`two_sided_z(0.95)`, which nearly every interval has."""


def wilson(successes: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Wilson's score interval (Wilson 1927), None without observations.

    Both may be fractional: a mean of n shares, taken as n whole cases, gives an interval that is too wide rather than
    too narrow, because shares vary less than zeros and ones with the same mean.
    """
    if n <= 0:
        return None
    z = _Z_95 if confidence == 0.95 else two_sided_z(confidence)
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * sqrt(max(0.0, p * (1 - p)) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes <= 0 else max(0.0, (centre - half) / scale)
    high = 1.0 if successes >= n else min(1.0, (centre + half) / scale)
    return low, high


class DesignRate(NamedTuple):
    """A rate, and the number of independent cases that would spread as much; None without cases."""

    rate: float | None
    effective_n: float
    ci: Interval | None
    units: int


def rate_with_design_effect(
    shares: Sequence[float], groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> DesignRate:
    """Wilson's interval with n* = p(1 - p)/se² (z/t)² for n (Korn and Graubard 1998), se by leaving out units.

    `shares` are the shares of passed trials by case; for one trial each and no groups it is exactly Wilson's. Where
    fewer than 12 units differ from the most common share, n* is the effective number of units. Raises ValueError for
    values that are not finite.
    """
    return rate_of_units(units_of(shares, groups), confidence)


def rate_of_units(units: Units, confidence: float = 0.95) -> DesignRate:
    """As `rate_with_design_effect`, for units made already."""
    number = units.number
    if not number:
        return DesignRate(None, 0.0, None, 0)
    single = number == units.n and all(unit.total in (0, 1) for unit in units.parts)
    error = jackknife_error(units) if units.moved() >= FEW_UNITS and not single else 0.0
    return _rate(units.mean, units.effective, error, units.df, number, confidence)


def rate_of_counts(counts: Mapping[float, int], confidence: float = 0.95) -> DesignRate:
    """As `rate_with_design_effect` without groups, from the number of cases with each share."""
    n = sum(counts.values())
    if not n:
        return DesignRate(None, 0.0, None, 0)
    mean = fsum(share * number for share, number in counts.items()) / n
    error = 0.0
    if n - max(counts.values()) >= FEW_UNITS and not counts.keys() <= {0, 1}:
        squares = fsum(number * (share - mean) ** 2 for share, number in counts.items())
        error = sqrt(squares / (n - 1) / n)
    return _rate(mean, float(n), error, max(1.0, n - 1.0), n, confidence)


def rate_of_cases(trials: Mapping[str, tuple[int, int]], groups: Mapping[str, str]) -> DesignRate:
    """The mean over cases of the share of passed trials, from each case's passed and judged trials.

    Cases of one of the `groups` are one unit of the interval.
    """
    if not any(case in groups for case in trials):
        return rate_of_counts(Counter(passed / of for passed, of in trials.values()))
    return rate_with_design_effect(
        [passed / of for passed, of in trials.values()], [groups.get(case, (case,)) for case in trials]
    )


def rate_of_singles(passed: int, judged: int, groups: Iterable[tuple[int, int]] = ()) -> DesignRate:
    """The same for cases of one trial each, which need not be known one by one.

    `groups` are passed and judged cases of each group; all other cases are units of their own.
    """
    parts = Counter(Cluster(float(passes), of) for passes, of in groups)
    passed -= round(sum(unit.total * times for unit, times in parts.items()))
    judged -= sum(unit.size * times for unit, times in parts.items())
    parts[Cluster(1.0, 1)] += passed
    parts[Cluster(0.0, 1)] += judged - passed
    return rate_of_units(units_from(+parts))


def _rate(mean: float, effective: float, error: float, df: float, units: int, confidence: float) -> DesignRate:
    """Wilson's interval for the number of cases that the standard error implies; for the effective units if it is 0."""
    rate = min(1.0, max(0.0, mean))
    if error > 0:
        price = two_sided_z(confidence) / t_quantile((1 + confidence) / 2, df)
        effective = rate * (1 - rate) / error**2 * price**2
    return DesignRate(rate, effective, wilson(rate * effective, effective, confidence), units)


def score_ends(units: Units, alpha: float = 0.05, low: float = 0.0, high: float = 1.0) -> Interval | None:
    """The 1 - alpha interval of a mean score that lies from `low` to `high`; None without units.

    Student's t with errors by leaving out units, guarded by two pseudo-units where fewer than 12 differ from the most
    common score (after Bonett and Price 2012).
    """
    if not units.number:
        return None
    if units.moved() >= FEW_UNITS:
        half = t_quantile(1 - alpha / 2, units.df) * jackknife_error(units)
        ends = units.mean - half, units.mean + half
    else:  # the two pseudo-units pull towards the middle of the scale
        middle = (low + high) / 2
        parts: dict[Cluster, int] = {}
        for unit, times in units.parts.items():
            moved = Cluster(unit.total - middle * unit.size, unit.size)
            parts[moved] = parts.get(moved, 0) + times
        around = guarded_units(units_from(parts), 0.0, alpha, (high - low) / 2).ci
        ends = around[0] + middle, around[1] + middle
    return max(low, ends[0]), min(high, ends[1])
