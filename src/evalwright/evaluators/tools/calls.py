"""The tool calls of a trace in order, with their arguments and durations, wherever the trace has them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from evalwright.files.numbers import is_number
from evalwright.model.trace import Span, ToolCall, Trace

__all__ = ["TracedCall", "calls_of", "messages_of", "traced_call"]


class TracedCall(NamedTuple):
    """One call; `args` is None if there were none, durations are in milliseconds."""

    name: str
    args: Any = None
    output: Any = None
    id: str | None = None
    duration_ms: float | None = None


def messages_of(trace: Trace) -> list[dict[str, Any]]:
    """The messages that the system returned, as plain data; not those that it was given."""
    stored = trace.extra.get("output_messages")
    if isinstance(stored, list):
        return [message for message in stored if isinstance(message, dict)]
    messages: list[dict[str, Any]] = []
    for message in trace.messages:
        if message.role in ("user", "system"):
            continue
        document: dict[str, Any] = {"role": message.role}
        if message.content is not None:
            document["content"] = message.content
        if message.tool_call is not None:
            document["tool_calls"] = [_as_call(message.tool_call)]
        messages.append(document)
    if not messages and trace.tool_calls:
        messages.append({"role": "assistant", "tool_calls": [_as_call(call) for call in trace.tool_calls]})
    if not trace.messages and trace.output.final_answer is not None:
        messages.append({"role": "assistant", "content": trace.output.final_answer})
    return messages


def _as_call(call: ToolCall) -> dict[str, Any]:
    named: dict[str, Any] = {"tool": call.name, "input": call.arguments}
    return named if call.id is None else {**named, "id": call.id}


def calls_of(trace: Trace) -> list[TracedCall]:
    """Calls of both shapes: `{tool, input, ...}` and `{function: {name, arguments}}`."""
    spans = {span.attributes.get("tool_call_id"): span for span in trace.spans if span.kind == "tool"}
    traced_calls = []
    for message in messages_of(trace):
        calls = message.get("tool_calls")
        for raw in calls if isinstance(calls, list) else ():
            if isinstance(raw, dict):
                call = traced_call(raw)
                span = spans.get(call.id) if call.id is not None else None
                traced_calls.append(
                    call if span is None else call._replace(duration_ms=call.duration_ms or _span_duration(span))
                )
    return traced_calls


def traced_call(raw: dict[str, Any]) -> TracedCall:
    """A call of either shape; arguments that are JSON text are parsed."""
    function = raw.get("function")
    if isinstance(function, dict):
        name, arguments = function.get("name"), function.get("arguments")
    else:
        name, arguments = raw.get("tool", raw.get("name")), raw.get("input", raw.get("args", raw.get("arguments")))
    call_id = raw.get("id")
    text_id = call_id if isinstance(call_id, str) else None
    return TracedCall(str(name or ""), _parsed_arguments(arguments), raw.get("output"), text_id, _duration(raw))


def _parsed_arguments(arguments: Any) -> Any:
    """Arguments that are JSON text are parsed; other text stays text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _duration(raw: dict[str, Any]) -> float | None:
    for key in ("duration_ms", "durationMs"):
        value = raw.get(key)
        if is_number(value) and value >= 0:
            return float(value)
    start, end = (_moment(raw, *keys) for keys in (("start_time", "startTime"), ("end_time", "endTime")))
    if start is None or end is None or (start.tzinfo is None) != (end.tzinfo is None):
        return None
    return (end - start).total_seconds() * 1000


def _moment(raw: dict[str, Any], *keys: str) -> datetime | None:
    for key in keys:
        try:
            return datetime.fromisoformat(raw[key])
        except (KeyError, TypeError, ValueError):
            continue
    return None


def _span_duration(span: Span) -> float | None:
    if span.started_at is None or span.finished_at is None:
        return None
    return (span.finished_at - span.started_at).total_seconds() * 1000
