"""Comparisons: evaluators that judge the answers of all variants to one case and trial together.

A cell with such an evaluator gets its verdict only once the last cell of its case and trial is done. If a crash
prevents that, the cell has a trace, and the next session judges it like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from evalwright.errors import EvaluatorError, LimitExceeded
from evalwright.evaluators.build import build
from evalwright.llm.kept_calls import keeping
from evalwright.llm.patience import bounded_by
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace, TraceError
from evalwright.run.cells import Grid
from evalwright.run.judge import Judge
from evalwright.run.limits import end_of, held_to
from evalwright.run.records import (
    Clock,
    ends_the_run,
    evaluator_failure,
    fill_error,
    fill_result,
    keep_detail,
    result_of,
    timed_out,
)

__all__ = ["ComparedCell", "WaitingCells"]

_MISSING = "incomplete_comparison"


class ComparedCell(NamedTuple):
    """A cell whose other evaluators are done."""

    case: Case
    trace: Trace
    results: list[EvaluationResult]
    """Not stored yet; comparisons add theirs."""
    known: Sequence[EvaluationResult] = ()
    """Stored by an earlier session."""
    finished: bool = False
    """It has its verdict from an earlier session, and is here only for the others."""


class WaitingCells:
    """The cells of a session that wait for others of their case and trial."""

    def __init__(self, plan: Plan, judge: Judge, clock: Clock) -> None:
        grid = Grid(plan)
        self._trials = grid.trials
        self._order = {variant.name: i for i, variant in enumerate(grid.variants)}
        self._judge, self._clock = judge, clock
        self._keep_calls, self._limit = plan.run.keep_judge_calls, plan.run.evaluator_timeout_seconds
        self._open: dict[tuple[str, int], list[ComparedCell]] = {}

    def join(self, cell: ComparedCell) -> list[ComparedCell]:
        """All cells of the case and trial if this was the last one, else none."""
        key = (cell.trace.case_key, cell.trace.trial)
        cells = self._open.setdefault(key, [])
        cells.append(cell)
        if len(cells) < sum(cell.trace.trial < trials for trials in self._trials):
            return []
        return self._in_order(self._open.pop(key))

    def rest(self) -> list[list[ComparedCell]]:
        """The cells whose others have not arrived, and will not."""
        return [self._in_order(cells) for cells in self._open.values()]

    def _in_order(self, cells: list[ComparedCell]) -> list[ComparedCell]:
        return sorted(cells, key=lambda cell: self._order.get(cell.trace.variant_name, len(self._order)))

    async def compare(self, cells: Sequence[ComparedCell]) -> None:
        """Add each comparison's results to the cells that have no verdict yet."""
        for spec in self._judge.comparisons(cells[0].case):
            rows = await self._rows(spec, cells)
            for cell, row in zip(cells, rows, strict=True):
                stored = cell.finished or any(result.evaluator == spec.name for result in cell.known)
                if not stored and cell.trace.error is None:
                    cell.results.append(row)

    async def _rows(self, spec: EvaluatorSpec, cells: Sequence[ComparedCell]) -> list[EvaluationResult]:
        date = self._clock.now()
        rows = [result_of(spec, cell.trace, None, None, date, date) for cell in cells]
        calls: list[Any] = []
        limit = self._limit
        try:
            self._must_be_complete(cells)
            evaluator, traits = build(spec)
            comparer: Any = evaluator
            seen = [(cell.trace, [*cell.known, *cell.results]) for cell in cells]
            limit = max(limit, traits.timeout_seconds)
            with keeping() if self._keep_calls else nullcontext(calls) as calls:
                async with bounded_by(limit) as bound:
                    with held_to(end_of(bound)):
                        evaluations = await comparer.compare(cells[0].case, seen)
            for row, evaluation in zip(rows, evaluations, strict=True):
                fill_result(row, evaluation, traits.scores, spec)
        except (TimeoutError, LimitExceeded):
            _fill_errors(rows, timed_out(limit))
        except BaseException as raised:  # user code may raise SystemExit: an error of these results
            if ends_the_run(raised):
                raise
            _fill_errors(rows, evaluator_failure(raised, limit))
            keep_detail(rows[0], raised)
        if calls:
            # What all cells share is stored once.
            first = next((row for row in rows if not row.skipped), rows[0])
            first.detail = {**first.detail, "judge_calls": calls}
        end = self._clock.now()
        for row in rows:
            row.finished_at, row.latency_ms = end, int((end - date).total_seconds() * 1000)
        return rows

    def _must_be_complete(self, cells: Sequence[ComparedCell]) -> None:
        """Raise EvaluatorError if an answer is missing: the best of the others is not the best of all."""
        answered = {cell.trace.variant_name for cell in cells if cell.trace.error is None}
        trial = cells[0].trace.trial
        wanted = [name for name, place in self._order.items() if trial < self._trials[place]]
        if missing := [name for name in wanted if name not in answered]:
            raise EvaluatorError(f"no answer of {', '.join(missing)} to compare with", _MISSING)


def _fill_errors(rows: Sequence[EvaluationResult], error: TraceError) -> None:
    for row in rows:
        fill_error(row, error)
