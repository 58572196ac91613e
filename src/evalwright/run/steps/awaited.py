"""Evaluators without an immediate result: those that wait, and after them those that use all other results."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Sequence

from evalwright.errors import LimitExceeded
from evalwright.llm.kept_calls import keeping
from evalwright.llm.patience import all_given, bounded_by
from evalwright.model.result import EvaluationResult
from evalwright.run.limits import end_of, held_to
from evalwright.run.records import (
    Clock,
    PendingResult,
    ends_the_run,
    evaluator_failure,
    fill_error,
    fill_result,
    keep_detail,
    timed_out,
)
from evalwright.session.process import end_child

__all__ = ["await_results"]


async def await_results(
    results: list[EvaluationResult],
    pending: Sequence[PendingResult],
    clock: Clock,
    *,
    concurrent: bool,
    keep_calls: bool,
) -> None:
    """Fill the pending rows, each within its time limit: those that wait all at once if `concurrent`.

    With `keep_calls`, the detail of a result has the models that its evaluator called, with requests and replies.
    """
    fill_row = _fill_with_calls if keep_calls else _fill
    waiting = [cell for cell in pending if isinstance(cell.given, Awaitable)]
    if concurrent:
        await all_given(fill_row(results, clock, cell) for cell in waiting)
    else:
        for awaited in waiting:
            await fill_row(results, clock, awaited)
    for last in pending:
        if not isinstance(last.given, Awaitable):
            await fill_row(results, clock, last)


async def _fill_with_calls(results: list[EvaluationResult], clock: Clock, pending: PendingResult) -> None:
    with keeping() as calls:
        await _fill(results, clock, pending)
    if calls:
        row = results[pending.position]
        row.detail = {**row.detail, "judge_calls": calls}


async def _fill(results: list[EvaluationResult], clock: Clock, pending: PendingResult) -> None:
    row, awaited, limit = results[pending.position], pending.given, pending.limit
    start, process = time.monotonic(), os.getpid()
    try:
        async with bounded_by(limit) as bound:
            with held_to(end_of(bound)):
                evaluation = (
                    awaited if isinstance(awaited, Awaitable) else awaited([r for r in results if r is not row])
                )
                outcome = await evaluation if isinstance(evaluation, Awaitable) else evaluation
                if os.getpid() != process:
                    end_child()
                fill_result(row, outcome, pending.scores, pending.spec)
    except BaseException as raised:
        if os.getpid() != process:
            end_child(raised)
        if isinstance(raised, (TimeoutError, LimitExceeded)):
            fill_error(row, timed_out(limit))
        elif ends_the_run(raised):
            raise
        else:
            # User code may raise SystemExit and the like: an error of this result, which must not end the run.
            fill_error(row, evaluator_failure(raised, limit))
            keep_detail(row, raised)
    end = time.monotonic()
    if began := getattr(awaited, "began", None):  # a call in a thread: it had to wait for its turn, or began before
        row.started_at, start = clock.date(began), began
    row.finished_at, row.latency_ms = clock.date(end), int((end - start) * 1000)
