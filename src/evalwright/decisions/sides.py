"""One variant of one run, case by case: what every decision is made from. One pass over the run, memory by case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from math import fsum
from typing import NamedTuple

import msgspec

from evalwright.model.cell import OfCase
from evalwright.model.cell_index import CellIndex, CellMeasures, index_of
from evalwright.model.facts import ResultFacts, TraceFacts
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import Status
from evalwright.scoring.looked_up import facts_of, indexed_cells
from evalwright.scoring.newest import Superseded, newest_cells, streamed_cells
from evalwright.scoring.verdict import cell_status, names_needed, passes_over_errored

__all__ = ["MEASURES", "PASS_RATE", "CaseTotal", "SideCounts", "sides_of"]

PASS_RATE = "pass_rate"
MEASURES = ("cost", "latency", "tokens")


class CaseTotal(msgspec.Struct, gc=False):
    """The trials of one case: a total over those judged, and how many have no verdict."""

    total: float = 0.0
    judged: int = 0
    target_errors: int = 0
    evaluator_errors: int = 0
    passed: int = 0
    """Of an evaluator's results, whose total is one of scores."""
    squares: float = 0.0
    """Of an evaluator's scores: the total of their squares."""

    @property
    def value(self) -> float:
        """The mean over judged trials; only where there are some."""
        return self.total / self.judged


class _Measured(msgspec.Struct, gc=False):
    total: float = 0.0
    n: int = 0


class _Alike(NamedTuple):
    """What one cell, and every other that is alike, adds to a side."""

    outcome: CaseTotal
    scores: list[tuple[dict[str, CaseTotal], CaseTotal]]
    """With the evaluator's scores of that side, to which each is added."""


class SideCounts(msgspec.Struct):
    """One variant of one run."""

    variant: str
    passes: dict[str, CaseTotal] = msgspec.field(default_factory=dict)
    """By case; a skipped trial is in none of the counts."""
    scores: dict[str, dict[str, CaseTotal]] = msgspec.field(default_factory=dict)
    """By evaluator and case, of scores; of passes for an evaluator without scores."""
    measures: dict[str, dict[str, _Measured]] = msgspec.field(default_factory=lambda: {name: {} for name in MEASURES})
    """By measure and case: US dollars, milliseconds, tokens of judged trials."""
    latencies: dict[str, list[float]] = msgspec.field(default_factory=dict)
    """Of each judged trial, by case."""
    groups: dict[str, str] = msgspec.field(default_factory=dict)
    range: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """Least and greatest score seen of each evaluator."""

    def outcomes(self, metric: str) -> Mapping[str, CaseTotal]:
        """The cases by one metric: `pass_rate` or the name of an evaluator."""
        return self.passes if metric == PASS_RATE else self.scores.get(metric, {})

    def mean_of(self, measure: str) -> Mapping[str, float]:
        """The mean of a measure over the judged trials of each case that has one."""
        return {case: found.total / found.n for case, found in self.measures[measure].items() if found.n}

    def mean(self, measure: str) -> tuple[float | None, int]:
        """The mean of a measure over all judged trials, and their number."""
        found = self.measures[measure].values()
        n = sum(one.n for one in found)
        return (fsum(one.total for one in found) / n if n else None), n

    def of(self, cases: Collection[str]) -> SideCounts:
        """The same side with only some of its cases."""
        kept = frozenset(cases)
        return msgspec.structs.replace(
            self,
            passes={case: found for case, found in self.passes.items() if case in kept},
            scores={
                name: {case: found for case, found in outcomes.items() if case in kept}
                for name, outcomes in self.scores.items()
            },
        )

    def add(self, trace: TraceFacts, rows: Collection[ResultFacts], status: Status) -> None:
        """Count one cell."""
        case = trace.case_key
        if trace.group is not msgspec.UNSET:
            self.groups[case] = trace.group
        broken = status == "error" or any(row.error is not None for row in rows)
        outcome = _at(self.passes, case)
        if broken:
            by_target = trace.error is not None
            outcome.target_errors += by_target
            outcome.evaluator_errors += not by_target
        elif status != "skip":
            outcome.judged += 1
            outcome.total += status == "pass"
            metrics = trace.metrics
            self._measure(case, trace.latency_ms, metrics.cost_usd, metrics.token_input, metrics.token_output)
        if trace.error is None or status != "error":
            self._judge(case, rows)

    def alike(self, one: SideCounts) -> _Alike:
        """What all cells share that are alike with the only one that `one` counted."""
        for name, (low, high) in one.range.items():
            ends = self.range.get(name, (low, high))
            self.range[name] = (min(low, ends[0]), max(high, ends[1]))
        (outcome,) = one.passes.values()
        scores = [(self.scores.setdefault(name, {}), next(iter(found.values()))) for name, found in one.scores.items()]
        return _Alike(outcome, scores)

    def add_alike(self, alike: _Alike, cell: CellMeasures) -> None:
        """Count the only trial of a case, of which all but its name and what it took is known."""
        _, case, _, group, latency, cost, tokens_in, tokens_out, _ = cell
        if group is not None:
            self.groups[case] = group
        self.passes[case] = alike.outcome
        for scores, found in alike.scores:
            scores[case] = found
        if alike.outcome.judged:
            self._measure(case, latency, cost, tokens_in, tokens_out)

    def spread_errors(self) -> None:
        """Tell every evaluator which trials it had no answer of: where the system erred, there are no results."""
        for outcomes in self.scores.values():
            for case, outcome in self.passes.items():
                if outcome.target_errors:
                    _at(outcomes, case).target_errors = outcome.target_errors

    def _judge(self, case: str, rows: Collection[ResultFacts]) -> None:
        for row in rows:
            outcome = _at(self.scores.setdefault(row.evaluator, {}), case)
            if row.error is not None:
                outcome.evaluator_errors += 1
            elif not row.skipped:
                value = float(row.passed) if row.score is None else row.score
                low, high = self.range.get(row.evaluator, (value, value))
                self.range[row.evaluator] = (min(low, value), max(high, value))
                outcome.judged += 1
                outcome.total += value
                outcome.squares += value * value
                outcome.passed += row.passed

    def _measure(
        self, case: str, latency: int | None, cost: float | None, tokens_in: int | None, tokens_out: int | None
    ) -> None:
        if latency is not None:
            _add_to(self.measures["latency"], case, latency)
            self.latencies.setdefault(case, []).append(latency)
        if cost is not None:
            _add_to(self.measures["cost"], case, cost)
        if tokens_in is not None or tokens_out is not None:
            _add_to(self.measures["tokens"], case, (tokens_in or 0) + (tokens_out or 0))


def _add_to(measured: dict[str, _Measured], case: str, value: float) -> None:
    found = measured.get(case)
    if found is None:
        measured[case] = _Measured(value, 1)
    else:
        found.total += value
        found.n += 1


def _at(outcomes: dict[str, CaseTotal], case: str) -> CaseTotal:
    found = outcomes.get(case)
    if found is None:
        found = outcomes[case] = CaseTotal()
    return found


class _Verdicts(OfCase, gc=False):
    variant_name: str
    status: Status
    trial: int = 0
    attempt: int = 1


_Key = tuple[str, str, int, int]


class _Judging(NamedTuple):
    plan: Plan
    needed: list[str]
    stored: Mapping[_Key, Status]
    """Verdicts as stored, for plans in which each case names its own evaluators."""

    def status(self, trace: TraceFacts, rows: Collection[ResultFacts]) -> Status | None:
        """The verdict of a cell; None for one whose results were not written any more."""
        if self.plan.evaluators_by_case:
            return self.stored.get((trace.case_key, trace.variant_name, trace.trial, trace.attempt))
        if self.needed and not rows and trace.error is None:
            return None
        return cell_status(self.plan.pass_criteria, self.needed, trace.error is not None, rows)


def sides_of(reader: RunReader, plan: Plan) -> dict[str, SideCounts]:
    """The variants of a stored run that have cells."""
    stored: dict[_Key, Status] = {}
    if plan.evaluators_by_case:
        stored = {(v.case_key, v.variant_name, v.trial, v.attempt): v.status for v in reader.verdicts(_Verdicts)}
        return _counted(newest_cells(reader), _Judging(plan, [], stored))
    judging = _Judging(plan, names_needed(reader, plan), stored)
    if (index := index_of(reader)) is not None:
        with closing(index):
            return _of_index(index, judging)
    try:
        evaluators = len(plan.evaluators)
        errored = 0 if passes_over_errored(plan) else evaluators
        return _counted(streamed_cells(reader, evaluators, errored=errored), judging)
    except Superseded:
        return _counted(newest_cells(reader), judging)


def _of_index(index: CellIndex, judging: _Judging) -> dict[str, SideCounts]:
    """The sides of an indexed run. Of single trials, cells that are alike share what was counted of the first."""
    plan = judging.plan
    if any((variant.trials or plan.run.trials) > 1 for variant in plan.variants):
        return _counted(indexed_cells(index), judging)
    sides: dict[str, SideCounts] = {}
    known: dict[int, _Alike] = {}
    for cell in index.measured():
        side = sides.get(cell.variant)
        alike = known.get(cell.alike) if cell.alike is not None else None
        if side is None or alike is None:
            trace, rows = facts_of(index.numbered(cell.number))
            status = judging.status(trace, rows)
            if status is None:
                continue
            if side is None:
                side = sides[cell.variant] = SideCounts(cell.variant)
            one = SideCounts(cell.variant)
            one.add(trace, rows, status)
            alike = side.alike(one)
            if cell.alike is not None:
                known[cell.alike] = alike
        side.add_alike(alike, cell)
    return _in_order(sides, judging)


def _counted(cells: Iterable[tuple[TraceFacts, Collection[ResultFacts]]], judging: _Judging) -> dict[str, SideCounts]:
    sides: dict[str, SideCounts] = {}
    for trace, rows in cells:
        status = judging.status(trace, rows)
        if status is None:
            continue
        side = sides.get(trace.variant_name)
        if side is None:
            side = sides[trace.variant_name] = SideCounts(trace.variant_name)
        side.add(trace, rows, status)
    return _in_order(sides, judging)


def _in_order(sides: dict[str, SideCounts], judging: _Judging) -> dict[str, SideCounts]:
    for side in sides.values():
        side.spread_errors()
    # Cells are stored in the order in which they ended; variants are shown in that of the suite.
    return {v.name: sides[v.name] for v in judging.plan.variants if v.name in sides} | sides
