"""Evaluables made from captured spans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from evalwright.capture.listeners import add_handler, flush, init, remove_handler
from evalwright.capture.spans import LLMSpan, ObserveSpan, TextContent
from evalwright.capture.tree import MemoryTraceHandler, ObservationNode
from evalwright.capture.values import recorded_value, stored
from evalwright.formats.pixie.surface.evaluable import Evaluable

__all__ = ["as_evaluable", "capture_traces", "last_llm_call", "root"]


@contextmanager
def capture_traces() -> Iterator[MemoryTraceHandler]:
    """Collect every span of the process that ends inside the block."""
    init()
    handler = MemoryTraceHandler()
    add_handler(handler)
    try:
        yield handler
    finally:
        remove_handler(handler)
        flush()


def as_evaluable(span: ObserveSpan | LLMSpan) -> Evaluable:
    """A span as an evaluable, without an expectation."""
    ids = {"trace_id": span.trace_id, "span_id": span.span_id}
    if isinstance(span, LLMSpan):
        questions = [_parts_as_lists(asdict(message)) for message in span.input_messages]
        return _evaluable(questions, _reply_text(span), {**ids, **_about(span)})
    return _evaluable(recorded_value(span.input), recorded_value(span.output), {**stored(span.metadata), **ids})


def _evaluable(inputs: Any, output: Any, metadata: dict[str, Any]) -> Evaluable:
    return Evaluable.model_validate(
        {
            "eval_input": [{"name": "input", "value": inputs}],
            "eval_output": [{"name": "output", "value": output}],
            "eval_metadata": metadata,
        }
    )


def _parts_as_lists(message: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in message.items()}


def _reply_text(span: LLMSpan) -> str | None:
    parts = span.output_messages[-1].content if span.output_messages else ()
    texts = [part.text for part in parts if isinstance(part, TextContent)]
    return "".join(texts) if texts else None


def _about(span: LLMSpan) -> dict[str, Any]:
    same = (
        "provider", "request_model", "response_model", "operation", "input_tokens", "output_tokens",
        "cache_read_tokens", "cache_creation_tokens",
    )  # fmt: skip
    return {
        **{name: getattr(span, name) for name in same},
        "finish_reasons": list(span.finish_reasons),
        "error_type": span.error_type,
        "tool_definitions": [asdict(tool) for tool in span.tool_definitions],
    }


def root(trace: Sequence[ObservationNode]) -> Evaluable:
    """The first step of a trace. Raises ValueError if it is empty."""
    if not trace:
        raise ValueError("Trace is empty")
    return as_evaluable(trace[0].span)


def last_llm_call(trace: Sequence[ObservationNode]) -> Evaluable:
    """The model call that ended last. Raises ValueError if there is none."""
    calls = [node.span for top in trace for node in top.find_by_type(LLMSpan)]
    if not calls:
        raise ValueError("No LLMSpan found in the trace")
    return as_evaluable(max(calls, key=lambda span: span.ended_at))
