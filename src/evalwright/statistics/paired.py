"""The same cases judged twice: is one side better?"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt

from evalwright.statistics.distributions import normal_quantile
from evalwright.statistics.proportions import Interval

__all__ = ["mcnemar_exact", "paired_mean_interval"]


def mcnemar_exact(worse: int, better: int) -> float:
    """Two-sided exact p-value of McNemar's test from the numbers of discordant pairs; 1 without any."""
    n, few = worse + better, min(worse, better)
    if n == 0:
        return 1.0
    if n > 2000:
        return _normal_p(few, n)
    return min(1.0, float(2 * sum(comb(n, i) for i in range(few + 1)) / 2**n))


def _normal_p(few: int, n: int) -> float:
    """The normal approximation with continuity correction, good to six digits where it is used."""
    from statistics import NormalDist

    z = (abs(n - 2 * few) - 1) / sqrt(n)
    return min(1.0, 2 * NormalDist().cdf(-max(z, 0.0)))


def paired_mean_interval(differences: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Normal interval of the mean paired difference (Miller 2024, section 4); None below two pairs."""
    n = len(differences)
    if n < 2:
        return None
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    half = normal_quantile(0.5 + confidence / 2) * sqrt(variance / n)
    return mean - half, mean + half
