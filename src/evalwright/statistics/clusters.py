"""Scores that come in clusters (conversations, documents): scores of one cluster are not independent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import t_two_sided
from evalwright.statistics.means import t_interval, variance_of
from evalwright.statistics.proportions import Interval

__all__ = ["ClusteredDifference", "ClusteredMean", "clustered_mean", "paired_difference_clustered"]


class ClusteredMean(NamedTuple):
    """A mean of clustered scores; `se_cr1` with its interval is the one to use. None with a single cluster."""

    mean: float | None
    n: int
    n_clusters: int
    se_naive: float | None
    se_cr0: float | None
    se_cr1: float | None
    se_miller_eq4: float | None
    ci_cr1_t_df_clusters_minus_1: Interval | None
    design_effect_cr1: float | None
    effective_n: float | None
    icc_anova: float | None


def clustered_mean(scores: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95) -> ClusteredMean:
    """The mean with standard errors that hold inside clusters (Miller 2024, arXiv 2411.00640, section 2.2).

    CR0 = sqrt(sum over clusters of (sum of deviations)^2)/n; CR1 = CR0 sqrt(G/(G-1)), with Student's t and G-1
    degrees of freedom; the intraclass correlation is that of the one-way analysis of variance.
    Raises ValueError unless there are as many clusters as scores.
    """
    groups = _grouped(scores, clusters)
    n, number = len(scores), len(groups)
    if n == 0:
        return ClusteredMean(None, 0, 0, None, None, None, None, None, None, None, None)
    mean = fsum(scores) / n
    variance = variance_of(scores)
    naive = None if variance is None else sqrt(variance / n)
    squares = fsum(fsum(x - mean for x in group) ** 2 for group in groups)
    if number < 2:
        return ClusteredMean(mean, n, number, naive, None, None, None, None, None, None, None)
    cr0 = sqrt(squares) / n
    cr1 = cr0 * sqrt(number / (number - 1))
    own = fsum((x - mean) ** 2 for x in scores)
    miller = sqrt(max(0.0, (naive or 0.0) ** 2 + (squares - own) / n**2))
    effect = (cr1 / naive) ** 2 if naive else None
    return ClusteredMean(
        mean,
        n,
        number,
        naive,
        cr0,
        cr1,
        miller,
        t_interval(mean, cr1, number - 1, confidence),
        effect,
        n / effect if effect else None,
        _intraclass(groups, mean, n),
    )


def _grouped(scores: Sequence[float], clusters: Sequence[Hashable]) -> list[list[float]]:
    if len(scores) != len(clusters):
        raise ValueError(f"expected a cluster for each score, found {len(clusters)} for {len(scores)}")
    groups: dict[Hashable, list[float]] = {}
    for score, cluster in zip(scores, clusters, strict=True):
        groups.setdefault(cluster, []).append(score)
    return list(groups.values())


def _intraclass(groups: Sequence[Sequence[float]], mean: float, n: int) -> float | None:
    """One-way ICC with k0, the mean size of unequal clusters (Donner 1986)."""
    number = len(groups)
    if n == number:
        return None
    means = [fsum(group) / len(group) for group in groups]
    between = fsum(len(g) * (m - mean) ** 2 for g, m in zip(groups, means, strict=True)) / (number - 1)
    within = fsum((x - m) ** 2 for g, m in zip(groups, means, strict=True) for x in g) / (n - number)
    size = (n - sum(len(group) ** 2 for group in groups) / n) / (number - 1)
    total = between + (size - 1) * within
    return (between - within) / total if total else None


class ClusteredDifference(NamedTuple):
    """Paired differences B - A of clustered cases."""

    mean_diff_b_minus_a: float | None
    se_naive: float | None
    se_cr1: float | None
    t: float | None
    df: int | None
    p_two_sided: float | None
    ci: Interval | None


def paired_difference_clustered(
    a: Sequence[float], b: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> ClusteredDifference:
    """The t-test on paired differences with CR1 errors and G-1 degrees of freedom (Miller 2024, section 4).

    Raises ValueError unless A, B and the clusters are of one length.
    """
    if len(a) != len(b):
        raise ValueError(f"expected as many scores of A as of B, found {len(a)} and {len(b)}")
    found = clustered_mean([y - x for x, y in zip(a, b, strict=True)], clusters, confidence)
    if found.mean is None or not found.se_cr1:
        return ClusteredDifference(found.mean, found.se_naive, found.se_cr1, None, None, None, None)
    t, df = found.mean / found.se_cr1, found.n_clusters - 1
    interval = found.ci_cr1_t_df_clusters_minus_1
    return ClusteredDifference(found.mean, found.se_naive, found.se_cr1, t, df, t_two_sided(t, df), interval)
