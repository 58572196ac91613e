"""The messages of an agent in the shape of traces: calls of both forms, and what their tools returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalwright.evaluators.tools.calls import TracedCall, traced_call
from evalwright.formats.agentv.exchange import text_of
from evalwright.importers.transcript import arguments_of
from evalwright.model.trace import ToolCall, ToolResult, TraceMessage

__all__ = ["trace_messages"]


def trace_messages(messages: Sequence[dict[str, Any]]) -> tuple[list[TraceMessage], list[ToolResult]]:
    """The messages and the results of tools.

    Further calls of a message are messages of their own after it, as in all traces, and so is the `output` of a call.
    """
    read_messages: list[TraceMessage] = []
    results: list[ToolResult] = []
    called: dict[str | None, str] = {}
    for raw in messages:
        listed = raw.get("tool_calls")
        calls = [traced_call(call) for call in (listed if isinstance(listed, list) else ()) if isinstance(call, dict)]
        called |= {call.id: call.name for call in calls if call.id is not None}
        role, raw_id = str(raw.get("role") or "assistant"), raw.get("tool_call_id")
        call_id = raw_id if isinstance(raw_id, str) else None
        name = raw.get("name") if isinstance(raw.get("name"), str) else called.get(call_id)
        content = _content_of(raw.get("content"))
        read_messages.append(TraceMessage(role, content, tool_call=_as_call(calls[0]) if calls else None, name=name))
        read_messages += [TraceMessage(role, tool_call=_as_call(call)) for call in calls[1:]]
        if role == "tool" and content is not None:
            results.append(ToolResult(name or "", content, call_id))
        for result in _outputs(calls):
            read_messages.append(TraceMessage("tool", result.content, name=result.name))
            results.append(result)
    return read_messages, results


def _as_call(call: TracedCall) -> ToolCall:
    return ToolCall(call.name, call.id, arguments_of(call.args))


def _outputs(calls: Sequence[TracedCall]) -> Iterator[ToolResult]:
    for call in calls:
        if call.output is not None:
            yield ToolResult(call.name, _content_of(call.output) or "", call.id)


def _content_of(content: Any) -> dict[str, Any] | str | None:
    return content if content is None or isinstance(content, (str, dict)) else text_of(content)
