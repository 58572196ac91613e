"""Turns captured spans into the spans, tool calls and metrics of a trace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evalwright.capture.model_calls import CapturedSpan, call_tokens, innermost, nested, requested_calls
from evalwright.capture.spans import LLMSpan, StepSpan
from evalwright.capture.values import recorded_value, stored
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
    return [_span(span) for span in sorted(nested(captured), key=lambda span: span.started_at)]


def _span(captured: CapturedSpan) -> Span:
    if isinstance(captured, StepSpan):
        span = _blank(captured, captured.name, captured.kind, captured.error)
        span.input, span.output = captured.attributes.get("input.value"), captured.attributes.get("output.value")
        span.attributes = stored(
            {key: _as_list(value) for key, value in captured.attributes.items() if key not in _SHOWN}
        )
    elif isinstance(captured, LLMSpan):
        span = _blank(captured, captured.request_model, _KINDS.get(captured.operation, "llm"), captured.error_type)
        span.input = stored([_plain_message(message) for message in captured.input_messages])
        span.output = stored([_plain_message(message) for message in captured.output_messages])
        span.attributes = {key: getattr(captured, key) for key in _KEPT}
    else:
        span = _blank(captured, captured.name or "(unnamed)", "span", captured.error)
        span.input, span.output = recorded_value(captured.input), recorded_value(captured.output)
        span.attributes = stored(captured.metadata)
    return span


_SHOWN = ("input.value", "output.value")


def _blank(span: CapturedSpan, name: str, kind: str, error: str | None) -> Span:
    status = "ok" if error is None else "error"
    return Span(span.span_id, name, span.parent_span_id, kind, span.started_at, span.ended_at, status, error)


def _plain_message(message: Any) -> dict[str, Any]:
    return {key: _as_list(value) for key, value in asdict(message).items()}


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def tool_calls_of(captured: Sequence[CapturedSpan]) -> list[ToolCall]:
    """The tool calls that models requested, in order; if there are none, those with spans of tools."""
    calls = [
        ToolCall(call.name, call.id, stored(call.arguments), span.ended_at)
        for span in sorted(
            innermost(captured, lambda span: bool(requested_calls(span))), key=lambda span: span.ended_at
        )
        for call in requested_calls(span)
    ]
    return calls or [
        ToolCall(_tool_name(span), None, _arguments(span), span.started_at)
        for span in sorted(captured, key=lambda span: span.started_at)
        if isinstance(span, StepSpan) and span.kind == "tool"
    ]


def _tool_name(span: StepSpan) -> str:
    return str(span.attributes.get("gen_ai.tool.name") or span.attributes.get("tool.name") or span.name)


def _arguments(span: StepSpan) -> dict[str, Any]:
    arguments = span.attributes.get("gen_ai.tool.call.arguments", span.attributes.get("input.value"))
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        read = None
    return read if isinstance(read, dict) else {} if arguments is None else {"_raw": _as_list(arguments)}


def metrics_of(captured: Sequence[CapturedSpan]) -> Metrics:
    """Tokens of all model calls; None if no call reported any, as 0 would pass every limit unseen."""
    used = [call_tokens(span) for span in innermost(captured, lambda span: call_tokens(span) != (0, 0))]
    return Metrics(sum(read for read, _ in used), sum(written for _, written in used)) if used else Metrics()
