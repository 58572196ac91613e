"""How many cases are needed to see a difference of a given size."""

from __future__ import annotations

from math import asin, ceil, exp, lgamma, log, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import normal_cdf, normal_quantile, root_of, t_quantile

__all__ = [
    "PairedPower",
    "PairedTPower",
    "ProportionPower",
    "power_paired_difference",
    "power_paired_t",
    "power_proportions",
]


def _z_sum(alpha: float, power: float) -> float:
    return normal_quantile(1 - alpha / 2) + normal_quantile(power)


class PairedPower(NamedTuple):
    """Cases needed, and the smallest difference that `n` cases show."""

    n_required_exact: float | None
    n_required_ceil: int | None
    mde_at_n: float | None


def power_paired_difference(
    alpha: float = 0.05,
    power: float = 0.8,
    omega2: float | None = None,
    sigma2_a: float = 0.0,
    sigma2_b: float = 0.0,
    k_a: int = 1,
    k_b: int = 1,
    delta: float | None = None,
    n: int | None = None,
    sd_diff: float | None = None,
) -> PairedPower:
    """Normal approximation: n = (z + z)^2 (omega2 + s2_a/k_a + s2_b/k_b)/delta^2 (Miller 2024, section 5).

    `omega2` is the variance over cases of the difference in expected score, `sigma2_*` the mean variance within a
    case, `k_*` the trials of each. Where `omega2` is not given, the variance is `sd_diff` squared.
    Raises ValueError when neither is given.
    """
    if omega2 is None and sd_diff is None:
        raise ValueError("expected omega2 or sd_diff, found neither")
    variance = (sd_diff or 0.0) ** 2 if omega2 is None else omega2 + sigma2_a / k_a + sigma2_b / k_b
    z = _z_sum(alpha, power)
    needed = z * z * variance / delta**2 if delta else None
    return PairedPower(needed, None if needed is None else ceil(needed), z * sqrt(variance / n) if n else None)


class PairedTPower(NamedTuple):
    """Pairs needed for the paired t-test."""

    n_required_exact: float
    n_required_ceil: int
    n_required_normal_approx: float


def power_paired_t(delta: float, sd_diff: float, alpha: float = 0.05, power: float = 0.8) -> PairedTPower:
    """Pairs needed for the two-sided paired t-test, by the noncentral t distribution (Cohen 1988).

    Raises ValueError unless `delta` is not 0 and `sd_diff` above 0.
    """
    if not delta or sd_diff <= 0:
        raise ValueError(f"expected a difference and a spread, found {delta} and {sd_diff}")
    effect = abs(delta) / sd_diff
    approximate = (_z_sum(alpha, power) / effect) ** 2
    exact = root_of(lambda n: _power_of_t(effect, n, alpha) - power, 2.0, approximate + 100)
    return PairedTPower(exact, ceil(exact), approximate)


def _power_of_t(effect: float, n: float, alpha: float) -> float:
    """P(|T| > t) for noncentral T: Simpson's rule over the spread of the estimated standard deviation."""
    df = n - 1
    critical, shift = t_quantile(1 - alpha / 2, df), effect * sqrt(n)
    low, high, steps = max(1e-9, 1 - 8 / sqrt(2 * df)), 1 + 8 / sqrt(2 * df), 400
    width = (high - low) / steps
    total = 0.0
    for i in range(steps + 1):
        s = low + i * width
        density = exp(log(2) + df / 2 * log(df / 2) - lgamma(df / 2) + (df - 1) * log(s) - df * s * s / 2)
        reached = normal_cdf(shift - critical * s) + normal_cdf(-shift - critical * s)
        total += (1 if i in (0, steps) else 4 if i % 2 else 2) * density * reached
    return total * width / 3


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
