"""Drift: changes of behaviour since the baseline run.

This is the rule of evalh's `drift`: a case passes if every result of all its variants, trials and evaluators passed
without error and no system had an error. Rates are over the cases of both runs together, so that a case that passed and
is gone is a regression, and a new one that passes an improvement. These counts have no error rate; interval and p are
those of a comparison of the cases that both runs judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing
from itertools import chain

import msgspec

from evalwright.decisions.comparison import EvaluatorComparison, evaluator_changes
from evalwright.decisions.runs import TwoRuns
from evalwright.model.cell_index import CellIndex, CellSelection, index_of, rereading
from evalwright.model.facts import ResultFacts, TraceFacts
from evalwright.model.protocols import RunReader
from evalwright.model.summary import ComparisonReport, VariantDelta
from evalwright.scoring.indexed_cells import facts_of, facts_of_count
from evalwright.scoring.newest import over_cells
from evalwright.statistics.sums import Mean

__all__ = ["Drift", "MeasureChange", "drift"]

_MEASURES = ("latency_ms", "cost_usd", "tokens_input", "tokens_output")
_Cell = tuple[TraceFacts, Collection[ResultFacts]]


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

    def __init__(self) -> None:
        self.passed: dict[str, bool] = {}
        self.measures: dict[str, Mean] = {name: Mean() for name in _MEASURES}
        self.errored = Mean()


def _side_of_cells(cells: Iterable[_Cell]) -> _Side:
    side = _Side()
    for trace, results in cells:
        sound, errored = _outcome_of(trace, results)
        case = trace.case_key
        side.passed[case] = side.passed.get(case, True) and sound
        side.errored.add(float(errored))
        metrics = trace.metrics
        values = trace.latency_ms, metrics.cost_usd, metrics.token_input, metrics.token_output
        for mean, value in zip(side.measures.values(), values, strict=True):
            if value is not None:
                mean.add(value)
    return side


def _side_of_index(index: CellIndex) -> _Side:
    """The same from what cells have in common, which takes a fraction of the time."""
    side, counts = _Side(), index.counts()
    alike = ((count.alike, facts_of_count(count)) for count in counts)
    own = ((entry.kind, facts_of(entry)) for entry in index.cells(CellSelection(singular=True)))
    ended = [(kind, _outcome_of(*cell)) for kind, cell in chain(alike, own)]
    sound, errored = ({kind for kind, ends in ended if ends[place]} for place in range(2))
    for variant in dict.fromkeys(count.variant for count in counts):
        for cells in index.measured(variant):
            for case, kind in zip(cells.case_keys, cells.kinds, strict=True):
                side.passed[case] = side.passed.get(case, True) and kind in sound
            side.errored.add_sum(len(cells.kinds), float(sum(kind in errored for kind in cells.kinds)))
            columns = cells.latency_ms, cells.cost_usd, cells.tokens_in, cells.tokens_out
            for mean, column in zip(side.measures.values(), columns, strict=True):
                mean.add_all(column)
    return side


def _outcome_of(trace: TraceFacts, results: Collection[ResultFacts]) -> tuple[bool, bool]:
    """Whether a cell passed, and whether the system or an evaluator had an error."""
    judged = [row for row in results if not row.skipped]
    errored = trace.error is not None or any(row.error is not None for row in judged)
    return bool(judged) and not errored and all(row.passed for row in judged), errored


@rereading
def _side_of(reader: RunReader) -> _Side:
    if (index := index_of(reader)) is not None:
        with closing(index):
            return _side_of_index(index)
    return over_cells(reader, reader.plan, _side_of_cells)


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
        MeasureChange(name, old, new, before[name].n, mean.n)
        for name, mean in after.items()
        if (new := mean.mean) is not None and name in before and (old := before[name].mean) is not None
    ]
