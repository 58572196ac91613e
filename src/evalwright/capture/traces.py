"""Captured spans as the spans and the numbers of a trace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evalwright.capture.recording import JsonText
from evalwright.capture.spans import LLMSpan, ObserveSpan
from evalwright.capture.values import stored
from evalwright.model.trace import Metrics, Span

__all__ = ["metrics_of", "spans_of"]

_KINDS = {"chat": "llm", "embedding": "embedding"}
_KEPT = (
    "operation", "provider", "request_model", "response_model", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_creation_tokens", "request_temperature", "request_max_tokens", "request_top_p", "response_id",
)  # fmt: skip


def spans_of(captured: Sequence[Any]) -> list[Span]:
    """The spans in the order in which they began."""
    return [_span(one) for one in sorted(captured, key=lambda one: one.started_at)]


def _span(one: ObserveSpan | LLMSpan) -> Span:
    called = isinstance(one, LLMSpan)
    error = one.error_type if isinstance(one, LLMSpan) else one.error
    span = Span(
        one.span_id,
        one.request_model if isinstance(one, LLMSpan) else one.name or "(unnamed)",
        one.parent_span_id,
        _KINDS.get(one.operation, "llm") if isinstance(one, LLMSpan) else "span",
        one.started_at,
        one.ended_at,
        "ok" if error is None else "error",
        error,
    )
    if isinstance(one, LLMSpan):
        span.input = stored([_plain(message) for message in one.input_messages])
        span.output = stored([_plain(message) for message in one.output_messages])
    else:
        span.input, span.output = _value(one.input), _value(one.output)
    span.attributes = {key: getattr(one, key) for key in _KEPT} if called else stored(getattr(one, "metadata", {}))
    return span


def _plain(message: Any) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(message).items()}


def _value(kept: Any) -> Any:
    return json.loads(kept) if isinstance(kept, JsonText) else stored(kept)


def metrics_of(captured: Sequence[Any]) -> Metrics:
    """Tokens of all model calls; nothing where none was seen."""
    calls = [one for one in captured if isinstance(one, LLMSpan)]
    if not calls:
        return Metrics()
    return Metrics(sum(call.input_tokens for call in calls), sum(call.output_tokens for call in calls))
