"""A case and its run as plain data under NorthStar's key names, for patterns and code to check."""

from __future__ import annotations

from typing import Any

import msgspec

from evalwright.evaluators.conversation.messages import conversation_of, cost_of, expected_of, latency_of
from evalwright.evaluators.steps.steps import steps_of_trace
from evalwright.model.recordings import RECORDING
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["case_document", "run_document"]


def case_document(case: Case, trace: Trace) -> dict[str, Any]:
    """The case with every key: `id`, `input`, `messages`, `expected`, `metrics`, `metadata`, `trace`."""
    expected = _whole_expectation(expected_of(case))
    if expected["trace"] is not None:
        expected["trace"] = _whole_expectation(expected["trace"])
    return {
        "id": case.id,
        "input": case.input,
        "trace": _steps(trace),
        "messages": trace.extra.get(RECORDING, {}).get("messages", conversation_of(trace).messages),
        "expected": msgspec.to_builtins(expected),
        "metrics": _metrics(trace),
        "metadata": case.metadata,
    }


def run_document(case: Case, trace: Trace) -> dict[str, Any]:
    """The conversation by role, what was measured, and the steps."""
    conversation = conversation_of(trace)
    document: dict[str, Any] = msgspec.to_builtins(conversation)
    document["tool_interactions"] = msgspec.to_builtins(conversation.tool_interactions)
    return {**document, "trace": _steps(trace), "metrics": _metrics(trace), "metadata": case.metadata}


def _whole_expectation(record: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def _metrics(trace: Trace) -> dict[str, float | None]:
    return {"latency_ms": latency_of(trace), "cost_usd": cost_of(trace)}


def _steps(trace: Trace) -> dict[str, Any] | None:
    steps = steps_of_trace(trace)
    if steps is None:
        return None
    document: dict[str, Any] = msgspec.to_builtins(steps)
    return {**document, "edges": msgspec.to_builtins(steps.edges())}
