"""Comparison of two runs of the same cases: regressions, improvements, intervals."""

from __future__ import annotations

import msgspec

from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.summary import VariantDelta
from evalwright.scoring.counts import VariantCount
from evalwright.scoring.deltas import delta
from evalwright.scoring.fold import fold
from evalwright.statistics.proportions import wilson

__all__ = ["EvaluatorComparison", "RunComparison", "Side", "VariantComparison", "compare"]


class Side(msgspec.Struct):
    """One run's share of a comparison: a rate with the number of cases behind it and its 95 % Wilson interval.

    A group of cases counts as one for the interval.
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


def compare(a: RunReader, plan_a: Plan, b: RunReader, plan_b: Plan) -> RunComparison:
    """Compare run B with run A, variant by variant; every difference is B − A."""
    mine, theirs = _variants(a, plan_a), _variants(b, plan_b)
    both = [name for name in mine if name in theirs]
    return RunComparison(
        a.location,
        b.location,
        [_compared(name, mine[name], theirs[name]) for name in both],
        [pair for name in both for pair in _evaluators(name, mine[name], theirs[name])],
        [name for name in mine if name not in theirs],
        [name for name in theirs if name not in mine],
    )


def _variants(reader: RunReader, plan: Plan) -> dict[str, VariantCount]:
    """The counts of the variants that have cells."""
    return {
        name: count for name, count in fold(reader, plan, by_case=True).variants.items() if any(count.cells.values())
    }


def _compared(name: str, a: VariantCount, b: VariantCount) -> VariantComparison:
    cases_a, cases_b = (a.cases or {}).keys(), (b.cases or {}).keys()
    return VariantComparison(
        name,
        _side(a),
        _side(b),
        # Over the cases of both runs, like interval and p: other cases would make it a difference of datasets.
        delta(name, a.trials(), b.trials(), a.grouped | b.grouped, a.latency.change(b.latency)),
        sorted(cases_a - cases_b),
        sorted(cases_b - cases_a),
        a.cost.change(b.cost),
    )


def _side(count: VariantCount) -> Side:
    cases = count.by_case()
    return Side(
        cases.pass_rate,
        cases.judged,
        wilson((cases.pass_rate or 0.0) * cases.independent, cases.independent),
        count.latency.mean,
        count.latency.n,
        count.cost.mean,
        count.cost.n,
    )


def _evaluators(variant: str, a: VariantCount, b: VariantCount) -> list[EvaluatorComparison]:
    pairs = []
    for name in sorted(a.evaluators.keys() & b.evaluators.keys()):
        before, after = a.rate(name), b.rate(name)
        side_a, side_b = (Side(rate.pass_rate, rate.cases, rate.pass_rate_ci95) for rate in (before, after))
        change = None if side_a.rate is None or side_b.rate is None else side_b.rate - side_a.rate
        pairs.append(EvaluatorComparison(name, variant, side_a, side_b, change))
    return pairs
