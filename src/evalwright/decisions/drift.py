"""Drift: changes of behaviour since the baseline run.

This is the rule of evalh's `drift`: a case passes if every result of all its variants, trials and evaluators passed
without error and no system had an error. Rates are over the cases of both runs together, so that a case that passed and
is gone is a regression, and a new one that passes an improvement. These counts have no error rate; interval and p are
those of a comparison of the cases that both runs judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import closing

import msgspec

from evalwright.decisions.comparison import EvaluatorComparison, evaluator_changes
from evalwright.decisions.runs import TwoRuns
from evalwright.model.cell_index import index_of, rereading
from evalwright.model.facts import ResultFacts, TraceFacts
from evalwright.model.protocols import RunReader
from evalwright.model.summary import ComparisonReport, VariantDelta
from evalwright.scoring.looked_up import indexed_cells
from evalwright.scoring.newest import over_cells
from evalwright.statistics.sums import Mean

__all__ = ["Drift", "MeasureChange", "drift"]


class MeasureChange(msgspec.Struct):
    """One measure on both sides, and how many values are behind each."""

    name: str
    before: float
    after: float
    n_before: int
    n_after: int

    @property
    def change(self) -> float:
        return self.after - self.before


class Drift(msgspec.Struct):
    """The report for `drift.yaml`, and the numbers that are shown with it."""

    report: ComparisonReport
    evaluators: list[EvaluatorComparison]
    """Evaluators that both runs have: changes over the cases that both judged."""
    errored: list[MeasureChange]
    """The share of cells with an error of the system or of an evaluator, where both runs have cells."""
    measures: list[MeasureChange]
    """Means of latency (ms), cost (US dollars) and tokens, where both runs report them."""


class _Side:
    """Counts of one run."""

    def __init__(self, cells: Iterable[tuple[TraceFacts, Collection[ResultFacts]]]) -> None:
        self.passed: dict[str, bool] = {}
        self.measures: defaultdict[str, Mean] = defaultdict(Mean)
        self.errored = Mean()
        for trace, results in cells:
            self._count(trace, results)

    def _count(self, trace: TraceFacts, results: Collection[ResultFacts]) -> None:
        judged = [row for row in results if not row.skipped]
        errored = trace.error is not None or any(row.error is not None for row in judged)
        self.errored.add(float(errored))
        sound = bool(judged) and not errored and all(row.passed for row in judged)
        case = trace.case_key
        self.passed[case] = self.passed.get(case, True) and sound
        metrics = trace.metrics
        values = {
            "latency_ms": trace.latency_ms,
            "cost_usd": metrics.cost_usd,
            "tokens_input": metrics.token_input,
            "tokens_output": metrics.token_output,
        }
        for name, value in values.items():
            if value is not None:
                self.measures[name].add(value)


@rereading
def _side_of(reader: RunReader) -> _Side:
    if (index := index_of(reader)) is not None:
        with closing(index):
            return _Side(indexed_cells(index))
    return over_cells(reader, reader.plan, _Side)


def drift(baseline: RunReader, current: RunReader, baseline_run_id: str, runs: TwoRuns) -> Drift:
    """Compare a run with its baseline; `runs` are both of them, counted."""
    before, after = _side_of(baseline), _side_of(current)
    cases = sorted(before.passed.keys() | after.passed.keys())
    worse = [case for case in cases if before.passed.get(case) and not after.passed.get(case)]
    better = [case for case in cases if after.passed.get(case) and not before.passed.get(case)]
    n = len(cases)
    union = (len(better) - len(worse)) / n if n else 0.0
    latency = before.measures["latency_ms"].change(after.measures["latency_ms"])
    both = [name for name in runs.a if name in runs.b]
    decisions = [runs.decision(name, name) for name in both]
    paired = decisions[0] if len(decisions) == 1 else None
    delta = VariantDelta("current", union, latency, worse, better, n)
    if paired is not None and paired.n:
        delta.pass_rate_delta, delta.n = paired.difference, paired.n
        delta.pass_rate_delta_ci95, delta.p_value = paired.ci, paired.p_better
    report = ComparisonReport(baseline_run_id, [delta], "drift", baseline_run_id, len(worse), len(better))
    report.counted, report.union_delta = n, union
    report.decision, report.decisions = paired, decisions if paired is None else []
    errored = _changes({"errors": before.errored}, {"errors": after.errored})
    evaluators = [
        change
        for name, decision in zip(both, decisions, strict=True)
        for change in evaluator_changes(runs, name, decision)
    ]
    return Drift(report, evaluators, errored, _changes(before.measures, after.measures))


def _changes(before: dict[str, Mean], after: dict[str, Mean]) -> list[MeasureChange]:
    """Measures that both sides have."""
    return [
        MeasureChange(name, before[name].total / before[name].n, mean.total / mean.n, before[name].n, mean.n)
        for name, mean in after.items()
        if mean.n and name in before and before[name].n
    ]
