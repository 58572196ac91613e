"""Turns captured spans into the spans, tool calls and metrics of a trace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evalwright.capture.model_calls import CapturedSpan, call_tokens, innermost, nested, requested_calls
from evalwright.capture.spans import LLMSpan, StepSpan
from evalwright.capture.values import JsonText, stored
from evalwright.model.trace import Answer, Metrics, Span, ToolCall

__all__ = ["complete", "metrics_of", "spans_of", "tool_calls_of"]

_KINDS = {"chat": "llm", "embedding": "embedding"}
_KEPT = (
    "operation", "provider", "request_model", "response_model", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_creation_tokens", "request_temperature", "request_max_tokens", "request_top_p", "response_id",
)  # fmt: skip


def complete(answer: Answer, captured: Sequence[CapturedSpan]) -> None:
    """Add what was captured to an answer. Tool calls and tokens that the application returns itself take precedence."""
    if not captured:
        return
    answer.spans = answer.spans or spans_of(captured)
    if not answer.tool_calls and not any(message.tool_call is not None for message in answer.messages):
        answer.tool_calls = tool_calls_of(captured)
    if answer.metrics.token_input is None and answer.metrics.token_output is None:
        used = metrics_of(captured)
        answer.metrics.token_input, answer.metrics.token_output = used.token_input, used.token_output


def spans_of(captured: Sequence[CapturedSpan]) -> list[Span]:
    """The captured spans in the order in which they began."""
    return [_span(one) for one in sorted(nested(captured), key=lambda one: one.started_at)]


def _span(one: CapturedSpan) -> Span:
    if isinstance(one, StepSpan):
        span = _blank(one, one.name, one.kind, one.error)
        span.input, span.output = one.attributes.get("input.value"), one.attributes.get("output.value")
        span.attributes = stored({key: _as_list(value) for key, value in one.attributes.items() if key not in _SHOWN})
    elif isinstance(one, LLMSpan):
        span = _blank(one, one.request_model, _KINDS.get(one.operation, "llm"), one.error_type)
        span.input = stored([_plain_message(message) for message in one.input_messages])
        span.output = stored([_plain_message(message) for message in one.output_messages])
        span.attributes = {key: getattr(one, key) for key in _KEPT}
    else:
        span = _blank(one, one.name or "(unnamed)", "span", one.error)
        span.input, span.output = _value(one.input), _value(one.output)
        span.attributes = stored(one.metadata)
    return span


_SHOWN = ("input.value", "output.value")


def _blank(one: CapturedSpan, name: str, kind: str, error: str | None) -> Span:
    status = "ok" if error is None else "error"
    return Span(one.span_id, name, one.parent_span_id, kind, one.started_at, one.ended_at, status, error)


def _plain_message(message: Any) -> dict[str, Any]:
    return {key: _as_list(value) for key, value in asdict(message).items()}


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _value(kept: Any) -> Any:
    return json.loads(kept) if isinstance(kept, JsonText) else stored(kept)


def tool_calls_of(captured: Sequence[CapturedSpan]) -> list[ToolCall]:
    """The tool calls that models requested, in order; if there are none, those with spans of tools."""
    calls = [
        ToolCall(call.name, call.id, stored(call.arguments), one.ended_at)
        for one in sorted(innermost(captured, lambda one: bool(requested_calls(one))), key=lambda one: one.ended_at)
        for call in requested_calls(one)
    ]
    return calls or [
        ToolCall(_tool_name(one), None, _arguments(one), one.started_at)
        for one in sorted(captured, key=lambda one: one.started_at)
        if isinstance(one, StepSpan) and one.kind == "tool"
    ]


def _tool_name(one: StepSpan) -> str:
    return str(one.attributes.get("gen_ai.tool.name") or one.attributes.get("tool.name") or one.name)


def _arguments(one: StepSpan) -> dict[str, Any]:
    arguments = one.attributes.get("gen_ai.tool.call.arguments", one.attributes.get("input.value"))
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        read = None
    return read if isinstance(read, dict) else {} if arguments is None else {"_raw": _as_list(arguments)}


def metrics_of(captured: Sequence[CapturedSpan]) -> Metrics:
    """Tokens of all model calls; None if no call reported any, as 0 would pass every limit unseen."""
    used = [call_tokens(one) for one in innermost(captured, lambda one: call_tokens(one) != (0, 0))]
    return Metrics(sum(given for given, _ in used), sum(written for _, written in used)) if used else Metrics()
