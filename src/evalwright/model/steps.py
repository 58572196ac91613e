"""The steps of a run in order: spans, what happened in them, and the run itself (a view of `Trace.spans`)."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec

__all__ = ["Edge", "RunFacts", "Step", "StepEvent", "Steps"]


class RunFacts(msgspec.Struct, gc=False):
    """The run as a whole; `error` is null or whatever was recorded."""

    run_id: str
    name: str
    status: str = "running"
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: Any = None
    metadata: dict[str, Any] = {}


class Step(msgspec.Struct, gc=False):
    """One span. `kind` is agent, workflow, model, tool or custom; `status` is running, ok or error."""

    id: str
    kind: str
    name: str
    parent_span_id: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    status: str = "running"
    error: Any = None
    iteration: int | None = None
    attributes: dict[str, Any] = {}

    @property
    def failed(self) -> bool:
        return self.status == "error" or self.error is not None


class StepEvent(msgspec.Struct, gc=False):
    """Something that happened at one moment; `order` is its position among all events of the run."""

    id: str
    type: str
    span_id: str | None = None
    created_at: datetime | None = None
    content: Any = None
    attributes: dict[str, Any] = {}
    order: int = 0


class Edge(msgspec.Struct, gc=False):
    """`parent_child`, `span_event` or `next_event`, by ids."""

    kind: str
    source_id: str
    target_id: str


class Steps(msgspec.Struct, gc=False):
    """Spans by start and events by time; those without a time come last, in file order."""

    run: RunFacts | None = None
    spans: list[Step] = []
    events: list[StepEvent] = []

    def edges(self) -> list[Edge]:
        """Spans below their parents, events in their spans, each event before the next."""
        known = {span.id for span in self.spans}
        below = [Edge("parent_child", s.parent_span_id, s.id) for s in self.spans if s.parent_span_id in known]
        inside = [Edge("span_event", e.span_id, e.id) for e in self.events if e.span_id in known]
        return below + inside + [Edge("next_event", a.id, b.id) for a, b in pairwise(self.events)]
