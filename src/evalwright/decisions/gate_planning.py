"""How a gate treats systems of known quality, before it is set up."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import msgspec

from evalwright.decisions.sides import SideCounts, units_of_cases
from evalwright.decisions.spreads import design_effect, trials_share
from evalwright.statistics.changes import flake_rate
from evalwright.statistics.gates import flake_false_alarm, gate_characteristic
from evalwright.statistics.proportions import zero_failures_bound
from evalwright.statistics.units import FEW_UNITS

__all__ = ["GatePlan", "GateRow", "GateTrials", "gate_plan"]

_USUAL = 0.99
"""The pass rate of a sound case from trial to trial, where no run shows it."""
_TRUE = 6


class GateRow(msgspec.Struct):
    """A system of a known pass rate."""

    true_rate: float
    passes: float
    """The chance that the gate passes it."""


class GateTrials(msgspec.Struct):
    """The same gate with this many trials of each case, by the spread of a run."""

    trials: int
    effective_cases: int
    """The number of independent single-trial cases with an equally narrow interval."""
    passes_from: float | None
    """The lowest pass rate that passes."""
    rows: list[GateRow]


class GatePlan(msgspec.Struct):
    """A gate on the lower end of the interval of the pass rate, with one trial per case."""

    at_least: float
    cases: int
    alpha: float
    passes_from: int | None
    """The smallest number of passed cases that passes; None if even all of them are too few."""
    rows: list[GateRow]
    failures_at_most: float
    """The highest failure rate consistent with no failure at all (one-sided, 1 - alpha; Clopper and Pearson 1934)."""
    case_passes: float
    """The probability that a sound case passes: by the flake rate of the run, else assumed."""
    all_must_pass_fails: float
    """The chance that a rule by which every case must pass fails a sound system."""
    majority_of_three_fails: float
    """The same if the majority of three trials counts."""
    by_trials: list[GateTrials] = []
    """With more trials, or groups; empty if no run shows their effect."""
    few_units: bool = False
    """Too few groups and cases of the run differ from the rest to tell: intervals follow another rule there."""


def gate_plan(
    cases: int, at_least: float, alpha: float, run: SideCounts | None = None, trials: Sequence[int] = (1,)
) -> GatePlan:
    """The operating characteristic of a gate `at_least`, and how often stricter rules fail a sound system.

    The effect of `trials` and groups is known only from a run that has them.
    """
    rates = sorted({at_least, *(at_least + (1 - at_least) * step / _TRUE for step in range(1, _TRUE))})
    characteristic = gate_characteristic(cases, at_least, rates, 1 - alpha)
    bound = zero_failures_bound(0, cases, 1 - alpha).exact_upper
    sound = _USUAL if run is None else _case_passes(run)
    alarm = flake_false_alarm(sound, cases, 1, 3)
    few = run is not None and _has_few_units(run, cases)
    return GatePlan(
        at_least,
        cases,
        alpha,
        characteristic.smallest_passing_count,
        [
            GateRow(rate, chance)
            for rate, chance in zip(rates, characteristic.prob_gate_passes_at_true_rate, strict=True)
        ],
        1.0 if bound is None else bound,
        sound,
        alarm.prob_any_false_failure,
        alarm.prob_any_false_failure_majority,
        [] if run is None or few else _by_trials(cases, at_least, rates, alpha, run, trials),
        few,
    )


def _has_few_units(run: SideCounts, cases: int) -> bool:
    """Whether the interval of this many cases in groups like the run's would go by units instead of their spread."""
    if not run.groups:
        return False
    units = units_of_cases(run.passes, run.groups)
    return units.moved() * cases < FEW_UNITS * units.n


def _by_trials(
    cases: int, at_least: float, rates: Sequence[float], alpha: float, run: SideCounts, trials: Sequence[int]
) -> list[GateTrials]:
    """With k trials the variance of a case's share is that between cases plus 1/k of that within."""
    within, effect = trials_share(run), design_effect(run)
    if within is None and effect == 1:
        return []
    parts = []
    for k in [k for k in (trials if within is not None else (1,)) if k > 1 or effect > 1]:
        effective = max(1, round(cases / effect / (1 - (within or 0.0) * (1 - 1 / k))))
        of = gate_characteristic(effective, at_least, rates, 1 - alpha)
        rows = [GateRow(rate, chance) for rate, chance in zip(rates, of.prob_gate_passes_at_true_rate, strict=True)]
        least = None if of.smallest_passing_count is None else of.smallest_passing_count / effective
        parts.append(GateTrials(k, effective, least, rows))
    return parts


def _case_passes(run: SideCounts) -> float:
    """The p with 2p(1 - p), the chance that two trials disagree, at the flake rate of the run."""
    judged = [passes for passes in run.passes.values() if passes.judged]
    rate = flake_rate([round(case.total) for case in judged], [case.judged for case in judged]).rate
    return _USUAL if rate is None else (1 + sqrt(max(0.0, 1 - 2 * rate))) / 2
