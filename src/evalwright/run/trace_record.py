"""The trace of an answer, with the invariants of the evalh specification, b.3."""

from __future__ import annotations

from datetime import datetime

import msgspec

from evalwright.files.plain import plain
from evalwright.model.trace import Answer, Output, ToolCall, ToolResult, Trace, TraceError
from evalwright.run.grid import Cell

__all__ = ["trace_of"]


def trace_of(
    run_id: str, cell: Cell, answer: Answer | TraceError, started: datetime, finished: datetime, latency_ms: int | None
) -> Trace:
    """What is stored for one cell: ids and times are the runner's, except those of a replayed recording."""
    if isinstance(answer, TraceError):
        return _trace(run_id, cell, Answer(output=Output(), error=answer), started, finished, latency_ms)
    if answer.extra.get("source") == "replay" and answer.started_at and answer.finished_at:
        started, finished, latency_ms = answer.started_at, answer.finished_at, answer.latency_ms
    trace = _trace(run_id, cell, answer, started, finished, latency_ms)
    if trace.messages and not trace.tool_calls and not trace.tool_results:
        trace.tool_calls, trace.tool_results = _tool_use(trace)
    return trace


def _trace(
    run_id: str, cell: Cell, answer: Answer, started: datetime, finished: datetime, latency_ms: int | None
) -> Trace:
    return Trace(
        cell.case.id,
        cell.variant.name,
        started,
        finished,
        latency_ms,
        cell.case.input,
        answer.output,
        run_id,
        answer.messages,
        answer.tool_calls,
        answer.tool_results,
        answer.metrics,
        answer.error,
        answer.extra,
        cell.trial,
        cell.attempt,
        cell.case_index,
        answer.spans,
        occurrence=cell.case.occurrence,
        group=msgspec.UNSET if cell.case.group is None else cell.case.group,
    )


def _tool_use(trace: Trace) -> tuple[list[ToolCall], list[ToolResult]]:
    """Tool calls and results as views of the messages."""
    calls = [message.tool_call for message in trace.messages if message.tool_call is not None]
    results = []
    for message in trace.messages:
        if message.role == "tool":
            content = message.content
            kept = content if isinstance(content, (dict, str)) else str(plain(content, "content", []))
            results.append(ToolResult(name=message.name or "", content=kept))
    return calls, results
