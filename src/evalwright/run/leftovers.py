"""Cells that a crash left with a trace but no verdict: they are judged without calling their system."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Set
from contextlib import contextmanager

from evalwright.model.cell import AttemptKey, attempt_key
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter
from evalwright.model.result import EvaluationResult
from evalwright.run.cells import Grid
from evalwright.run.comparisons import finished_beside
from evalwright.run.history import History, newest_traces, unjudged_traces
from evalwright.run.pipeline import Pipeline

__all__ = ["judge_leftovers"]


async def judge_leftovers(
    pipeline: Pipeline, plan: Plan, writer: RunWriter, grid: Grid, history: History, again: Set[int]
) -> None:
    """Give those cells their verdicts, keeping existing results; cells in `again` will run anyway."""
    traces = unjudged_traces(writer, grid, history)
    for number in again:
        traces.pop(number, None)
    beside = finished_beside(plan, writer, history, again)
    if beside:
        traces |= newest_traces(writer, grid, history, beside)
    if not traces:
        return
    rows: dict[AttemptKey, dict[str, EvaluationResult]] = {}
    wanted = {attempt_key(trace) for trace in traces.values()}
    for row in writer.results(EvaluationResult):
        if attempt_key(row) in wanted:
            rows.setdefault(attempt_key(row), {})[row.evaluator] = row
    with _masked_cases(writer):
        for number, trace in traces.items():
            await asyncio.sleep(0)  # signals and limits rely on a loop that turns, also if no evaluator waits
            results = list(rows.get(attempt_key(trace), {}).values())
            await pipeline.judge_stored(trace, results, finished=number in beside)


@contextmanager
def _masked_cases(writer: RunWriter) -> Iterator[None]:
    """Cases as stored traces record them; those that run afterwards need their secrets."""
    mask = getattr(writer, "mask_cases", None)
    if mask is None:
        yield
        return
    mask()
    try:
        yield
    finally:
        mask(False)
