"""Means of scores and how sure they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, sqrt
from typing import Any, NamedTuple

from evalwright.statistics.distributions import t_quantile, two_sided_z
from evalwright.statistics.proportions import Interval

__all__ = [
    "MeanInterval",
    "StratifiedMean",
    "mean_interval",
    "mean_of",
    "mean_with_errors",
    "stratified_mean",
    "t_interval",
    "variance_of",
]


def mean_of(values: Sequence[float]) -> float | None:
    """The mean, None without values."""
    return fsum(values) / len(values) if values else None


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
    """Mean with se = sd(ddof 1)/sqrt(n), normal and Student intervals (Miller 2024, arXiv 2411.00640, section 2)."""
    n, mean, variance = len(scores), mean_of(scores), variance_of(scores)
    if mean is None or variance is None:
        return MeanInterval(n, mean, None, None, None, None)
    error = sqrt(variance / n)
    half = two_sided_z(confidence) * error
    normal = (mean - half, mean + half) if error else None
    return MeanInterval(n, mean, sqrt(variance), error, normal, t_interval(mean, error, n - 1, confidence))


def mean_with_errors(
    scores: Sequence[float | None], policy: Iterable[str] = ("exclude", "count_as_fail")
) -> dict[str, float | int | None]:
    """Means of scores of which some are None because their cases errored, by what to make of those.

    `exclude` leaves them out, `count_as_fail` takes them as 0. Raises ValueError for another policy.
    """
    answer: dict[str, float | int | None] = {}
    for name in policy:
        if name == "exclude":
            counted = [score for score in scores if score is not None]
        elif name == "count_as_fail":
            counted = [0.0 if score is None else score for score in scores]
        else:
            raise ValueError(f"expected the policy exclude or count_as_fail, found {name!r}")
        answer[f"{name}_mean"], answer[f"{name}_n"] = mean_of(counted), len(counted)
    return answer


class StratifiedMean(NamedTuple):
    """`macro_mean` gives every stratum the same weight, `micro_mean` every score."""

    weighted_mean: float | None
    se: float | None
    macro_mean: float | None
    micro_mean: float | None


def stratified_mean(strata: Sequence[Mapping[str, Any]]) -> StratifiedMean:
    """Weighted mean over strata of `weight` and `scores`: se = sqrt(sum of w^2 var/n) (Cochran 1977, chapter 5).

    Weights are made to sum to 1. The means are None when a stratum is empty, the error when one has a single score.
    """
    total = fsum(stratum["weight"] for stratum in strata)
    means = [mean_of(stratum["scores"]) for stratum in strata]
    known = [mean for mean in means if mean is not None]
    micro = mean_of([score for stratum in strata for score in stratum["scores"]])
    if not strata or len(known) < len(strata) or total <= 0:
        return StratifiedMean(None, None, None, micro)
    shares = [stratum["weight"] / total for stratum in strata]
    variances = [variance_of(stratum["scores"]) for stratum in strata]
    parts = [w * w * v / len(s["scores"]) for w, v, s in zip(shares, variances, strata, strict=True) if v is not None]
    error = sqrt(fsum(parts)) if len(parts) == len(strata) else None
    weighted = fsum(w * mean for w, mean in zip(shares, known, strict=True))
    return StratifiedMean(weighted, error, mean_of(known), micro)
