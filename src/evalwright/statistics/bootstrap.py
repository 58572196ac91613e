"""Intervals of a mean by drawing again from the scores there are.

Every possible draw is looked at where there are few enough of them; else as many random ones, always the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from math import ceil, fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import normal_cdf, normal_quantile, two_sided_z
from evalwright.statistics.latency import interpolated
from evalwright.statistics.proportions import Interval

__all__ = [
    "BcaInterval",
    "BootstrapMean",
    "ClusterBootstrap",
    "bootstrap_mean",
    "bootstrap_mean_bca",
    "cluster_bootstrap_mean",
]

_DRAWS = 20_000


class BootstrapMean(NamedTuple):
    """`boot_se` comes near `closed_form_se_ddof0`, sd(ddof 0)/sqrt(n); None without scores."""

    boot_se: float | None
    closed_form_se_ddof0: float | None
    percentile_2_5_inverted_cdf: float | None
    """The lower end at the confidence asked for, 2.5 % for 0.95."""
    percentile_97_5_inverted_cdf: float | None


def bootstrap_mean(scores: Sequence[float], confidence: float = 0.95) -> BootstrapMean:
    """The mean of scores drawn again with replacement, percentile interval (Efron and Tibshirani 1993)."""
    if not scores:
        return BootstrapMean(None, None, None, None)
    n, means = len(scores), _means([[score] for score in scores])
    mean = fsum(scores) / n
    low, high = _percentiles(means, confidence)
    return BootstrapMean(_deviation(means), sqrt(fsum((x - mean) ** 2 for x in scores)) / n, low, high)


class ClusterBootstrap(NamedTuple):
    """None with a single cluster."""

    boot_se: float | None
    percentile_2_5_inverted_cdf: float | None
    percentile_97_5_inverted_cdf: float | None


def cluster_bootstrap_mean(
    scores: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> ClusterBootstrap:
    """Whole clusters drawn again; sum of scores / number of scores (Cameron, Gelbach and Miller 2008)."""
    groups: dict[Hashable, list[float]] = {}
    for score, cluster in zip(scores, clusters, strict=True):
        groups.setdefault(cluster, []).append(score)
    if len(groups) < 2:
        return ClusterBootstrap(None, None, None)
    means = _means(list(groups.values()))
    return ClusterBootstrap(_deviation(means), *_percentiles(means, confidence))


class BcaInterval(NamedTuple):
    """Corrected for bias and acceleration, and plain; None below two scores or where all are equal."""

    bca: Interval | None
    percentile: Interval | None


def bootstrap_mean_bca(scores: Sequence[float], confidence: float = 0.95) -> BcaInterval:
    """The BCa interval of a mean (Efron 1987), its acceleration by the jackknife."""
    n = len(scores)
    if n < 2 or min(scores) == max(scores):
        return BcaInterval(None, None)
    means, mean, z = _means([[score] for score in scores]), fsum(scores) / n, two_sided_z(confidence)
    below = sum(value < mean for value in means) + sum(value == mean for value in means) / 2
    bias = normal_quantile(min(max(below, 0.5), len(means) - 0.5) / len(means))
    gaps = [(score - mean) / (n - 1) for score in scores]
    acceleration = fsum(gap**3 for gap in gaps) / (6 * fsum(gap**2 for gap in gaps) ** 1.5)
    low, high = (
        interpolated(means, normal_cdf(bias + (bias + side) / (1 - acceleration * (bias + side)))) for side in (-z, z)
    )
    tail = (1 - confidence) / 2
    return BcaInterval((low, high), (interpolated(means, tail), interpolated(means, 1 - tail)))


def _means(groups: Sequence[Sequence[float]]) -> list[float]:
    """The mean of each draw of as many groups as there are, sorted."""
    parts = [(fsum(group), len(group)) for group in groups]
    draws = ((fsum(total for total, _ in draw) / sum(size for _, size in draw)) for draw in _draws(parts))
    return sorted(draws)


def _draws(parts: Sequence[tuple[float, int]]) -> Iterator[Sequence[tuple[float, int]]]:
    n = len(parts)
    if n <= 5:
        yield from product(parts, repeat=n)
        return
    from random import Random

    draw = Random(20_240_601).choices
    for _ in range(_DRAWS):
        yield draw(parts, k=n)


def _deviation(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / len(values))


def _percentiles(ordered: Sequence[float], confidence: float) -> Interval:
    """The inverted distribution function (Hyndman and Fan 1996, type 1) at both tails."""
    n, tail = len(ordered), (1 - confidence) / 2
    low, high = (ordered[max(0, ceil(round(share * n, 9)) - 1)] for share in (tail, 1 - tail))
    return low, high
