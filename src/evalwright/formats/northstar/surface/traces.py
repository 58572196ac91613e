"""An exported trace as a graph of spans and events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from pydantic import BaseModel, Field

from evalwright.formats.northstar.traces import steps_in
from evalwright.model.steps import Steps

__all__ = [
    "EvalTrace",
    "EvalTraceDag",
    "EvalTraceEdge",
    "EvalTraceEvent",
    "EvalTraceSpan",
    "dag_of",
    "normalize_trace_payload",
]


class EvalTrace(BaseModel):
    """The run of a trace."""

    run_id: str
    name: str
    status: str = "running"
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class EvalTraceSpan(BaseModel):
    """One step."""

    id: str
    kind: str
    name: str
    parent_span_id: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    status: str = "running"
    error: Any = None
    iteration: int | None = None
    attributes: dict[str, Any] = Field(default_factory=dict)


class EvalTraceEvent(BaseModel):
    """Something that happened; `order` is its position among all events."""

    id: str
    type: str
    span_id: str | None = None
    created_at: datetime | None = None
    content: Any = None
    attributes: dict[str, Any] = Field(default_factory=dict)
    order: int = 0


class EvalTraceEdge(BaseModel):
    """`parent_child`, `span_event` or `next_event`."""

    kind: str
    source_id: str
    target_id: str


class EvalTraceDag(BaseModel):
    """Spans and events in order, and how they hang together."""

    run: EvalTrace
    spans: list[EvalTraceSpan] = Field(default_factory=list)
    events: list[EvalTraceEvent] = Field(default_factory=list)
    edges: list[EvalTraceEdge] = Field(default_factory=list)


def normalize_trace_payload(payload: Mapping[str, Any], run_id: Any) -> EvalTraceDag:
    """The graph of one run of an export. Raises ValueError for one that cannot be read."""
    return dag_of(steps_in(payload, run_id))


def dag_of(steps: Steps) -> EvalTraceDag:
    """The graph of the steps of a run."""
    parts = msgspec.to_builtins(steps, builtin_types=(datetime,))
    run = parts["run"] or {"run_id": "", "name": ""}
    return EvalTraceDag(
        run=EvalTrace(**run),
        spans=[EvalTraceSpan(**span) for span in parts["spans"]],
        events=[EvalTraceEvent(**event) for event in parts["events"]],
        edges=[EvalTraceEdge(**msgspec.to_builtins(edge)) for edge in steps.edges()],
    )
