"""Captured spans as a tree, and as an outline for readers and judges."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from evalwright.capture.listeners import Collector
from evalwright.capture.spans import (
    AssistantMessage,
    LLMSpan,
    Message,
    ObserveSpan,
    TextContent,
    ToolResultMessage,
)

__all__ = ["MemoryTraceHandler", "ObservationNode", "tree_of"]


class ObservationNode:
    """A span with the spans that began inside it."""

    def __init__(self, span: ObserveSpan | LLMSpan, children: list[ObservationNode] | None = None) -> None:
        self.span = span
        self.children: list[ObservationNode] = children if children is not None else []

    @property
    def span_id(self) -> str:
        return self.span.span_id

    @property
    def trace_id(self) -> str:
        return self.span.trace_id

    @property
    def parent_span_id(self) -> str | None:
        return self.span.parent_span_id

    @property
    def duration_ms(self) -> float:
        return self.span.duration_ms

    @property
    def name(self) -> str:
        """The model of a model call, or the name of a step."""
        if isinstance(self.span, LLMSpan):
            return self.span.request_model
        return self.span.name or "(unnamed)"

    def nodes(self) -> Iterator[ObservationNode]:
        """This node and all below it, depth first."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def find(self, name: str) -> list[ObservationNode]:
        """The nodes with that name, including this one."""
        return [node for node in self.nodes() if node.name == name]

    def find_by_type(self, kind: type) -> list[ObservationNode]:
        """The nodes whose span is of that type, including this one."""
        return [node for node in self.nodes() if isinstance(node.span, kind)]

    def to_text(self) -> str:
        """An outline of the node and all below it."""
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        span = self.span
        provider = f"{span.provider}, " if isinstance(span, LLMSpan) else ""
        yield f"{indent}{self.name} [{provider}{self.duration_ms:.0f}ms]"
        lines = _lines_of_call(span) if isinstance(span, LLMSpan) else _lines_of_step(span)
        for line in lines:
            yield f"{indent}  {line}"
        for child in self.children:
            yield from child._lines(indent + "  ")


def _lines_of_step(span: ObserveSpan) -> Iterator[str]:
    for label, value in (("input", span.input), ("output", span.output)):
        if value is not None:
            yield f"{label}: {_text_or_json(value)}"
    if span.error is not None:
        yield f"<e>{span.error}</e>"
    if span.metadata:
        yield f"metadata: {_text_or_json(span.metadata)}"


def _lines_of_call(span: LLMSpan) -> Iterator[str]:
    for label, messages in (("input_messages", span.input_messages), ("output", span.output_messages)):
        if messages:
            yield f"{label}:"
            for message in messages:
                yield f"  {_line_of_message(message)}"
    if span.input_tokens or span.output_tokens:
        cached = f" ({span.cache_read_tokens} cache read)" if span.cache_read_tokens else ""
        yield f"tokens: {span.input_tokens} in / {span.output_tokens} out{cached}"
    if span.error_type is not None:
        yield f"<e>{span.error_type}</e>"
    if span.tool_definitions:
        yield f"tools: [{', '.join(tool.name for tool in span.tool_definitions)}]"


def _line_of_message(message: Message) -> str:
    if isinstance(message, ToolResultMessage):
        return f"tool({message.tool_name}): {message.content}"
    if isinstance(message.content, str):
        return f"{message.role}: {message.content}"
    line = f"{message.role}: " + "".join(part.text for part in message.content if isinstance(part, TextContent))
    if isinstance(message, AssistantMessage) and message.tool_calls:
        line += f" [tool_calls: {', '.join(call.name for call in message.tool_calls)}]"
    return line


def _text_or_json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def tree_of(spans: Iterable[ObserveSpan | LLMSpan]) -> list[ObservationNode]:
    """The roots: spans whose parent is not among the spans. Siblings are in the order in which they began."""
    nodes = {span.span_id: ObservationNode(span) for span in sorted(spans, key=lambda span: span.started_at)}
    roots: list[ObservationNode] = []
    for node in nodes.values():
        parent = nodes.get(node.parent_span_id or "")
        (roots if parent is None or parent is node else parent.children).append(node)
    return roots


class MemoryTraceHandler(Collector):
    """Keeps the spans that it receives, and shows them as trees."""

    async def on_llm(self, span: LLMSpan) -> None:
        """Take a model call, from a program that delivers spans itself."""
        self.collect(span)

    async def on_observe(self, span: ObserveSpan) -> None:
        """Take a step, from a program that delivers spans itself."""
        self.collect(span)

    def get_trace(self, trace_id: str) -> list[ObservationNode]:
        """The roots of one trace."""
        return tree_of(span for span in self.spans if span.trace_id == trace_id)

    def get_all_traces(self) -> dict[str, list[ObservationNode]]:
        """The roots of every trace, by its id."""
        by_trace: dict[str, list[Any]] = defaultdict(list)
        for span in self.spans:
            by_trace[span.trace_id].append(span)
        return {trace_id: tree_of(spans) for trace_id, spans in by_trace.items()}

    def clear(self) -> None:
        """Forget all spans."""
        self.spans.clear()
        self.steps.clear()
