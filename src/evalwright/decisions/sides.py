"""One variant of one run, case by case: what every decision is made from. One pass over the run, memory by case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from typing import NamedTuple

import msgspec

from evalwright.model.cell import OfCase
from evalwright.model.cell_index import index_of
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import Status
from evalwright.scoring.facts import ResultFacts, TraceFacts
from evalwright.scoring.looked_up import indexed_cells
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

    @property
    def value(self) -> float:
        """The mean over judged trials; only where there are some."""
        return self.total / self.judged


class _Measured(msgspec.Struct, gc=False):
    total: float = 0.0
    n: int = 0


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
        return (sum(one.total for one in found) / n if n else None), n

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
            self._measure(case, trace)
        if trace.error is None or status != "error":
            self._judge(case, rows)

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
                outcome.passed += row.passed

    def _measure(self, case: str, trace: TraceFacts) -> None:
        metrics = trace.metrics
        tokens = None
        if metrics.token_input is not None or metrics.token_output is not None:
            tokens = (metrics.token_input or 0) + (metrics.token_output or 0)
        for name, value in (("cost", metrics.cost_usd), ("latency", trace.latency_ms), ("tokens", tokens)):
            if value is not None:
                found = self.measures[name].get(case)
                if found is None:
                    found = self.measures[name][case] = _Measured()
                found.total += value
                found.n += 1
        if trace.latency_ms is not None:
            self.latencies.setdefault(case, []).append(trace.latency_ms)


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
            return _counted(indexed_cells(index), judging)
    try:
        evaluators = len(plan.evaluators)
        errored = 0 if passes_over_errored(plan) else evaluators
        return _counted(streamed_cells(reader, evaluators, errored=errored), judging)
    except Superseded:
        return _counted(newest_cells(reader), judging)


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
    for side in sides.values():
        side.spread_errors()
    # Cells are stored in the order in which they ended; variants are shown in that of the suite.
    return {v.name: sides[v.name] for v in judging.plan.variants if v.name in sides} | sides
