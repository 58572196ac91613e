"""The same cases judged twice, as A and as B: is B better? Every difference is B - A."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import (
    beta_cdf,
    binomial_mass,
    binomial_two_sided_half,
    normal_two_sided,
    t_two_sided,
    two_sided_z,
)
from evalwright.statistics.means import t_interval, variance_of
from evalwright.statistics.proportions import Interval, wilson

__all__ = [
    "McNemar",
    "PairedDifference",
    "PairedT",
    "mcnemar",
    "mcnemar_exact",
    "newcombe_paired",
    "paired_difference",
    "paired_t",
]

_MOST_FLIPPED = 16
"""The exact sign-flip test looks at 2^n sums; above this number of differing pairs it is left out."""


def mcnemar_exact(a_only: int, b_only: int) -> float:
    """Two-sided exact p-value of McNemar's test (binomial on the discordant pairs); 1 without any."""
    return binomial_two_sided_half(min(a_only, b_only), a_only + b_only)


def newcombe_paired(
    both_pass: int, a_only: int, b_only: int, both_fail: int, confidence: float = 0.95
) -> Interval | None:
    """Interval of the difference of two paired shares; None without pairs.

    Newcombe 1998 (paired), method 10: Wilson's intervals of both shares, joined by the correlation of the table,
    its numerator corrected for continuity. Unlike Wald's it has a width when no pair differs.
    """
    n = both_pass + a_only + b_only + both_fail
    passed_a, passed_b = both_pass + a_only, both_pass + b_only
    ends_a, ends_b = wilson(passed_a, n, confidence), wilson(passed_b, n, confidence)
    if ends_a is None or ends_b is None:
        return None
    p_a, p_b = passed_a / n, passed_b / n
    product = float(both_pass * both_fail - a_only * b_only)
    corrected = product if product < 0 else max(0.0, product - n / 2)
    square = passed_a * (n - passed_a) * passed_b * (n - passed_b)
    phi = corrected / sqrt(square) if square else 0.0
    below = _joined(p_b - ends_b[0], ends_a[1] - p_a, phi)
    above = _joined(ends_b[1] - p_b, p_a - ends_a[0], phi)
    return max(-1.0, p_b - p_a - below), min(1.0, p_b - p_a + above)


def _joined(one: float, other: float, phi: float) -> float:
    return sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))


class McNemar(NamedTuple):
    """McNemar's test in its forms; `p_exact` and `ci_newcombe_paired` are the ones to use."""

    p_exact: float
    p_midp: float
    chi2: float | None
    p_chi2: float | None
    chi2_cc: float | None
    p_chi2_cc: float | None
    diff_b_minus_a: float | None
    se_wald: float | None
    ci_wald: Interval | None
    ci_newcombe_paired: Interval | None
    posterior_prob_b_better: float
    discordant_odds_ratio: float | None
    """None when no pair passed in A only."""


def mcnemar(both_pass: int, a_only: int, b_only: int, both_fail: int, confidence: float = 0.95) -> McNemar:
    """Paired passes and failures: exact and mid-p (Fagerland 2013), chi-squared, intervals of the difference.

    The posterior is P(theta > 1/2) for theta ~ Beta(b_only + 1, a_only + 1): a flat prior on the four cells
    (Bowyer, Aitchison and Ivanova 2025, arXiv 2503.01747). Raises ValueError for a negative number.
    """
    if min(both_pass, a_only, b_only, both_fail) < 0:
        raise ValueError("expected four numbers of pairs, found a negative one")
    n, discordant = both_pass + a_only + b_only + both_fail, a_only + b_only
    exact = mcnemar_exact(a_only, b_only)
    mass = binomial_mass(min(a_only, b_only), discordant, 0.5) if discordant else 0.0
    gap = abs(a_only - b_only)
    chi2 = gap**2 / discordant if discordant else None
    corrected = (gap - 1) ** 2 / discordant if discordant else None
    difference, error, wald = None, None, None
    if n:
        difference = (b_only - a_only) / n
        error = sqrt(max(0.0, discordant - (b_only - a_only) ** 2 / n)) / n
        half = two_sided_z(confidence) * error
        wald = (difference - half, difference + half)
    return McNemar(
        exact,
        exact - mass if gap else 1.0 - mass / 2,
        chi2,
        None if chi2 is None else normal_two_sided(sqrt(chi2)),
        corrected,
        None if corrected is None else normal_two_sided(sqrt(corrected)),
        difference,
        error,
        wald,
        newcombe_paired(both_pass, a_only, b_only, both_fail, confidence),
        1.0 - beta_cdf(0.5, b_only + 1, a_only + 1),
        b_only / a_only if a_only else None,
    )


class PairedT(NamedTuple):
    """The paired t-test; all but `n` and `mean` are None below two pairs, the last three also without spread."""

    n: int
    mean: float | None
    se: float | None
    t: float | None
    p_two_sided: float | None
    ci: Interval | None


def paired_t(differences: Sequence[float], confidence: float = 0.95) -> PairedT:
    """The mean of paired differences against 0: se = sd(ddof 1)/sqrt(n), n - 1 degrees of freedom."""
    n, variance = len(differences), variance_of(differences)
    mean = fsum(differences) / n if n else None
    if mean is None or variance is None:
        return PairedT(n, mean, None, None, None, None)
    error = sqrt(variance / n)
    if error == 0:
        return PairedT(n, mean, 0.0, None, None, None)
    t = mean / error
    return PairedT(n, mean, error, t, t_two_sided(t, n - 1), t_interval(mean, error, n - 1, confidence))


class PairedDifference(NamedTuple):
    """Paired scores; `se_unpaired` shows what ignoring the pairing would cost."""

    n: int
    mean_diff_b_minus_a: float | None
    se_paired: float | None
    se_unpaired: float | None
    correlation: float | None
    t: float | None
    df: int | None
    p_two_sided: float | None
    ci_t: Interval | None
    ci_normal: Interval | None
    p_normal_two_sided: float | None
    cohens_dz: float | None
    variance_reduction: float | None
    n_improved: int
    n_regressed: int
    n_tied: int
    p_sign_flip_exact_two_sided: float | None
    """Share of the 2^n sign assignments with a sum at least as far from 0; None above 16 differing pairs."""


def paired_difference(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> PairedDifference:
    """Per-case differences B - A (Miller 2024, arXiv 2411.00640, section 4). Raises ValueError unless of one length."""
    differences = _differences(a, b)
    test = paired_t(differences, confidence)
    n, error, mean = test.n, test.se, test.mean
    unpaired, correlation = _unpaired(a, b)
    spread = error is not None and error > 0
    half = two_sided_z(confidence) * error if error else 0.0
    return PairedDifference(
        n,
        mean,
        error,
        unpaired,
        correlation,
        test.t,
        n - 1 if n > 1 else None,
        test.p_two_sided,
        test.ci,
        (mean - half, mean + half) if mean is not None and spread else None,
        None if test.t is None else normal_two_sided(test.t),
        None if test.t is None else test.t / sqrt(n),
        1 - (error / unpaired) ** 2 if error is not None and unpaired else None,
        sum(d > 0 for d in differences),
        sum(d < 0 for d in differences),
        sum(d == 0 for d in differences),
        _sign_flip(differences),
    )


def _differences(a: Sequence[float], b: Sequence[float]) -> list[float]:
    if len(a) != len(b):
        raise ValueError(f"expected as many scores of A as of B, found {len(a)} and {len(b)}")
    return [after - before for before, after in zip(a, b, strict=True)]


def _unpaired(a: Sequence[float], b: Sequence[float]) -> tuple[float | None, float | None]:
    """The standard error that ignores the pairing, and Pearson's correlation."""
    variance_a, variance_b, n = variance_of(a), variance_of(b), len(a)
    if variance_a is None or variance_b is None:
        return None, None
    error = sqrt((variance_a + variance_b) / n)
    if variance_a == 0 or variance_b == 0:
        return error, None
    mean_a, mean_b = fsum(a) / n, fsum(b) / n
    covariance = fsum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)) / (n - 1)
    # The roots apart: the product of two tiny variances is 0 in floats.
    return error, covariance / (sqrt(variance_a) * sqrt(variance_b))


def _sign_flip(differences: Sequence[float]) -> float | None:
    sizes = [abs(d) for d in differences if d]
    if not differences or len(sizes) > _MOST_FLIPPED:
        return None
    sums = [0.0]
    for size in sizes:
        sums = [*(s + size for s in sums), *(s - size for s in sums)]
    observed = abs(fsum(differences)) - 1e-9 * fsum(sizes)
    return sum(abs(s) >= observed for s in sums) / len(sums)
