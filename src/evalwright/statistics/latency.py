"""Quantiles of latencies."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import ceil, floor, log
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, binomial_cdf

__all__ = ["Quantiles", "interpolated", "quantile_ends", "quantile_needs", "quantile_ranks", "quantiles"]


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
    """
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
