"""Means of scores and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, t_quantile, two_sided_z
from evalwright.statistics.sums import exact_mean
from evalwright.statistics.units import require_finite

__all__ = [
    "MeanInterval",
    "mean_interval",
    "mean_of",
    "t_interval",
    "variance_of",
]


def mean_of(values: Sequence[float]) -> float | None:
    """The mean, None without values."""
    return exact_mean(values) if values else None


def variance_of(values: Sequence[float]) -> float | None:
    """The sample variance (ddof 1), None below two values; exactly 0 when all are equal."""
    n = len(values)
    if n < 2:
        return None
    if min(values) == max(values):
        return 0.0
    mean = fsum(values) / n
    return fsum((value - mean) ** 2 for value in values) / (n - 1)


def t_interval(mean: float, error: float, df: int, confidence: float) -> Interval | None:
    """Student's interval; None without degrees of freedom or without spread, where its zero width would mislead."""
    if df < 1 or error == 0:
        return None
    half = t_quantile((1 + confidence) / 2, df) * error
    return mean - half, mean + half


class MeanInterval(NamedTuple):
    """A mean with its standard error; the intervals are None where all scores are equal (use `wilson`)."""

    n: int
    mean: float | None
    sd_ddof1: float | None
    se: float | None
    ci_normal: Interval | None
    ci_t: Interval | None


def mean_interval(scores: Sequence[float], confidence: float = 0.95) -> MeanInterval:
    """Mean with se = sd(ddof 1)/sqrt(n), normal and Student intervals (Miller 2024, arXiv 2411.00640, section 2).

    Raises ValueError for scores that are not finite.
    """
    require_finite(scores)
    n, mean, variance = len(scores), mean_of(scores), variance_of(scores)
    if mean is None or variance is None:
        return MeanInterval(n, mean, None, None, None, None)
    error = sqrt(variance / n)
    half = two_sided_z(confidence) * error
    normal = (mean - half, mean + half) if error else None
    return MeanInterval(n, mean, sqrt(variance), error, normal, t_interval(mean, error, n - 1, confidence))
