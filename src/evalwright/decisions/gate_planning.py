"""What a gate does to systems of known quality, before it is put up."""

from __future__ import annotations

from math import sqrt

import msgspec

from evalwright.decisions.sides import SideCounts
from evalwright.statistics.changes import flake_rate
from evalwright.statistics.gates import flake_false_alarm, gate_characteristic
from evalwright.statistics.proportions import zero_failures_bound

__all__ = ["GatePlan", "GateRow", "gate_plan"]

_USUAL = 0.99
"""The pass rate of a sound case from trial to trial, where no run shows it."""
_TRUE = 6


class GateRow(msgspec.Struct):
    """A system of a known pass rate."""

    true_rate: float
    passes: float
    """The chance that the gate passes it."""


class GatePlan(msgspec.Struct):
    """A gate that asks for the lower end of the interval of the pass rate to be at least so high, one trial a case."""

    at_least: float
    cases: int
    alpha: float
    passes_from: int | None
    """The least number of passed cases that passes; None where all of them are too few."""
    rows: list[GateRow]
    failures_at_most: float
    """The highest failure rate that fits no failure in all cases (one-sided, 1 - alpha; Clopper and Pearson 1934)."""
    case_passes: float
    """How surely a sound case passes: by the flake rate of the run, else assumed."""
    all_must_pass_fails: float
    """The chance that a rule by which every case must pass fails a sound system."""
    majority_of_three_fails: float
    """The same where the majority of three trials counts."""


def gate_plan(cases: int, at_least: float, alpha: float, run: SideCounts | None = None) -> GatePlan:
    """The operating characteristic of a gate `at_least`, and how often stricter rules fail a sound system."""
    rates = sorted({at_least, *(at_least + (1 - at_least) * step / _TRUE for step in range(1, _TRUE))})
    found = gate_characteristic(cases, at_least, rates, 1 - alpha)
    bound = zero_failures_bound(0, cases, 1 - alpha).exact_upper
    sound = _USUAL if run is None else _case_passes(run)
    alarm = flake_false_alarm(sound, cases, 1, 3)
    return GatePlan(
        at_least,
        cases,
        alpha,
        found.smallest_passing_count,
        [GateRow(rate, chance) for rate, chance in zip(rates, found.prob_gate_passes_at_true_rate, strict=True)],
        1.0 if bound is None else bound,
        sound,
        alarm.prob_any_false_failure,
        alarm.prob_any_false_failure_majority,
    )


def _case_passes(run: SideCounts) -> float:
    """The p with 2p(1 - p), the chance that two trials disagree, at the flake rate of the run."""
    judged = [one for one in run.passes.values() if one.judged]
    rate = flake_rate([round(one.total) for one in judged], [one.judged for one in judged]).rate
    return _USUAL if rate is None else (1 + sqrt(max(0.0, 1 - 2 * rate))) / 2
