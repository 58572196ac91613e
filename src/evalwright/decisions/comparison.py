"""Comparison of two runs of the same cases: one decision for each variant, and the rates beside it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evalwright.decisions.engine import side_rate
from evalwright.decisions.pairing import ValueRange
from evalwright.decisions.runs import TwoRuns, two_runs
from evalwright.decisions.sides import PASS_RATE, CaseTotal, SideCounts
from evalwright.decisions.terms import Terms
from evalwright.model.decision import Decision, SideRate
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.summary import VariantDelta

__all__ = [
    "EvaluatorComparison",
    "RunComparison",
    "Side",
    "VariantComparison",
    "compare",
    "comparison_of",
    "delta_of",
    "regressed",
]


class Side(msgspec.Struct):
    """One run's share of a comparison: a rate with the number of cases behind it and its 95 % interval.

    None where no case was judged. Repeated trials and groups of cases are paid their price in the interval.
    """

    rate: float | None
    n: int
    ci95: tuple[float, float] | None
    avg_latency_ms: float | None = None
    latency_n: int = 0
    avg_cost_usd: float | None = None
    cost_n: int = 0


class VariantComparison(msgspec.Struct):
    """One variant in both runs: rates and means of all cases of each side, the delta of the cases that both judged."""

    variant: str
    a: Side
    b: Side
    delta: VariantDelta
    decision: Decision
    a_only: list[str] = []
    b_only: list[str] = []
    avg_cost_delta_usd: float | None = None


class EvaluatorComparison(msgspec.Struct):
    """One evaluator on one variant in both runs."""

    evaluator: str
    variant: str
    a: Side
    b: Side
    rate_delta: float | None


class RunComparison(msgspec.Struct):
    """Run B against run A."""

    a: str
    b: str
    variants: list[VariantComparison]
    evaluators: list[EvaluatorComparison]
    variants_a_only: list[str] = []
    variants_b_only: list[str] = []


def compare(a: RunReader, plan_a: Plan, b: RunReader, plan_b: Plan, terms: Terms | None = None) -> RunComparison:
    """Compare run B with run A, variant by variant; every difference is B − A."""
    return comparison_of(two_runs(a, plan_a, b, plan_b, terms or Terms()), a.location, b.location)


def comparison_of(runs: TwoRuns, a: str, b: str) -> RunComparison:
    """The comparison of two runs that are already counted; `a` and `b` are their places."""
    both = [name for name in runs.a if name in runs.b]
    return RunComparison(
        a,
        b,
        [_variant(name, runs) for name in both],
        [pair for name in both for pair in _evaluators(runs, name)],
        [name for name in runs.a if name not in runs.b],
        [name for name in runs.b if name not in runs.a],
    )


def _variant(name: str, runs: TwoRuns) -> VariantComparison:
    decision = runs.decision(name, name)
    one, other = _side(runs.a[name], decision.a), _side(runs.b[name], decision.b)
    delta = delta_of(name, decision, _gap(one.avg_latency_ms, other.avg_latency_ms))
    identity = decision.identity
    cost = _gap(one.avg_cost_usd, other.avg_cost_usd)
    return VariantComparison(name, one, other, delta, decision, identity.a_only, identity.b_only, cost)


def delta_of(name: str, decision: Decision, latency: float | None) -> VariantDelta:
    """A decision in the form in which runs store what changed."""
    changed = decision.changed
    numbers = decision.n, decision.ci, decision.p_better
    return VariantDelta(name, decision.difference, latency, changed.worse, changed.better, *numbers)


def _gap(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _side(counts: SideCounts, rate: SideRate) -> Side:
    return Side(rate.rate, rate.n, rate.ci, *counts.mean("latency"), *counts.mean("cost"))


def _evaluators(runs: TwoRuns, variant: str) -> list[EvaluatorComparison]:
    pairs = []
    before, after = runs.a[variant], runs.b[variant]
    for name in sorted(before.scores.keys() & after.scores.keys()):
        one, other = (_passed(side.scores[name], side.groups) for side in (before, after))
        pairs.append(EvaluatorComparison(name, variant, one, other, _gap(one.rate, other.rate)))
    return pairs


def _passed(outcomes: Mapping[str, CaseTotal], groups: Mapping[str, str]) -> Side:
    passes = {case: CaseTotal(found.passed, found.judged) for case, found in outcomes.items()}
    rate = side_rate(passes, groups, PASS_RATE, 0.05, ValueRange())
    return Side(rate.rate, rate.n, rate.ci)


def regressed(decision: Decision, margin: float) -> bool | None:
    """Whether B is worse by more than `margin`, beyond noise.

    None where what errors would have been decides that, and where nothing was measured.
    """
    if decision.ci is None:
        return None
    bounds = [bound.ci for bound in (decision.errors.all_failed, decision.errors.all_passed) if bound is not None]
    found = {ends is not None and ends[1] < -margin for ends in (decision.ci, *bounds)}
    return found.pop() if len(found) == 1 else None
