"""Two sides of the same cases: what got worse, what got better, and how sure that is."""

from __future__ import annotations

import msgspec

from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.summary import VariantDelta
from evalwright.scoring.deltas import delta
from evalwright.scoring.facts import ResultFacts, TraceFacts
from evalwright.scoring.newest import newest_cells
from evalwright.scoring.verdict import cell_status, names_needed
from evalwright.statistics.proportions import wilson

__all__ = ["EvaluatorComparison", "RunComparison", "Side", "VariantComparison", "compare"]


class Side(msgspec.Struct):
    """One run's share of a comparison: a rate with the number of cases behind it and its 95 % Wilson interval."""

    rate: float
    n: int
    ci95: tuple[float, float] | None
    avg_latency_ms: float | None = None
    latency_n: int = 0
    avg_cost_usd: float | None = None
    cost_n: int = 0


class VariantComparison(msgspec.Struct):
    """One variant in both runs; rates over the cases of each side, the rest over the cases that both have."""

    variant: str
    a: Side
    b: Side
    delta: VariantDelta
    a_only: list[str] = []
    b_only: list[str] = []


class EvaluatorComparison(msgspec.Struct):
    """One evaluator on one variant in both runs."""

    evaluator: str
    variant: str
    a: Side
    b: Side
    rate_delta: float


class RunComparison(msgspec.Struct):
    """Run B against run A."""

    a: str
    b: str
    variants: list[VariantComparison]
    evaluators: list[EvaluatorComparison]
    variants_a_only: list[str] = []
    variants_b_only: list[str] = []


class _Gathered:
    """One variant of one run."""

    def __init__(self) -> None:
        self.trials: dict[str, list[int]] = {}
        self.latency: list[float] = []
        self.cost: list[float] = []
        self.rows: dict[str, list[int]] = {}

    def side(self) -> Side:
        shares = self.shares()
        rate = sum(shares.values()) / len(shares) if shares else 0.0
        return Side(
            rate,
            len(shares),
            wilson(rate * len(shares), len(shares)),
            _mean(self.latency),
            len(self.latency),
            _mean(self.cost),
            len(self.cost),
        )

    def shares(self) -> dict[str, float]:
        return {case: passed / n for case, (n, passed) in self.trials.items()}

    def evaluator(self, name: str) -> Side:
        n, passed = self.rows[name]
        return Side(passed / n, n, wilson(passed, n))


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def compare(a: RunReader, plan_a: Plan, b: RunReader, plan_b: Plan) -> RunComparison:
    """Run B against run A, variant by variant (specification evalh, d.6)."""
    mine, theirs = _gathered(a, plan_a), _gathered(b, plan_b)
    both = [name for name in mine if name in theirs]
    return RunComparison(
        a.location,
        b.location,
        [_variant(name, mine[name], theirs[name]) for name in both],
        [pair for name in both for pair in _evaluators(name, mine[name], theirs[name])],
        [name for name in mine if name not in theirs],
        [name for name in theirs if name not in mine],
    )


def _gathered(reader: RunReader, plan: Plan) -> dict[str, _Gathered]:
    names = names_needed(reader, plan)
    variants: dict[str, _Gathered] = {}
    for trace, results in newest_cells(reader):
        gathered = variants.get(trace.variant_name)
        if gathered is None:
            gathered = variants[trace.variant_name] = _Gathered()
        status = cell_status(plan.pass_criteria, names, trace.error is not None, results)
        _count(gathered, trace, results, status)
    return variants


def _count(gathered: _Gathered, trace: TraceFacts, results: list[ResultFacts], status: str) -> None:
    gathered.latency.append(trace.latency_ms)
    if trace.metrics.cost_usd is not None:
        gathered.cost.append(trace.metrics.cost_usd)
    if status != "skip":
        counts = gathered.trials.setdefault(trace.case_id, [0, 0])
        counts[0] += 1
        counts[1] += status == "pass"
    for row in results:
        if not row.skipped:
            pair = gathered.rows.get(row.evaluator)
            if pair is None:
                pair = gathered.rows[row.evaluator] = [0, 0]
            pair[0] += 1
            pair[1] += row.passed and row.error is None


def _variant(name: str, a: _Gathered, b: _Gathered) -> VariantComparison:
    side_a, side_b = a.side(), b.side()
    latency = (side_b.avg_latency_ms or 0.0) - (side_a.avg_latency_ms or 0.0)
    before, after = a.shares(), b.shares()
    change = delta(name, before, after, _rate_delta(before, after), latency)
    return VariantComparison(
        name, side_a, side_b, change, sorted(a.trials.keys() - b.trials), sorted(b.trials.keys() - a.trials)
    )


def _rate_delta(before: dict[str, float], after: dict[str, float]) -> float:
    """Over the cases of both sides, as its interval and p are: other cases would make it a difference of datasets."""
    both = before.keys() & after.keys()
    return sum(after[case] - before[case] for case in both) / len(both) if both else 0.0


def _evaluators(variant: str, a: _Gathered, b: _Gathered) -> list[EvaluatorComparison]:
    pairs = []
    for name in sorted(a.rows.keys() & b.rows.keys()):
        side_a, side_b = a.evaluator(name), b.evaluator(name)
        pairs.append(EvaluatorComparison(name, variant, side_a, side_b, side_b.rate - side_a.rate))
    return pairs
