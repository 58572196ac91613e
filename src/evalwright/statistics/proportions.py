"""Further intervals for a share of successes besides the one that runs use, bounds for a rate of failures, and how many
cases tell two shares apart."""

from __future__ import annotations

from math import asin, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, beta_quantile, normal_quantile, two_sided_z
from evalwright.statistics.rates import wilson

__all__ = [
    "FailureBound",
    "ProportionInterval",
    "ProportionPower",
    "clopper_pearson",
    "power_proportions",
    "proportion_interval",
    "zero_failures_bound",
]


class ProportionInterval(NamedTuple):
    """A share and its intervals; `wilson` is the one to use, `wald` is only given to be recognised."""

    p: float | None
    se_bernoulli: float | None
    wilson: Interval | None
    wilson_cc: Interval | None
    clopper_pearson: Interval | None
    jeffreys: Interval | None
    wald: Interval | None
    bayes_uniform: Interval | None
    posterior_mean_uniform: float


def proportion_interval(successes: int, n: int, confidence: float = 0.95) -> ProportionInterval:
    """Every common interval of k successes in n (Brown, Cai and DasGupta 2001).

    Raises ValueError unless 0 <= successes <= n. Without observations all but the prior's mean is None.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"expected 0 <= successes <= n, found {successes} of {n}")
    mean = (successes + 1) / (n + 2)
    if n == 0:
        return ProportionInterval(None, None, None, None, None, None, None, None, mean)
    p, tail = successes / n, (1 - confidence) / 2
    error = sqrt(p * (1 - p) / n)
    half = two_sided_z(confidence) * error
    k, rest = successes, n - successes
    return ProportionInterval(
        p,
        error,
        wilson(k, n, confidence),
        _wilson_corrected(k, n, confidence),
        clopper_pearson(k, n, confidence),
        (
            beta_quantile(tail, k + 0.5, rest + 0.5) if k else 0.0,
            beta_quantile(1 - tail, k + 0.5, rest + 0.5) if rest else 1.0,
        ),
        (p - half, p + half),
        (beta_quantile(tail, k + 1, rest + 1), beta_quantile(1 - tail, k + 1, rest + 1)),
        mean,
    )


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> Interval | None:
    """The exact interval of a share (Clopper and Pearson 1934); None without observations."""
    if n == 0:
        return None
    k, rest, tail = successes, n - successes, (1 - confidence) / 2
    return beta_quantile(tail, k, rest + 1) if k else 0.0, beta_quantile(1 - tail, k + 1, rest) if rest else 1.0


def _wilson_corrected(k: int, n: int, confidence: float) -> Interval:
    """Wilson's interval with continuity correction (Newcombe 1998, method 4)."""
    z, p = two_sided_z(confidence), k / n
    below = z * sqrt(max(0.0, z * z - 2 - 1 / n + 4 * p * (n * (1 - p) + 1)))
    above = z * sqrt(max(0.0, z * z + 2 - 1 / n + 4 * p * (n * (1 - p) - 1)))
    scale = 2 * (n + z * z)
    low = 0.0 if k == 0 else max(0.0, (2 * n * p + z * z - 1 - below) / scale)
    high = 1.0 if k == n else min(1.0, (2 * n * p + z * z + 1 + above) / scale)
    return low, high


class FailureBound(NamedTuple):
    """How high the rate of failures may still be."""

    exact_upper: float | None
    rule_of_three: float | None
    """3/n, the rough form for no failures; None if there were any."""


def zero_failures_bound(failures: int, n: int, confidence_one_sided: float = 0.95) -> FailureBound:
    """One-sided exact upper bound of a rate of failures (Clopper and Pearson 1934), mostly used for none seen.

    Raises ValueError unless 0 <= failures <= n.
    """
    if not 0 <= failures <= n:
        raise ValueError(f"expected 0 <= failures <= n, found {failures} of {n}")
    if n == 0:
        return FailureBound(None, None)
    if failures == 0:
        return FailureBound(1 - (1 - confidence_one_sided) ** (1 / n), 3 / n)
    upper = beta_quantile(confidence_one_sided, failures + 1, n - failures) if failures < n else 1.0
    return FailureBound(upper, None)


class ProportionPower(NamedTuple):
    """Cases needed to tell two shares apart; `n_pairs_mcnemar` when both sides run the same cases."""

    n_per_arm_unpaired: float | None
    n_per_arm_arcsine: float | None
    cohens_h: float
    n_pairs_mcnemar: float | None


def power_proportions(
    p1: float, p2: float, p_discordant: float, alpha: float = 0.05, power: float = 0.8
) -> ProportionPower:
    """Two shares: pooled normal formula (Fleiss 1981), arcsine (Cohen 1988), McNemar pairs (Connor 1987).

    None when the shares are equal, or for McNemar when they differ more than pairs do.
    """
    gap, h = abs(p2 - p1), 2 * asin(sqrt(p2)) - 2 * asin(sqrt(p1))
    if not gap:
        return ProportionPower(None, None, h, None)
    low, high = normal_quantile(1 - alpha / 2), normal_quantile(power)
    middle = (p1 + p2) / 2
    unpaired = low * sqrt(2 * middle * (1 - middle)) + high * sqrt(p1 * (1 - p1) + p2 * (1 - p2))
    pairs = None
    if p_discordant >= gap:
        pairs = ((low * sqrt(p_discordant) + high * sqrt(p_discordant - gap * gap)) / gap) ** 2
    return ProportionPower((unpaired / gap) ** 2, 2 * ((low + high) / h) ** 2, h, pairs)
