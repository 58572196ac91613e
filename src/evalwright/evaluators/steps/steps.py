"""The steps behind a trace of any origin, and how they are stored in its spans.

A recorded run is a span of kind `run`, which has the events that belong to no other span. What spans have no field for
is in attributes that begin with `step.`: `step.error`, `step.iteration`; for events `step.id`, `step.order`,
`step.content`, `step.span_id`. Spans of other origins have no such attributes: their events are then the inputs and
outputs of tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from evalwright.model.recordings import RECORDING
from evalwright.model.steps import RunFacts, Step, StepEvent, Steps
from evalwright.model.trace import Span, SpanEvent, ToolCall, Trace

__all__ = ["in_order", "spans_of_steps", "steps_of_trace"]

_MARK = "step."
_KINDS = {"llm": "model", "chain": "workflow", "span": "custom"}
_KINDS_BACK = {theirs: ours for ours, theirs in _KINDS.items()}
_LAST = datetime.max.replace(tzinfo=UTC)
_last: tuple[Trace | None, Steps | None] = (None, None)
"""Read and replaced as one: threads that judge other traces merely gain nothing, and never get another trace's
steps."""


def steps_of_trace(trace: Trace) -> Steps | None:
    """The steps of a trace; None if it has none. Evaluators of one trace share them."""
    global _last
    known, steps = _last
    if known is not trace:
        if trace.spans:
            steps = _steps(trace.spans)
        else:
            recording = trace.extra.get(RECORDING)
            steps = _steps_of_calls(trace) if recording is None else _recorded_steps(recording)
        _last = (trace, steps)
    return steps


def _recorded_steps(recording: Any) -> Steps | None:
    steps = recording.get("steps") if isinstance(recording, dict) else None
    return steps if isinstance(steps, Steps) else None


def spans_of_steps(steps: Steps) -> list[Span]:
    """Steps as the spans of a trace, from which `steps_of` makes the same steps again."""
    spans = [_run_span(steps.run)] if steps.run is not None else []
    spans += [_span(step) for step in steps.spans]
    by_id = {span.id: span for span in spans[1:]}
    for event in steps.events:
        span = by_id.get(event.span_id or "", spans[0])
        marks = {"id": event.id, "order": event.order, "content": event.content, "span_id": event.span_id}
        attributes = {**event.attributes, **{_MARK + key: value for key, value in marks.items()}}
        span.events.append(SpanEvent(event.type, event.created_at, attributes))
    return spans


def in_order(records: Iterable[Any], time: str) -> list[Any]:
    """Sorted by time, those without a time last; equal ones keep their order."""
    moment = attrgetter(time)
    return sorted(records, key=lambda record: _instant(moment(record)))


def _instant(moment: datetime | None) -> datetime:
    if moment is None:
        return _LAST
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _run_span(run: RunFacts) -> Span:
    attributes = run.metadata if run.error is None else {**run.metadata, _MARK + "error": run.error}
    return Span(
        run.run_id,
        run.name,
        kind="run",
        started_at=run.started_at,
        finished_at=run.ended_at,
        status=_status(run.status),
        error=_message(run.error),
        attributes=attributes,
    )


def _span(step: Step) -> Span:
    marks = {_MARK + key: value for key in ("error", "iteration") if (value := getattr(step, key)) is not None}
    return Span(
        step.id,
        step.name,
        step.parent_span_id,
        _KINDS_BACK.get(step.kind, step.kind),
        step.started_at,
        step.ended_at,
        _status(step.status),
        _message(step.error),
        attributes={**step.attributes, **marks},
    )


def _status(status: str) -> str:
    return "unset" if status == "running" else status


def _message(error: Any) -> str | None:
    if error is None:
        return None
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else str(error)


def _steps(spans: list[Span]) -> Steps:
    run = next((span for span in spans if span.kind == "run"), None)
    steps = Steps(None if run is None else _run(run))
    steps.spans = in_order([_step(span) for span in spans if span.kind != "run"], "started_at")
    events = [event for span in spans for event in _events(span)]
    if run is not None:
        steps.events = sorted(events, key=attrgetter("order"))
        return steps
    steps.events = in_order(events, "created_at")
    for order, event in enumerate(steps.events):
        event.order = order
    return steps


def _run(span: Span) -> RunFacts:
    status = "running" if span.status == "unset" else span.status
    metadata, error = _unmarked(span.attributes), span.attributes.get(_MARK + "error", span.error)
    return RunFacts(span.id, span.name, status, span.started_at, span.finished_at, error, metadata)


def _step(span: Span) -> Step:
    iteration = span.attributes.get(_MARK + "iteration")
    return Step(
        span.id,
        _KINDS.get(span.kind, span.kind),
        span.name,
        span.parent_id,
        span.started_at,
        span.finished_at,
        "running" if span.status == "unset" else span.status,
        span.attributes.get(_MARK + "error", span.error),
        iteration if isinstance(iteration, int) else None,
        _unmarked(span.attributes),
    )


def _unmarked(attributes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if not key.startswith(_MARK)}


def _steps_of_calls(trace: Trace) -> Steps | None:
    """Tool calls as steps, for a trace with calls but no spans; a conversation goes on after its calls."""
    if not trace.tool_calls:
        return None
    steps = Steps()
    results = {result.tool_call_id: result.content for result in trace.tool_results if result.tool_call_id is not None}
    parts = [
        message.tool_call or message for message in trace.messages if message.tool_call or message.role == "assistant"
    ]
    for part in parts if any(isinstance(part, ToolCall) for part in parts) else trace.tool_calls:
        if isinstance(part, ToolCall):
            _take_call(part, results.get(part.id) if part.id else None, steps)
        elif part.content:
            _take(steps, "assistant_message", None, part.content)
    if trace.output.final_answer:
        _take(steps, "final_response", None, trace.output.final_answer)
    return steps


def _take_call(call: ToolCall, result: Any, steps: Steps) -> None:
    error = (result.get("error") or result.get("is_error")) if isinstance(result, dict) else None
    step_id = f"call-{len(steps.spans)}"
    steps.spans.append(Step(step_id, "tool", call.name, status="error" if error else "ok", error=error or None))
    _take(steps, "tool_arguments", step_id, {"arguments": call.arguments})
    if result is not None:
        _take(steps, "tool_result", step_id, result)


def _take(steps: Steps, kind: str, step_id: str | None, content: Any) -> None:
    order = len(steps.events)
    steps.events.append(StepEvent(f"event-{order}", kind, step_id, content=content, order=order))


def _events(span: Span) -> Iterator[StepEvent]:
    for number, event in enumerate(span.events):
        mark = event.attributes.get
        yield StepEvent(
            str(mark(_MARK + "id", f"{span.id}.{number}")),
            event.name,
            mark(_MARK + "span_id", span.id),
            event.at,
            mark(_MARK + "content", mark("content")),
            _unmarked(event.attributes),
            mark(_MARK + "order", 0),
        )
    if span.kind == "tool" and not span.events:
        for kind, at, content in (
            ("tool_arguments", span.started_at, span.input),
            ("tool_result", span.finished_at, span.output),
        ):
            if content is not None:
                yield StepEvent(f"{span.id}.{kind}", kind, span.id, at, content)
