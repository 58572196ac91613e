"""One variant of one run, case by case: what every decision is made from. One pass over the run, memory by case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from itertools import compress
from math import fsum
from typing import NamedTuple

import msgspec

from evalwright.model.cell import OfCase
from evalwright.model.cell_index import CellIndex, CellMeasures, CellSelection, index_of
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


class Measured(msgspec.Struct):
    """What the judged trials of each case took."""

    first: dict[str, float] = msgspec.field(default_factory=dict)
    several: dict[str, list[float]] = msgspec.field(default_factory=dict)
    """All values of the cases that have more than one."""

    def add(self, case: str, value: float) -> None:
        if case not in self.first:
            self.first[case] = value
        elif case in self.several:
            self.several[case].append(value)
        else:
            self.several[case] = [self.first[case], value]

    def add_column(self, cases: Sequence[str], values: Sequence[float | None]) -> None:
        """Add the only trials of so many cases."""
        missing = values.count(None)
        if not missing:
            self.first.update(zip(cases, values, strict=True))  # type: ignore[arg-type]
        elif missing < len(values):
            self.first.update((case, value) for case, value in zip(cases, values, strict=True) if value is not None)

    def by_case(self) -> Mapping[str, Sequence[float]]:
        """The values of each case."""
        return {case: (value,) for case, value in self.first.items()} | self.several

    def means(self) -> Mapping[str, float]:
        """The mean of each case."""
        return {**self.first, **{case: sum(values) / len(values) for case, values in self.several.items()}}

    def values(self) -> list[float]:
        """The values of all cases."""
        if not self.several:
            return list(self.first.values())
        return [value for case, one in self.first.items() for value in self.several.get(case, (one,))]


class _Alike(NamedTuple):
    """What one cell, and every other that is alike, adds to a side."""

    outcome: CaseTotal
    scores: dict[str, CaseTotal]
    """By evaluator."""


class SideCounts(msgspec.Struct):
    """One variant of one run."""

    variant: str
    passes: dict[str, CaseTotal] = msgspec.field(default_factory=dict)
    """By case; a skipped trial is in none of the counts."""
    scores: dict[str, dict[str, CaseTotal]] = msgspec.field(default_factory=dict)
    """By evaluator and case, of scores; of passes for an evaluator without scores."""
    measures: dict[str, Measured] = msgspec.field(default_factory=lambda: {name: Measured() for name in MEASURES})
    """US dollars, milliseconds, tokens of judged trials."""
    groups: dict[str, str] = msgspec.field(default_factory=dict)
    range: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """Least and greatest score seen of each evaluator."""

    def outcomes(self, metric: str) -> Mapping[str, CaseTotal]:
        """The cases by one metric: `pass_rate` or the name of an evaluator."""
        return self.passes if metric == PASS_RATE else self.scores.get(metric, {})

    def mean(self, measure: str) -> tuple[float | None, int]:
        """The mean of a measure over all judged trials, and their number."""
        values = self.measures[measure].values()
        return (fsum(values) / len(values) if values else None), len(values)

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
            taken = (metrics.cost_usd, trace.latency_ms, _tokens(metrics.token_input, metrics.token_output))
            for name, value in zip(MEASURES, taken, strict=True):
                if value is not None:
                    self.measures[name].add(case, value)
        if trace.error is None or status != "error":
            self._judge(case, rows)

    def alike(self, one: SideCounts) -> _Alike:
        """What all cells share that are alike with the only one that `one` counted."""
        for name, (low, high) in one.range.items():
            ends = self.range.get(name, (low, high))
            self.range[name] = (min(low, ends[0]), max(high, ends[1]))
        (outcome,) = one.passes.values()
        for name in one.scores:
            self.scores.setdefault(name, {})
        return _Alike(outcome, {name: next(iter(found.values())) for name, found in one.scores.items()})

    def add_block(self, cells: CellMeasures, known: Mapping[int, _Alike]) -> None:
        """Count the only trials of so many cases, of which all but their names and what they took is `known`."""
        _fill(self.passes, cells, {kind: alike.outcome for kind, alike in known.items()})
        for name, scores in self.scores.items():
            _fill(scores, cells, {kind: alike.scores[name] for kind, alike in known.items() if name in alike.scores})
        cases = cells.case_keys
        if cells.groups.count(None) < len(cases):
            pairs = zip(cases, cells.groups, strict=True)
            self.groups.update((case, group) for case, group in pairs if group is not None)
        judged = _only(cells, {kind for kind, alike in known.items() if alike.outcome.judged})
        cases, tokens_in, tokens_out = judged.case_keys, judged.tokens_in, judged.tokens_out
        self.measures["latency"].add_column(cases, judged.latency_ms)
        self.measures["cost"].add_column(cases, judged.cost_usd)
        if tokens_in.count(None) < len(cases) or tokens_out.count(None) < len(cases):
            self.measures["tokens"].add_column(cases, list(map(_tokens, tokens_in, tokens_out)))

    def spread_errors(self) -> None:
        """Tell every evaluator which trials it had no answer of: where the system erred, there are no results."""
        erred = [(case, outcome.target_errors) for case, outcome in self.passes.items() if outcome.target_errors]
        for outcomes in self.scores.values():
            for case, errors in erred:
                _at(outcomes, case).target_errors = errors

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


def _tokens(sent: int | None, received: int | None) -> int | None:
    return None if sent is None and received is None else (sent or 0) + (received or 0)


def _only(cells: CellMeasures, kinds: AbstractSet[int]) -> CellMeasures:
    """The cells of these kinds."""
    if set(cells.alike) <= kinds:
        return cells
    kept = [kind in kinds for kind in cells.alike]
    return CellMeasures(*(tuple(compress(column, kept)) for column in cells))  # type: ignore[arg-type]


def _fill(outcomes: dict[str, CaseTotal], cells: CellMeasures, known: Mapping[int, CaseTotal]) -> None:
    """Note what cells of each kind came to; those of other kinds came to nothing."""
    of_kinds = _only(cells, known.keys())
    outcomes.update(zip(of_kinds.case_keys, map(known.__getitem__, of_kinds.alike), strict=True))


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
        return _in_order(_counted(newest_cells(reader), _Judging(plan, [], stored)), plan)
    judging = _Judging(plan, names_needed(reader, plan), stored)
    if (index := index_of(reader)) is not None:
        with closing(index):
            return _in_order(_of_index(index, judging), plan)
    try:
        evaluators = len(plan.evaluators)
        errored = 0 if passes_over_errored(plan) else evaluators
        return _in_order(_counted(streamed_cells(reader, evaluators, errored=errored), judging), plan)
    except Superseded:
        return _in_order(_counted(newest_cells(reader), judging), plan)


def _of_index(index: CellIndex, judging: _Judging) -> dict[str, SideCounts]:
    """The sides of an indexed run. Of single trials, cells that are alike share what was counted of the first."""
    plan = judging.plan
    if any((variant.trials or plan.run.trials) > 1 for variant in plan.variants):
        return _counted(indexed_cells(index), judging)
    sides = _counted(map(facts_of, index.cells(CellSelection(singular=True))), judging)
    for name in dict.fromkeys(count.variant for count in index.counts()):
        side = sides.get(name) or SideCounts(name)
        seen: set[int] = set()
        known: dict[int, _Alike] = {}
        for cells in index.measured(name):
            for kind in set(cells.alike) - seen:
                seen.add(kind)
                trace, rows = facts_of(index.numbered(cells.numbers[cells.alike.index(kind)]))
                if (status := judging.status(trace, rows)) is not None:
                    one = SideCounts(name)
                    one.add(trace, rows, status)
                    known[kind] = side.alike(one)
            side.add_block(cells, known)
        if side.passes:
            sides[name] = side
    return sides


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
    return sides


def _in_order(sides: dict[str, SideCounts], plan: Plan) -> dict[str, SideCounts]:
    for side in sides.values():
        side.spread_errors()
    # Cells are stored in the order in which they ended; variants are shown in that of the suite.
    return {v.name: sides[v.name] for v in plan.variants if v.name in sides} | sides
