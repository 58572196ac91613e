"""An exported trace as a graph of spans and events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from evalwright.formats.northstar.traces import steps_in
from evalwright.model.steps import RunFacts, Step, StepEvent, Steps

__all__ = [
    "EvalTrace",
    "EvalTraceDag",
    "EvalTraceEdge",
    "EvalTraceEvent",
    "EvalTraceSpan",
    "dag_of",
    "normalize_trace_payload",
    "steps_of",
]


class _Record(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class EvalTrace(_Record):
    """The run of a trace; times are ISO 8601 texts, here and below."""

    run_id: str
    name: str | None = None
    status: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    error: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class EvalTraceSpan(_Record):
    """One step."""

    id: str
    run_id: str
    parent_span_id: str | None = None
    kind: str
    name: str
    started_at: str | None = None
    ended_at: str | None = None
    status: str | None = None
    error: Any = None
    iteration: int | None = None
    attributes: dict[str, Any] = Field(default_factory=dict)


class EvalTraceEvent(_Record):
    """Something that happened; `order` is its position among all events."""

    id: str
    run_id: str
    span_id: str | None = None
    type: str
    created_at: str | None = None
    content: Any = None
    attributes: dict[str, Any] = Field(default_factory=dict)
    order: int


class EvalTraceEdge(_Record):
    """A link from one record to another, by their ids."""

    source_id: str
    target_id: str
    kind: Literal["parent_child", "span_event", "next_event"]


class EvalTraceDag(_Record):
    """Spans and events in order, and how they are linked."""

    run: EvalTrace
    spans: list[EvalTraceSpan] = Field(default_factory=list)
    events: list[EvalTraceEvent] = Field(default_factory=list)
    edges: list[EvalTraceEdge] = Field(default_factory=list)


def normalize_trace_payload(payload: Mapping[str, Any], run_id: Any) -> EvalTraceDag:
    """The graph of one run of an export. Raises ValueError if it cannot be read."""
    return dag_of(steps_in(payload, run_id))


def dag_of(steps: Steps) -> EvalTraceDag:
    """The graph of the steps of a run."""
    run = steps.run or RunFacts("", "")
    return EvalTraceDag(
        run=EvalTrace(**_plain_fields(run)),
        spans=[EvalTraceSpan(run_id=run.run_id, **_plain_fields(span)) for span in steps.spans],
        events=[EvalTraceEvent(run_id=run.run_id, **_plain_fields(event)) for event in steps.events],
        edges=[EvalTraceEdge(**msgspec.to_builtins(edge)) for edge in steps.edges()],
    )


def steps_of(dag: EvalTraceDag) -> Steps:
    """The steps in a graph, in its order; an unreadable time counts as missing."""
    return Steps(
        RunFacts(**_with_times(dag.run, "started_at", "ended_at", status="running", name="")),
        [Step(**_with_times(span, "started_at", "ended_at", status="running")) for span in dag.spans],
        [StepEvent(**_with_times(event, "created_at")) for event in dag.events],
    )


def _plain_fields(record: msgspec.Struct) -> dict[str, Any]:
    """The fields, with times as texts; recorded values stay the same objects."""
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in fields.items()}


def _with_times(record: _Record, *times: str, **defaults: Any) -> dict[str, Any]:
    fields = {name: getattr(record, name) for name in type(record).model_fields}
    if not isinstance(record, EvalTrace):
        del fields["run_id"]
    absent = {key: value for key, value in defaults.items() if fields[key] is None}
    return {**fields, **absent, **{key: _datetime_of(fields[key]) for key in times}}


def _datetime_of(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
