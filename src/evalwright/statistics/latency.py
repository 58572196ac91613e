"""Quantiles of latencies."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from itertools import pairwise
from math import ceil, floor, inf, log
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, binomial_cdf
from evalwright.statistics.rates import rate_with_design_effect
from evalwright.statistics.units import require_finite

__all__ = [
    "QuantileByUnit",
    "Quantiles",
    "interpolated",
    "quantile_ends",
    "quantile_needs",
    "quantile_ranks",
    "quantiles",
]


class Quantiles(NamedTuple):
    """Quantiles; the median's interval makes no assumption and is None below six values."""

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    median_ci_order_statistics_1based: tuple[int, int] | None
    median_ci: Interval | None
    median_ci_coverage: float | None


def quantiles(latency_ms: Sequence[float]) -> Quantiles:
    """Quantiles by linear interpolation between order statistics (Hyndman and Fan 1996, type 7).

    The median's interval has ranks l and n - l + 1, l the largest with P(Bin(n, 1/2) < l) <= 0.025 (Hahn and Meeker).
    Raises ValueError for values that are not finite.
    """
    require_finite(latency_ms)
    ordered, n = sorted(latency_ms), len(latency_ms)
    if not n:
        return Quantiles(None, None, None, None, None, None, None)
    p50, p90, p95, p99 = (interpolated(ordered, share) for share in (0.5, 0.9, 0.95, 0.99))
    rank = bisect_right(range(ceil(n / 2)), 0.025, key=lambda low: binomial_cdf(low, n, 0.5))
    if not rank:
        return Quantiles(p50, p90, p95, p99, None, None, None)
    ends, interval = (rank, n - rank + 1), (float(ordered[rank - 1]), float(ordered[n - rank]))
    return Quantiles(p50, p90, p95, p99, ends, interval, 1 - 2 * binomial_cdf(rank - 1, n, 0.5))


def quantile_ends(values: Sequence[float], share: float, alpha: float = 0.05) -> Interval | None:
    """The 1 - alpha interval of a quantile (0 < share < 1) between two order statistics, whatever the distribution.

    Ranks l and u with P(X < l) <= alpha/2 and P(X >= u) <= alpha/2 for X ~ Bin(n, share), l the largest and u the
    least (Hahn and Meeker 1991, 5.2). None where too few values lie beyond the quantile: see `quantile_needs`.
    """
    ordered, ranks = sorted(values), quantile_ranks(len(values), share, alpha)
    return None if ranks is None else (float(ordered[ranks[0] - 1]), float(ordered[ranks[1] - 1]))


def quantile_ranks(n: int, share: float, alpha: float) -> tuple[int, int] | None:
    """The ranks, from 1, of the ends of `quantile_ends` among n values; None for too few."""
    low = bisect_right(range(n), alpha / 2, key=lambda rank: binomial_cdf(rank, n, share))
    high = bisect_left(range(n), 1 - alpha / 2, key=lambda rank: binomial_cdf(rank, n, share)) + 1
    return (low, high) if low > 0 and high <= n else None


def quantile_needs(share: float, alpha: float = 0.05) -> int:
    """The least number of values with which a quantile has an interval: those beyond it must not all be missing."""
    return ceil(log(alpha / 2) / log(max(share, 1 - share)))


def interpolated(ordered: Sequence[float], share: float) -> float:
    """The quantile between the two order statistics that enclose it."""
    place = share * (len(ordered) - 1)
    below = floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


class QuantileByUnit(NamedTuple):
    """A quantile of values of which several may be of one unit."""

    quantile: float
    ends: Interval | None
    """As `quantile_ends`, for the number of independent values that say as much; None for too few."""
    jump: float
    """The largest ratio of neighbouring values between the ends."""
    worth: int
    """As how many independent values these count."""

    @classmethod
    def of(
        cls, values: Sequence[float], units: Sequence[Hashable], level: float, alpha: float = 0.05
    ) -> QuantileByUnit:
        """For sorted values, at least one, with the unit of each."""
        n = len(values)
        quantile = values[bisect_left(range(1, n + 1), level * n)]
        worth = n
        if len({*units}) < n:
            beyond = [float(value > quantile) for value in values]
            worth = min(n, int(rate_with_design_effect(beyond, units, 1 - alpha).effective_n))
        ranks = quantile_ranks(worth, level, alpha)
        if ranks is None:
            return cls(quantile, None, 1.0, worth)
        low, high = floor(ranks[0] * n / worth) - 1, ceil(ranks[1] * n / worth) - 1
        between = values[low : high + 1]
        jump = max((after / before if before else inf for before, after in pairwise(between)), default=1.0)
        return cls(quantile, (values[low], values[high]), jump, worth)
