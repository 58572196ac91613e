"""The running count of a run: cells go in as they finish, a summary comes out at any time.

Counts of shares of a run add up, so that several processes can each count their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from evalwright.model.plan import Plan
from evalwright.model.result import CaseVerdict, Status
from evalwright.model.summary import (
    ComparisonReport,
    EvaluatorRate,
    EvaluatorRollup,
    RunSummary,
    TrialStatistics,
    VariantSummary,
)
from evalwright.scoring.deltas import variants_compared
from evalwright.statistics.proportions import wilson
from evalwright.statistics.trials import share_at_k, share_hat_k

__all__ = ["Tally"]

_STATUSES: tuple[Status, ...] = ("pass", "borderline", "fail", "skip", "error")


class _Metrics(Protocol):
    token_input: int | None
    token_output: int | None
    cost_usd: float | None


class _Trace(Protocol):
    """What is read of a trace: `Trace` and `TraceFacts` both have it."""

    case_id: str
    variant_name: str
    latency_ms: int

    @property
    def metrics(self) -> _Metrics: ...


class _Result(Protocol):
    evaluator: str
    passed: bool
    skipped: bool
    score: float | None

    @property
    def error(self) -> object | None: ...


class _Mean:
    """A sum and how many values are in it; `None` is no value."""

    __slots__ = ("n", "total")

    def __init__(self) -> None:
        self.n, self.total = 0, 0.0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.n += 1
            self.total += value

    def merge(self, other: _Mean) -> None:
        self.n += other.n
        self.total += other.total

    @property
    def mean(self) -> float | None:
        return self.total / self.n if self.n else None


class _Rate:
    """Results of one evaluator on one variant."""

    __slots__ = ("errors", "n", "passed", "scores", "skipped")

    def __init__(self) -> None:
        self.n = self.passed = self.errors = self.skipped = 0
        self.scores = _Mean()

    def add(self, row: _Result) -> None:
        self.n += 1
        if row.error is not None:
            self.errors += 1
        elif row.skipped:
            self.skipped += 1
        elif row.passed:
            self.passed += 1
        self.scores.add(row.score)

    def merge(self, other: _Rate) -> None:
        self.n += other.n
        self.passed += other.passed
        self.errors += other.errors
        self.skipped += other.skipped
        self.scores.merge(other.scores)

    def rate(self) -> EvaluatorRate:
        judged = self.n - self.skipped
        return EvaluatorRate(
            self.passed / judged if judged else 0.0,
            self.scores.mean,
            judged,
            wilson(self.passed, judged),
            self.scores.n,
            self.errors,
            self.skipped,
        )


class _VariantTally:
    """Everything counted about one variant."""

    __slots__ = ("cases", "cells", "cost", "latency", "rates", "tokens_input", "tokens_output")

    def __init__(self, by_case: bool) -> None:
        self.cells = dict.fromkeys(_STATUSES, 0)
        self.latency, self.cost, self.tokens_input, self.tokens_output = _Mean(), _Mean(), _Mean(), _Mean()
        self.rates: dict[str, _Rate] = {}
        self.cases: dict[str, list[int]] | None = {} if by_case else None
        """Trials, passed ones, errored ones and skipped ones by case."""

    def add(self, trace: _Trace, results: Iterable[_Result], status: Status) -> None:
        self.cells[status] += 1
        self.latency.add(trace.latency_ms)
        metrics = trace.metrics
        self.cost.add(metrics.cost_usd)
        self.tokens_input.add(metrics.token_input)
        self.tokens_output.add(metrics.token_output)
        rates = self.rates
        for row in results:
            rate = rates.get(row.evaluator)
            if rate is None:
                rate = rates[row.evaluator] = _Rate()
            rate.add(row)
        if self.cases is not None:
            counts = self.cases.setdefault(trace.case_id, [0, 0, 0, 0])
            counts[0] += 1
            counts[1] += status == "pass"
            counts[2] += status == "error"
            counts[3] += status == "skip"

    def merge(self, other: _VariantTally) -> None:
        for status, number in other.cells.items():
            self.cells[status] += number
        for name in ("latency", "cost", "tokens_input", "tokens_output"):
            getattr(self, name).merge(getattr(other, name))
        for name, rate in other.rates.items():
            self.rates.setdefault(name, _Rate()).merge(rate)
        if self.cases is not None and other.cases is not None:
            for case_id, counts in other.cases.items():
                mine = self.cases.setdefault(case_id, [0, 0, 0, 0])
                self.cases[case_id] = [a + b for a, b in zip(mine, counts, strict=True)]

    def by_case(self) -> tuple[int, int, int, float, int]:
        """Cases, those that always passed, those that ever errored, the mean pass share and the cases behind it."""
        if self.cases is None:
            total = sum(self.cells.values())
            judged = total - self.cells["skip"]
            return total, self.cells["pass"], self.cells["error"], self.cells["pass"] / max(judged, 1), judged
        judged_cases = [(n - skipped, passed) for n, passed, _, skipped in self.cases.values() if n > skipped]
        always = sum(passed == n for n, passed in judged_cases)
        errored = sum(errors > 0 for _, _, errors, _ in self.cases.values())
        share = sum(passed / n for n, passed in judged_cases) / max(len(judged_cases), 1)
        return len(self.cases), always, errored, share, len(judged_cases)


class Tally:
    """The count of a run or of a share of it.

    `by_case` keeps four numbers for each case, which repeated trials and the comparison of variants need; without
    it memory does not grow with the number of cells.
    """

    def __init__(self, variants: Sequence[str], evaluators: Sequence[str], *, by_case: bool) -> None:
        self._by_case = by_case
        self._evaluators = list(evaluators)
        self._variants = {name: _VariantTally(by_case) for name in variants}

    def add(self, trace: _Trace, results: Iterable[_Result], verdict: CaseVerdict) -> None:
        """Count one finished cell. Every cell must be added once only."""
        tally = self._variants.get(trace.variant_name)
        if tally is None:
            tally = self._variants[trace.variant_name] = _VariantTally(self._by_case)
        tally.add(trace, results, verdict.status)

    def merge(self, other: Tally) -> None:
        """Add the count of another share of the same run."""
        for name, theirs in other._variants.items():
            self._variants.setdefault(name, _VariantTally(self._by_case)).merge(theirs)

    def summary(self, plan: Plan, finished_at: datetime) -> RunSummary:
        """The numbers of the run so far; `partial` while cells of the plan are missing."""
        variants = [_summary(name, tally, plan) for name, tally in self._variants.items()]
        cells = sum(variant.cells_total for variant in variants)
        planned = plan.cases_total * sum(v.trials or plan.run.trials for v in plan.variants)
        missing = max(0, planned - cells)
        return RunSummary(
            plan.run_id,
            plan.started_at,
            finished_at,
            plan.config_path,
            plan.config_hash,
            plan.cases_total,
            variants,
            self._rollups(),
            self._comparison(plan),
            status="partial" if missing else "complete",
            cells_total=cells,
            cells_missing=missing,
        )

    def _rollups(self) -> list[EvaluatorRollup]:
        names = sorted({name for tally in self._variants.values() for name in tally.rates})
        return [
            EvaluatorRollup(
                name,
                {variant: t.rates[name].rate() for variant, t in self._variants.items() if name in t.rates},
            )
            for name in names
        ]

    def _comparison(self, plan: Plan) -> ComparisonReport | None:
        baseline = plan.run.baseline_variant
        if baseline is None or baseline not in self._variants:
            return None
        shares = {
            name: {c: passed / n for c, (n, passed, _, _) in (tally.cases or {}).items()}
            for name, tally in self._variants.items()
        }
        latencies = {name: tally.latency.mean or 0.0 for name, tally in self._variants.items()}
        rates = {name: tally.by_case()[3] for name, tally in self._variants.items()}
        return variants_compared(baseline, shares, rates, latencies)


def _summary(name: str, tally: _VariantTally, plan: Plan) -> VariantSummary:
    cases, always, errored, share, judged = tally.by_case()
    return VariantSummary(
        name,
        cases,
        always,
        errored,
        share,
        tally.latency.mean or 0.0,
        tally.cost.mean,
        tally.tokens_input.mean,
        tally.tokens_output.mean,
        judged,
        wilson(share * judged, judged),
        sum(tally.cells.values()),
        {str(status): number for status, number in tally.cells.items()},
        tally.latency.n,
        tally.cost.n,
        tally.tokens_input.n,
        tally.tokens_output.n,
        tally.cost.total if tally.cost.n else None,
        _trials(tally),
    )


def _trials(tally: _VariantTally) -> TrialStatistics | None:
    """pass@k and pass^k; an errored trial is a trial that did not pass, a skipped one is none."""
    counts = [(n - skipped, passed) for n, passed, _, skipped in (tally.cases or {}).values() if n > skipped]
    most = max((n for n, _ in counts), default=0)
    if most < 2:
        return None
    at, hat = [], []
    for k in range(1, most + 1):
        enough = [(n, c) for n, c in counts if n >= k]
        at.append(sum(share_at_k(n, c, k) for n, c in enough) / len(enough))
        hat.append(sum(share_hat_k(n, c, k) for n, c in enough) / len(enough))
    return TrialStatistics(most, len(counts), list(at), list(hat))
