"""How many cases are needed to see a difference of a given size."""

from __future__ import annotations

from bisect import bisect_left
from math import ceil, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import (
    binomial_cdf,
    binomial_mass,
    noncentral_t_above,
    normal_cdf,
    normal_quantile,
    smooth_root,
    t_quantile,
)
from evalwright.statistics.units import FEW_UNITS

__all__ = [
    "McNemarPower",
    "PairedPower",
    "PairedTPower",
    "TrialsPower",
    "detectable_difference",
    "power_mcnemar_exact",
    "power_of_cases",
    "power_of_t",
    "power_paired_difference",
    "power_paired_t",
    "power_trials",
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
    exact = smooth_root(lambda n: _power_of_t(effect, n, alpha) - power, max(2.0, approximate), approximate + 10)
    return PairedTPower(exact, ceil(exact), approximate)


def _power_of_t(effect: float, n: float, alpha: float) -> float:
    """P(|T| > t) for noncentral T."""
    df = n - 1
    critical, shift = t_quantile(1 - alpha / 2, df), effect * sqrt(n)
    return noncentral_t_above(critical, df, shift) + noncentral_t_above(critical, df, -shift)


_MOST_SECANTS = 60


class TrialsPower(NamedTuple):
    """What `n` cases with so many trials can show."""

    sd_difference: float
    power: float | None
    """Chance that the lower end of the interval lies above -margin; None below two cases."""
    n_required: int | None
    """The least number of cases with the requested power; None if no number has it."""
    detectable_difference: float | None
    """The smallest true difference that `n` cases show with the requested power."""


def power_trials(
    n: float,
    omega2: float,
    sigma2_a: float,
    sigma2_b: float,
    k_a: int,
    k_b: int,
    delta: float,
    margin: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
) -> TrialsPower:
    """Cases by trials: sd² = omega2 + sigma2_a/k_a + sigma2_b/k_b (Miller 2024, section 5), power by noncentral t.

    `omega2` is the variance over cases of the difference in expected score, `sigma2_*` the mean variance within a case,
    `k_*` the trials of each; `delta` the true difference, `margin` the loss that is ruled out.
    """
    spread = sqrt(omega2 + sigma2_a / k_a + sigma2_b / k_b)
    if spread == 0:
        sure = float(delta > -margin)
        return TrialsPower(0.0, sure, 2 if sure else None, -margin)
    found = power_of_t(n, spread**2, delta + margin, alpha)
    detectable = None
    if n >= 2:
        detectable = -margin + spread * _least_effect(n, alpha, power)
    return TrialsPower(spread, found, _least_n((delta + margin) / spread, alpha, power), detectable)


def power_of_t(n: float, variance: float, delta: float, alpha: float = 0.05) -> float | None:
    """The chance that a t-test of `n` differences of such a mean and variance shows that they are above 0.

    None below two.
    """
    if variance <= 0:
        return float(delta > 0)
    return _power_of_effect(delta / sqrt(variance), n, alpha) if n >= 2 else None


def _power_of_effect(effect: float, n: float, alpha: float) -> float:
    """The chance that n differences of mean `effect` standard deviations are shown to be above 0."""
    return noncentral_t_above(t_quantile(1 - alpha / 2, n - 1), n - 1, effect * sqrt(n))


_MANY_CHANGES = 100
"""With so many cases that change, Student's t is exact enough."""


def power_of_cases(
    n: float,
    variance: float,
    delta: float,
    margin: float,
    changing: float,
    alpha: float = 0.05,
    *,
    single: bool = False,
) -> float | None:
    """The chance that `n` cases, whose differences have this variance, show that a difference of `delta` is above
    -margin; None below two cases.

    Student's t decides only where 12 cases or more changed (a share `changing` of them does), else the interval of
    `guarded_difference`, wider by far. With `single` trials that pass or fail, it is McNemar's test, and that interval
    for a margin.
    """
    by_t = power_of_t(n, variance, delta + margin, alpha)
    if by_t is None or variance <= 0:
        return by_t
    if single:
        if n * variance >= _MANY_CHANGES:
            return by_t
        share = min(1.0, max(variance, abs(delta)))
        if margin:
            return _power_not_worse(int(n), share, delta, margin, alpha)
        return power_mcnemar_exact(int(n), share, delta, alpha).power
    share = min(1.0, max(changing, abs(delta)))
    few = binomial_cdf(FEW_UNITS - 1, int(n), share) if n >= FEW_UNITS else 1.0
    return (1 - few) * by_t + few * _power_guarded(n, variance, delta, margin, alpha)


def _power_not_worse(n: int, share: float, delta: float, margin: float, alpha: float) -> float:
    """The chance that the guarded interval of `n` pairs, of which a `share` changes, lies above -margin: summed over
    the number of changed pairs. Where few change it is wider than Student's: 9 pairs hardly show a margin of 20 points.
    """
    won, reach = (share + delta) / (2 * share), t_quantile(1 - alpha / 2, n - 1)
    total = 0.0
    for changed in _likely_numbers(n, share):

        def shown(wins: int, changed: int = changed) -> bool:
            centre = (2 * wins - changed) / (n + 2)
            variance = ((changed + 2) / (n + 2) - centre**2) / (n + 2)
            return centre - reach * sqrt(variance) > -margin

        least = bisect_left(range(changed + 1), True, key=shown)
        total += binomial_mass(changed, n, share) * (1 - binomial_cdf(least - 1, changed, won))
    return total


def _likely_numbers(n: int, share: float) -> range:
    """The numbers of changed pairs that have a chance."""
    middle, reach = n * share, 9 * sqrt(n * share * (1 - share)) + 10
    return range(max(0, int(middle - reach)), min(n, int(middle + reach) + 1) + 1)


def _power_guarded(n: float, variance: float, delta: float, margin: float, alpha: float) -> float:
    """The same for the guarded interval, whose standard error varies little from sample to sample."""
    centre = delta * n / (n + 2)
    error = sqrt(max(0.0, (n * (variance + delta**2) + 2) / (n + 2) - centre**2) / (n + 2))
    shift = centre + margin - t_quantile(1 - alpha / 2, max(1.0, n - 1)) * error
    return normal_cdf(shift / (sqrt(variance * n) / (n + 2)))


_CLOSE = 0.05
"""How much of the power the approximation by t may lack before the difference is searched for."""


def detectable_difference(
    n: float,
    omega2: float,
    sigma2: float,
    trials: int,
    changing: float,
    alpha: float = 0.05,
    power: float = 0.8,
    *,
    margin: float = 0.0,
    single: bool | None = None,
) -> float | None:
    """The smallest true difference that `n` cases with so many trials a side show to be above -margin; None below two
    cases, and where no difference is shown with this power.

    `single`: whether each side of a case is one pass or failure; None if a single trial is.

    As in `power_trials`, for two sides with the same variance within a case, if that has the power. Where few cases
    change, by themselves a share `changing` of them (if trials are several), it does not: then by the power of the
    tests that decide.
    """
    if n < 2:
        return None
    variance, passes = omega2 + 2 * sigma2 / trials, trials == 1 if single is None else single
    by_t = (sqrt(variance) * _least_effect(n, alpha, power) if variance else 0.0) - margin

    def shown(delta: float) -> float:
        return power_of_cases(n, variance, delta, margin, changing, alpha, single=passes) or 0.0

    if by_t <= 1 and shown(by_t) >= power - _CLOSE:
        return by_t
    if shown(1.0) < power:
        return None
    low, high = min(by_t, 1.0), 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) >= power else (middle, high)
    return high


def _least_effect(n: float, alpha: float, power: float) -> float:
    """The effect at which `_power_of_effect` is `power`: found by secants that start near it, from Student's t."""
    df = n - 1
    low = (t_quantile(1 - alpha / 2, df) + t_quantile(power, df)) / sqrt(n)
    high = low * 0.99
    gap_low, gap_high = _power_of_effect(low, n, alpha) - power, _power_of_effect(high, n, alpha) - power
    for _ in range(_MOST_SECANTS):
        if abs(gap_high) < 1e-13 or gap_high == gap_low or abs(high - low) <= 1e-12 * abs(high):
            break
        low, high = high, max(high - gap_high * (high - low) / (gap_high - gap_low), 0.0)
        gap_low, gap_high = gap_high, _power_of_effect(high, n, alpha) - power
    return high


def _least_n(effect: float, alpha: float, power: float) -> int | None:
    if effect <= 0:
        return None
    about = power_paired_difference(alpha, power, sd_diff=1.0, delta=effect).n_required_ceil or 0
    low, high = 1, max(4, about + 8)
    while _power_of_effect(effect, high, alpha) < power:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _power_of_effect(effect, middle, alpha) < power else (low, middle)
    return high


class McNemarPower(NamedTuple):
    """The power of McNemar's exact test, and about how many pairs it needs."""

    power: float
    n_connor: float | None
    """None where no number of pairs shows the difference."""


_MOST_SUMMED = 5_000


def power_mcnemar_exact(
    n: int, p_discordant: float, delta: float, alpha: float = 0.05, power: float = 0.8
) -> McNemarPower:
    """Exact power, summed over the number of changed pairs; above 5,000 pairs, and for `n_connor`, Connor 1987.

    `p_discordant` is the share of pairs that pass on one side only, `delta` the true difference.
    Raises ValueError unless |delta| <= p_discordant <= 1.
    """
    if not abs(delta) <= p_discordant <= 1:
        raise ValueError(f"expected |delta| <= p_discordant <= 1, found {delta} and {p_discordant}")
    low, spread = normal_quantile(1 - alpha / 2), p_discordant - delta * delta
    needed = ((low * sqrt(p_discordant) + normal_quantile(power) * sqrt(spread)) / delta) ** 2 if delta else None
    if n > _MOST_SUMMED:
        shift = abs(delta) * sqrt(n) - low * sqrt(p_discordant)
        return McNemarPower(normal_cdf(shift / sqrt(spread)) if spread else 1.0, needed)
    won = (p_discordant + delta) / (2 * p_discordant) if p_discordant else 0.5
    total, half = 0.0, alpha / 2
    numbers = _likely_numbers(n, p_discordant)
    least = numbers[0]
    critical = max(-1, int(least / 2 - low * sqrt(least) / 2) - 5)
    shares = (0.5, won, 1 - won)
    below = [binomial_cdf(critical, least, share) for share in shares]  # the chance of no more than `critical`
    for changed in numbers:
        while critical + 1 < changed / 2 and below[0] + binomial_mass(critical + 1, changed, 0.5) <= half:
            critical += 1
            below = [tail + binomial_mass(critical, changed, share) for tail, share in zip(below, shares, strict=True)]
        total += binomial_mass(changed, n, p_discordant) * (below[1] + below[2])
        # With one changed pair more, it is that of fewer, or of exactly so many and no further one.
        below = [
            tail - share * binomial_mass(critical, changed, share) for tail, share in zip(below, shares, strict=True)
        ]
    return McNemarPower(min(1.0, total), needed)
