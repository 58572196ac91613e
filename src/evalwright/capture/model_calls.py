"""The model calls among captured spans, each once: several instrumentations may record the same call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright.capture.spans import LLMSpan, ObserveSpan, StepSpan, TextContent, ToolCall
from evalwright.model.same_calls import RecordedCall, same_calls

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["CapturedSpan", "call_tokens", "innermost", "nested", "requested_calls"]

CapturedSpan = ObserveSpan | LLMSpan | StepSpan
_Call = LLMSpan | StepSpan

_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")


def innermost(captured: Sequence[CapturedSpan], says: Callable[[_Call], bool]) -> list[_Call]:
    """Model calls of which `says` is true and that contain no other such call."""
    spans = nested(captured)
    calls = [span for span in spans if _is_call(span) and says(span)]
    around = _enclosing_spans(calls, {span.span_id: span.parent_span_id for span in spans})
    return [call for call in calls if call.span_id not in around]


def _is_call(span: CapturedSpan) -> TypeIs[_Call]:
    return isinstance(span, LLMSpan) or (isinstance(span, StepSpan) and span.kind == "llm")


def _enclosing_spans(calls: Sequence[_Call], parents: Mapping[str, str | None]) -> set[str]:
    """The ids of all spans that contain one of the calls."""
    around: set[str] = set()
    for call in calls:
        at = call.parent_span_id
        while at is not None and at not in around:
            around.add(at)
            at = parents.get(at)
    return around


def nested(captured: Sequence[CapturedSpan]) -> list[CapturedSpan]:
    """The spans, in which a call that another instrumentation recorded, too, is below the span around it."""
    calls = [
        RecordedCall(
            span.span_id,
            span.started_at,
            span.ended_at,
            span.scope,
            call_tokens(span),
            _reply_text(span),
            _response_of(span),
        )
        for span in captured
        if _is_call(span)
    ]
    below = same_calls(calls, {span.span_id: span.parent_span_id for span in captured})
    return [replace(span, parent_span_id=below[span.span_id]) if span.span_id in below else span for span in captured]


def _reply_text(call: _Call) -> str:
    calls = [[requested_call.name, requested_call.arguments] for requested_call in requested_calls(call)]
    messages = call.output_messages if isinstance(call, LLMSpan) else ()
    text = "".join(part.text for message in messages for part in message.content if isinstance(part, TextContent))
    return json.dumps([text, calls], default=str) if text or calls else ""


def _response_of(call: _Call) -> str | None:
    return call.response_id if isinstance(call, LLMSpan) else call.attributes.get("gen_ai.response.id")


def call_tokens(call: _Call) -> tuple[int, int]:
    """Input and output tokens; 0 for what is not reported."""
    if isinstance(call, LLMSpan):
        return call.input_tokens, call.output_tokens
    return _count(call.attributes, _INPUT), _count(call.attributes, _OUTPUT)


def _count(attributes: Mapping[str, Any], keys: Sequence[str]) -> int:
    count = next((attributes[key] for key in keys if key in attributes), 0)
    return count if isinstance(count, int) and count > 0 else 0


def requested_calls(call: _Call) -> list[ToolCall]:
    """The tool calls in the reply of a model."""
    if isinstance(call, LLMSpan):
        return [tool_call for message in call.output_messages for tool_call in message.tool_calls]
    try:
        messages = json.loads(call.attributes.get("gen_ai.output.messages") or "[]")
        parts = [part for message in messages for part in message["parts"] if part["type"] == "tool_call"]
        return [ToolCall(str(part["name"]), _object(part.get("arguments")), part.get("id")) for part in parts]
    except (TypeError, ValueError, KeyError, RecursionError):
        return []  # content that is hidden or cut off: the spans of tools are left


def _object(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return {"_raw": arguments}
    return arguments if isinstance(arguments, dict) else {} if arguments is None else {"_raw": arguments}
