"""The same cases judged twice, as A and as B: is B better? Every difference is B - A."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import (
    Interval,
    beta_cdf,
    binomial_mass,
    binomial_two_sided_half,
    normal_two_sided,
    t_two_sided,
    two_sided_z,
)
from evalwright.statistics.means import t_interval, variance_of
from evalwright.statistics.proportions import clopper_pearson
from evalwright.statistics.rates import wilson
from evalwright.statistics.small_samples import guarded_units
from evalwright.statistics.units import Cluster, Units, units_from

__all__ = [
    "McNemar",
    "McNemarInterval",
    "PairedT",
    "joined_error",
    "mcnemar",
    "mcnemar_exact",
    "mcnemar_interval",
    "mcnemar_units",
    "paired_t",
]

_TINY = 1e-9


def mcnemar_exact(a_only: int, b_only: int) -> float:
    """Two-sided exact p-value of McNemar's test (binomial on the discordant pairs); 1 without any."""
    return binomial_two_sided_half(a_only, a_only + b_only)


def _newcombe(both_pass: int, a_only: int, b_only: int, both_fail: int, confidence: float = 0.95) -> Interval | None:
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
    below = joined_error(p_b - ends_b[0], ends_a[1] - p_a, phi)
    above = joined_error(ends_b[1] - p_b, p_a - ends_a[0], phi)
    return max(-1.0, p_b - p_a - below), min(1.0, p_b - p_a + above)


def joined_error(one: float, other: float, correlation: float) -> float:
    """How far the end of a difference lies from it, by how far those of its two parts do (Zou and Donner 2008)."""
    return sqrt(max(0.0, one * one - 2 * correlation * one * other + other * other))


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
        _newcombe(both_pass, a_only, b_only, both_fail, confidence),
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


class McNemarInterval(NamedTuple):
    """McNemar's exact test with an interval that never contradicts it."""

    p_exact: float
    difference: float | None
    ci: Interval | None
    share_b_of_changed: float | None
    share_ci: Interval | None
    """Exact interval (Clopper and Pearson 1934): it excludes 1/2 exactly when p is at most alpha."""


def mcnemar_interval(both_pass: int, a_only: int, b_only: int, both_fail: int, alpha: float = 0.05) -> McNemarInterval:
    """The exact p, the guarded interval of the difference stretched to hold 0 where p is above alpha, the share B won.

    Raises ValueError for a negative number.
    """
    if min(both_pass, a_only, b_only, both_fail) < 0:
        raise ValueError("expected four numbers of pairs, found a negative one")
    n, changed = both_pass + a_only + b_only + both_fail, a_only + b_only
    if not n:
        return McNemarInterval(1.0, None, None, None, None)
    counts = {Cluster(1.0, 1): b_only, Cluster(-1.0, 1): a_only, Cluster(0.0, 1): n - changed}
    units = units_from({unit: times for unit, times in counts.items() if times})
    ends, exact, _ = mcnemar_units(units, alpha, 0.0)
    share = b_only / changed if changed else None
    return McNemarInterval(exact, units.mean, ends, share, clopper_pearson(b_only, changed, 1 - alpha))


def mcnemar_units(units: Units, alpha: float, margin: float) -> tuple[Interval, float, float]:
    """Interval, exact p of no difference, p of a difference of -margin, for cases that differ by -1, 0 or 1.

    Nulls between the guarded interval and 0 have the p of 0 where the interval was stretched to hold it.
    """
    result = guarded_units(units, -margin, alpha, 1.0)
    low, high = result.ci
    worse = sum(times for unit, times in units.parts.items() if unit.total < 0)
    exact = mcnemar_exact(worse, sum(times for unit, times in units.parts.items() if unit.total > 0))
    if exact > alpha:
        ends = min(low, 0.0), max(high, 0.0)
    elif low <= 0 <= high:  # the exact test detects a difference that the interval just misses
        ends = (_TINY, high) if units.mean > 0 else (low, -_TINY)
    else:
        ends = low, high
    within, was_within = ends[0] <= -margin <= ends[1], low <= -margin <= high
    p_margin = result.p_two_sided if within == was_within and margin else exact
    return ends, exact, p_margin
