"""Decisions: not worse than before, good enough for a gate, and how often chance decides wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import exp, log, log1p
from typing import NamedTuple

from evalwright.statistics.distributions import binomial_cdf, log_beta, t_cdf, t_quantile
from evalwright.statistics.paired import paired_t
from evalwright.statistics.rates import wilson
from evalwright.statistics.units import require_finite

__all__ = [
    "EValue",
    "FalseAlarm",
    "GateCharacteristic",
    "NonInferiority",
    "e_value",
    "flake_false_alarm",
    "gate_characteristic",
    "non_inferiority",
]


class NonInferiority(NamedTuple):
    """Is B at most `margin` worse than A? "Not significantly worse" is another, weaker question."""

    lower_bound_one_sided_95: float | None
    """Of the mean difference B - A, at confidence 1 - alpha."""
    p_non_inferior: float | None
    non_inferior: bool | None
    p_equivalence_tost: float | None
    p_regression_one_sided: float | None
    regression_significant: bool | None


def non_inferiority(a: Sequence[float], b: Sequence[float], margin: float, alpha: float = 0.05) -> NonInferiority:
    """Paired t-tests against the margin and against 0; two one-sided tests for equivalence (Schuirmann 1987).

    None below two pairs or without spread. Raises ValueError unless A and B are of one length and finite.
    """
    require_finite(chain(a, b))
    test = paired_t([after - before for before, after in zip(a, b, strict=True)])
    mean, error, df = test.mean, test.se, test.n - 1
    if mean is None or not error:
        return NonInferiority(None, None, None, None, None, None)
    lower = mean - t_quantile(1 - alpha, df) * error
    worse = t_cdf(-(mean + margin) / error, df)
    better = t_cdf((mean - margin) / error, df)
    regression = t_cdf(mean / error, df)
    return NonInferiority(lower, worse, lower > -margin, max(worse, better), regression, regression < alpha)


class GateCharacteristic(NamedTuple):
    """How a gate treats systems of known quality."""

    smallest_passing_count: int | None
    """None when even a perfect result does not pass."""
    prob_gate_passes_at_true_rate: list[float]


def gate_characteristic(
    n: int, min_rate: float, true_rates: Sequence[float], confidence: float = 0.95
) -> GateCharacteristic:
    """A gate that requires Wilson's lower end to be at least `min_rate`: binomial tails at each true rate."""
    for count in range(n + 1):
        ends = wilson(count, n, confidence)
        if ends is not None and ends[0] >= min_rate:
            return GateCharacteristic(count, [1 - binomial_cdf(count - 1, n, rate) for rate in true_rates])
    return GateCharacteristic(None, [0.0 for _ in true_rates])


class FalseAlarm(NamedTuple):
    """How often a gate that all cases must pass fails although nothing changed."""

    prob_any_false_failure: float
    per_case_pass_with_best_of: float
    per_case_pass_majority: float
    prob_any_false_failure_majority: float


def flake_false_alarm(per_case_pass_rate: float, cases: int, retries_plus_one: int, majority_of: int) -> FalseAlarm:
    """Binomial, in closed form. Retrying until a pass also lets truly failing cases through, a majority hardly does."""
    majority = 1 - binomial_cdf(majority_of // 2, majority_of, per_case_pass_rate)
    return FalseAlarm(
        1 - per_case_pass_rate**cases,
        1 - (1 - per_case_pass_rate) ** retries_plus_one,
        majority,
        1 - majority**cases,
    )


class EValue(NamedTuple):
    """Evidence against a rate that stays valid however often one looks: reject when e_value >= 1/alpha."""

    log_e_value: float
    e_value: float | None
    """None above the largest number."""
    anytime_p: float


def e_value(successes: int, n: int, p0: float) -> EValue:
    """Uniform mixture: B(s+1, n-s+1)/(p0^s (1-p0)^(n-s)) (Ramdas et al. 2023). Raises ValueError unless 0 < p0 < 1."""
    if not 0 < p0 < 1:
        raise ValueError(f"expected 0 < p0 < 1, found {p0}")
    failures = n - successes
    value = log_beta(successes + 1, failures + 1) - successes * log(p0) - failures * log1p(-p0)
    return EValue(value, exp(value) if value < 700 else None, min(1.0, exp(-value)) if value > -700 else 1.0)
