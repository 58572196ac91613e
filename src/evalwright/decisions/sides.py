"""One variant of one run, case by case: the input of every decision. One pass over the run, memory by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from itertools import chain
from math import isfinite
from typing import NamedTuple

import msgspec

from evalwright.decisions.kinds import HeldIndex, KindCells, KindOutcomes, tallied
from evalwright.decisions.measures import MEASURES, KindMeasured, MeasuredValues, both_tokens
from evalwright.model.cell import AttemptKey, attempt_key
from evalwright.model.cell_index import CellEntry, CellPlaces, CellSelection, index_of
from evalwright.model.facts import ResultFacts, TraceFacts
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import Status
from evalwright.scoring.indexed_cells import facts_of, facts_of_count, indexed_cells
from evalwright.scoring.newest import over_cells
from evalwright.scoring.verdict import names_needed, status_by_results, stored_statuses
from evalwright.statistics.units import Cluster, Units, units_from, units_of

__all__ = ["PASS_RATE", "WORTH_AN_INDEX", "CaseTotal", "SideCounts", "sides_of", "units_of_cases", "within_floats"]

PASS_RATE = "pass_rate"
WORTH_AN_INDEX = 5_000
"""Cells, each of one trial, from which a run gets an index when it is counted: creating one takes no longer than
counting and comparing case by case, and the next comparison of the run finds it."""


def within_floats(value: float) -> float:
    """The value. Raises OverflowError if adding or subtracting floats went beyond their range."""
    if not isfinite(value):
        raise OverflowError("a number is beyond the range of floats")
    return value


class CaseTotal(msgspec.Struct, gc=False):
    """The trials of one case: a total over those judged, and how many have no verdict."""

    total: float = 0.0
    judged: int = 0
    target_errors: int = 0
    evaluator_errors: int = 0
    passed: int = 0
    """For an evaluator's results, whose total is a total of scores."""
    squares: float = 0.0
    """For an evaluator's scores: the sum of their squares."""
    skipped: int = 0
    not_run: int = 0
    """Trials that were planned and have no trace: the run is not finished."""
    total_rest: float = 0.0
    squares_rest: float = 0.0
    """What the two sums lack for having been rounded at each trial: the last digit must not depend on the order in
    which trials ended."""

    def add_score(self, value: float) -> None:
        """Count a score of a judged trial."""
        self.total, self.total_rest = _two_sum(self.total, self.total_rest, value)
        self.squares, self.squares_rest = _two_sum(self.squares, self.squares_rest, value * value)

    @property
    def value(self) -> float:
        """The mean over judged trials; there must be some. Raises OverflowError beyond the range of floats."""
        return within_floats(self.total / self.judged)


def _two_sum(total: float, rest: float, value: float) -> tuple[float, float]:
    """A sum and what it lacks for being rounded, with another value in it (Knuth's TwoSum)."""
    added = total + value
    part = added - total
    rest += (total - (added - part)) + (value - part)
    whole = added + rest
    return whole, rest - (whole - added)


class SideCounts(msgspec.Struct):
    """One variant of one run."""

    variant: str
    passes: Mapping[str, CaseTotal] = msgspec.field(default_factory=dict)
    """By case; skipped trials are not counted."""
    scores: dict[str, Mapping[str, CaseTotal]] = msgspec.field(default_factory=dict)
    """Scores by evaluator and case; passes for an evaluator without scores."""
    measures: dict[str, MeasuredValues] = msgspec.field(
        default_factory=lambda: {name: MeasuredValues() for name in MEASURES}
    )
    """US dollars, milliseconds, tokens of judged trials."""
    groups: dict[str, str] = msgspec.field(default_factory=dict)
    range: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """Lowest and highest score of each evaluator: those that it can give, or else those that were seen."""
    cells: int = 0
    """Finished cells, skipped ones included."""

    def outcomes(self, metric: str) -> Mapping[str, CaseTotal]:
        """The cases by one metric: `pass_rate` or the name of an evaluator."""
        return self.passes if metric == PASS_RATE else self.scores.get(metric, {})

    def mean(self, measure: str) -> tuple[float | None, int]:
        """The mean of a measure over all judged trials, and their number."""
        return self.measures[measure].mean()

    def of(self, cases: Collection[str]) -> SideCounts:
        """The same side, restricted to some of its cases."""
        names = frozenset(cases)
        return msgspec.structs.replace(
            self,
            passes={case: total for case, total in self.passes.items() if case in names},
            scores={
                name: {case: outcome for case, outcome in outcomes.items() if case in names}
                for name, outcomes in self.scores.items()
            },
        )

    def add(self, trace: TraceFacts, rows: Collection[ResultFacts], status: Status) -> None:
        """Count one cell."""
        self.cells += 1
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
            values = (metrics.cost_usd, trace.latency_ms, both_tokens(metrics.token_input, metrics.token_output))
            for name, value in zip(MEASURES, values, strict=True):
                if value is not None:
                    self.measures[name].add(case, value)
        else:
            outcome.skipped += 1
        if trace.error is None or status != "error":
            self._judge(case, rows)

    def spread_errors(self) -> None:
        """Record for every evaluator the trials in which the system erred, for which it has no results."""
        erred = [(case, outcome.target_errors) for case, outcome in self.passes.items() if outcome.target_errors]
        for outcomes in self.scores.values():
            for case, errors in erred:
                _at(outcomes, case).target_errors = errors

    def _judge(self, case: str, rows: Collection[ResultFacts]) -> None:
        for row in rows:
            outcome = _at(self.scores.setdefault(row.evaluator, {}), case)
            if row.error is not None:
                outcome.evaluator_errors += 1
            elif row.skipped:
                outcome.skipped += 1
            else:
                value = float(row.passed) if row.score is None else row.score
                low, high = self.range.get(row.evaluator, (value, value))
                self.range[row.evaluator] = (min(low, value), max(high, value))
                outcome.judged += 1
                outcome.add_score(value)
                outcome.passed += row.passed


def _at(outcomes: Mapping[str, CaseTotal], case: str) -> CaseTotal:
    outcome = outcomes.get(case)
    if outcome is None:
        outcome = outcomes[case] = CaseTotal()  # type: ignore[index]  # sides that are counted have dicts
    return outcome


def units_of_cases(outcomes: Mapping[str, CaseTotal], groups: Mapping[str, str]) -> Units:
    """The values of the cases that were judged, each one unit if it is in no group."""
    if groups:
        judged = {case: outcome.value for case, outcome in outcomes.items() if outcome.judged}
        return units_of([*judged.values()], [groups.get(case, (case,)) for case in judged])
    counts: Counter[Cluster] = Counter()
    for outcome, n in tallied(outcomes):
        if outcome.judged:
            counts[Cluster(outcome.value, 1)] += n
    return units_from(counts)


class _Judging(NamedTuple):
    plan: Plan
    needed: list[str]
    stored: Mapping[AttemptKey, Status]
    """The verdicts as stored, if only they tell the status of a cell."""

    def status(self, trace: TraceFacts, rows: Collection[ResultFacts]) -> Status | None:
        """The verdict of a cell; None if the run ended before its results were written."""
        if self.plan.needs_verdicts:
            return self.stored.get(attempt_key(trace))
        return status_by_results(self.plan, self.needed, trace.error is not None, rows)


def sides_of(reader: RunReader, plan: Plan) -> dict[str, SideCounts]:
    """The variants of a stored run that have cells."""
    judging = _Judging(plan, names_needed(reader, plan), stored_statuses(reader) if plan.needs_verdicts else {})
    single = all(plan.trials_of(variant) == 1 for variant in plan.variants)
    index = None if plan.needs_verdicts else index_of(reader, least=WORTH_AN_INDEX if single else None)
    if index is None:
        return _in_order(over_cells(reader, plan, lambda cells: _counted_sides(cells, judging)), plan)
    if single:
        return _in_order(_sides_of_kinds(HeldIndex(index), judging), plan)
    with closing(index):
        return _in_order(_counted_sides(indexed_cells(index), judging), plan)


def _sides_of_kinds(held: HeldIndex, judging: _Judging) -> dict[str, SideCounts]:
    """The sides of an indexed run of single trials, by the kinds of its cells."""
    index, plan, sides = held.index, judging.plan, {}
    places = {variant.name: CellPlaces(i, len(plan.variants)) for i, variant in enumerate(plan.variants)}
    for name, counts in held.counts.items():
        alike = {count.alike: facts_of_count(count) for count in counts}
        own: Iterable[CellEntry] = ()
        if any(count.singular for count in counts):
            own = index.cells(CellSelection(variant=name, singular=True))
        known, unused = {}, SideCounts(name).measures  # those of the index are read instead
        for kind, (trace, rows) in chain(alike.items(), ((entry.kind, facts_of(entry)) for entry in own)):
            if (status := judging.status(trace, rows)) is not None:
                known[kind] = side = SideCounts(name, measures=unused)
                side.add(trace, rows, status)
        if known:
            digest = plan.cases_sha256 if name in places else ""
            cells = KindCells(held, name, places.get(name, CellPlaces(0, 1)), digest)
            sides[name] = _side_of_known(SideCounts(name), cells, known, plan)
    return sides


def _side_of_known(side: SideCounts, cells: KindCells, known: Mapping[int, SideCounts], plan: Plan) -> SideCounts:
    """The side, counted from one cell of each kind."""
    evaluators = _evaluators_of([name for totals in known.values() for name in totals.scores], plan)
    for kind, counts in known.items():
        side.cells += cells.times(kind)
        for name, (low, high) in counts.range.items() if cells.times(kind) else ():
            ends = side.range.get(name, (low, high))
            side.range[name] = (min(low, ends[0]), max(high, ends[1]))
        counts.scores = {name: counts.scores.get(name, {}) for name in evaluators}
        counts.spread_errors()
    passes = {kind: next(iter(totals.passes.values())) for kind, totals in known.items()}
    side.passes = KindOutcomes(cells, passes)
    for name in evaluators:
        totals = {kind: total for kind, kind_totals in known.items() for total in kind_totals.scores[name].values()}
        side.scores[name] = KindOutcomes(cells, totals)
    judged = {kind for kind, total in passes.items() if total.judged}
    alike = [kind for kind in judged if kind >= 0]
    side.measures = {measure: KindMeasured(measure, cells, judged, alike) for measure in MEASURES}
    side.groups = cells.groups(passes)
    return side


def _evaluators_of(judging: Iterable[str], plan: Plan) -> list[str]:
    """Those that judged something, or where every cell erred before they could, those of the plan."""
    return [*dict.fromkeys(judging)] or [evaluator.name for evaluator in plan.evaluators]


def _counted_sides(
    cells: Iterable[tuple[TraceFacts, Collection[ResultFacts]]], judging: _Judging
) -> dict[str, SideCounts]:
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
        for name in side.scores.keys() & plan.score_rules.keys():
            rule = plan.score_rules[name]
            low, high = side.range.get(name, (rule.low, rule.high))
            side.range[name] = (min(low, rule.low), max(high, rule.high))
        if not isinstance(side.passes, KindOutcomes):  # those already know
            side.scores = {name: side.scores.get(name, {}) for name in _evaluators_of(side.scores, plan)}
            side.spread_errors()
    # Cells are stored in the order in which they ended; variants are shown in the order of the suite.
    return {v.name: sides[v.name] for v in plan.variants if v.name in sides} | sides
