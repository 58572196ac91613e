"""The mean of paired differences of cases, and whether it lies above a margin: test and interval never disagree.

`alpha` is two-sided; the interval has the level 1 - alpha, and the p-value of a null is at most alpha exactly when the
null lies outside. Cases of one group are not independent: the group is the unit then.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import fsum, sqrt
from typing import Literal, NamedTuple

from evalwright.statistics.clusters import jackknife_error
from evalwright.statistics.distributions import Interval, t_quantile, t_two_sided
from evalwright.statistics.paired import mcnemar_units
from evalwright.statistics.small_samples import guarded_units, sign_flip_units
from evalwright.statistics.units import FEW_UNITS, Units, units_of

__all__ = [
    "DecidedDifference",
    "ShipVerdict",
    "TrialsOfCase",
    "decide_difference",
    "decide_suite",
    "decide_units",
    "verdict_of",
]

ShipVerdict = Literal["ship", "dont", "undecided"]


class DecidedDifference(NamedTuple):
    """A mean difference with its interval, and the verdict at a margin. Without any cases all but counts are None."""

    method: str | None
    """`mcnemar`, `t`, `sign_flip` or `guarded`."""
    difference: float | None
    ci: Interval | None
    p_value: float | None
    """Two-sided, of no difference."""
    p_margin: float | None
    """Two-sided, of a difference of -margin."""
    verdict: ShipVerdict
    n: int
    units: int
    """Groups, and cases of no group."""
    effective_units: float
    """n²/Σ m², for groups of m cases (Kish 1965)."""


def decide_difference(
    differences: Sequence[float],
    groups: Sequence[Hashable] | None = None,
    alpha: float = 0.05,
    margin: float = 0.0,
    one_trial: bool = False,
    scale: float = 1.0,
) -> DecidedDifference:
    """The mean of `differences` (B - A, by case) with interval, p-values and verdict.

    `one_trial` says that each is -1, 0 or 1 from a single pass or failure on either side; `scale` is the range of the
    values. Units whose mean is not the most common one have moved. With `one_trial` and no groups, McNemar's exact
    test; else, from 12 moved units on, Student's t with errors by leaving out one unit (Bell and McCaffrey 2002); with
    fewer units, of which 6 moved, the exact sign-flip test (Hartigan 1969); else one unit is added at each end of the
    scale (after Bonett and Price 2012). Raises ValueError for values that are not finite, and unless there are as many
    groups as values.
    """
    return decide_units(units_of(differences, groups), alpha, margin, one_trial, scale)


def decide_units(
    units: Units, alpha: float = 0.05, margin: float = 0.0, one_trial: bool = False, scale: float = 1.0
) -> DecidedDifference:
    """As `decide_difference`, for units made already."""
    number = units.number
    if not number:
        return DecidedDifference(None, None, None, None, None, "undecided", 0, 0, 0.0)
    moved = units.moved()
    if one_trial and number == units.n:
        method, (ci, p_value, p_margin) = "mcnemar", mcnemar_units(units, alpha, margin)
    elif moved >= FEW_UNITS:
        method, (ci, p_value, p_margin) = "t", _student_interval(units, alpha, margin, scale)
    elif number < FEW_UNITS and moved >= FEW_UNITS // 2:
        method, (ci, p_value, p_margin) = "sign_flip", _sign_flip(units, alpha, margin, scale)
    else:
        method, (ci, p_value, p_margin) = "guarded", _guarded_interval(units, alpha, margin, scale)
    verdict = verdict_of(ci, margin)
    return DecidedDifference(method, units.mean, ci, p_value, p_margin, verdict, units.n, number, units.effective)


class TrialsOfCase(NamedTuple):
    """One case of a suite on either side: the total of its trials (passes or scores), and their number."""

    total_a: float
    trials_a: int
    total_b: float
    trials_b: int
    squares_a: float | None = None
    """For scores the total of their squares; None for passes, which are their own squares."""
    squares_b: float | None = None


def decide_suite(
    cases: Sequence[TrialsOfCase], alpha: float = 0.05, margin: float = 0.0, scale: float = 1.0
) -> DecidedDifference:
    """As `decide_difference`, if the cases are the whole population and only their trials are a sample.

    se² = sum of (s²_a/K_a + s²_b/K_b) over n², Student's t with Satterthwaite's degrees of freedom (1946); where all
    trials of all cases agree, guarded with as many units as there are trials a side. `scale` is the range of values.
    Raises ValueError for a case with fewer than two trials on a side.
    """
    if any(case.trials_a < 2 or case.trials_b < 2 for case in cases):
        raise ValueError("expected at least 2 trials a side of every case")
    n = len(cases)
    if not n:
        return decide_difference([])
    means = [case.total_b / case.trials_b - case.total_a / case.trials_a for case in cases]
    parts = [part for case in cases for part in _noise(case, n)]
    variance = fsum(noise for noise, _ in parts)
    difference = fsum(means) / n
    if variance == 0:
        every = [d for d, case in zip(means, cases, strict=True) for _ in range(min(case.trials_a, case.trials_b))]
        method, (ci, p_value, p_margin) = "guarded", _guarded_interval(units_of(every), alpha, margin, scale)
    else:
        method, error = "satterthwaite", sqrt(variance)
        df = variance**2 / fsum(noise**2 / (trials - 1) for noise, trials in parts if noise)
        half = t_quantile(1 - alpha / 2, df) * error
        ci = max(-scale, difference - half), min(scale, difference + half)
        p_value, p_margin = (t_two_sided((difference - null) / error, df) for null in (0.0, -margin))
    return DecidedDifference(method, difference, ci, p_value, p_margin, verdict_of(ci, margin), n, n, float(n))


_ROUNDING = 1e-12
"""As a share of the mean square: summing equal scores may leave a variance below this."""


def _noise(case: TrialsOfCase, n: int) -> list[tuple[float, int]]:
    """The variance that each side's trials add to the mean of `n` cases, and the number of these trials."""
    noise = []
    for total, k, squares in (
        (case.total_a, case.trials_a, case.squares_a),
        (case.total_b, case.trials_b, case.squares_b),
    ):
        mean_square, mean = (total if squares is None else squares) / k, total / k
        variance = mean_square - mean**2
        noise.append((variance / (k - 1) / n**2 if variance > _ROUNDING * mean_square else 0.0, k))
    return noise


def verdict_of(ci: Interval | None, margin: float, *, better: bool = False) -> ShipVerdict:
    """What an interval of a difference says about a loss of `margin`; `better`: only a gain is enough to ship."""
    if ci is None:
        return "undecided"
    if ci[1] < -margin:
        return "dont"
    return "ship" if ci[0] > (0 if better else -margin) else "undecided"


_Found = tuple[Interval, float, float]
"""Interval, p of no difference, p of a difference of -margin."""


def _student_interval(units: Units, alpha: float, margin: float, scale: float) -> _Found:
    error, df, mean = jackknife_error(units), units.df, units.mean
    if error == 0:
        return (mean, mean), float(mean == 0), float(mean == -margin)
    half = t_quantile(1 - alpha / 2, df) * error
    p_value, p_margin = (t_two_sided((mean - null) / error, df) for null in (0.0, -margin))
    return (max(-scale, mean - half), min(scale, mean + half)), p_value, p_margin


def _guarded_interval(units: Units, alpha: float, margin: float, scale: float) -> _Found:
    result = guarded_units(units, 0.0, alpha, scale)
    return result.ci, result.p_two_sided, guarded_units(units, -margin, alpha, scale).p_two_sided


def _sign_flip(units: Units, alpha: float, margin: float, scale: float) -> _Found:
    result = sign_flip_units(units, 0.0, alpha, scale)
    return result.ci, result.p_two_sided, sign_flip_units(units, -margin, alpha, scale).p_two_sided
