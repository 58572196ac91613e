"""The spans of one trace as a tree: each once, below their parents, with the messages in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from evalwright.importers.openai_messages import read_conversation
from evalwright.importers.recording import RecordedConversation
from evalwright.importers.span_conventions import (
    SpanUsage,
    input_messages,
    kind_of,
    output_messages,
    unread_usage,
    usage_of,
)
from evalwright.importers.wire_spans import WireSpan
from evalwright.model.same_calls import RecordedCall, same_calls
from evalwright.model.trace import ToolCall

__all__ = ["HIDDEN", "SpanTree"]

HIDDEN = "__REDACTED__"
"""What OpenInference's exporters write in place of hidden values."""


class SpanTree:
    """The spans of a trace, each once, below their parents."""

    def __init__(self, records: Sequence[WireSpan]) -> None:
        self.warnings: list[str] = []
        self.faults: list[str] = []
        """What is broken in the spans."""
        self.hides_texts: bool = False
        """Whether texts were hidden before the export."""
        self._spans: dict[str, WireSpan] = {}
        for record in records:
            if record.name is not None:
                self._add(record)
        apart = [record for record in records if record.name is None]
        whole = [record for record in apart if not record.span_id]
        for record in apart:
            if record.span_id:
                self._complete(self._spans.get(record.span_id), record)
        self._messages: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._nest()
        if any(record.attributes for record in whole):
            self._surround(records[0].trace_id)
        self.ordered: list[WireSpan] = sorted(
            self._spans.values(), key=lambda span: (span.started_at or 0, -(span.finished_at or 0))
        )
        self._depths = self._span_depths()
        self.top: WireSpan = self._find_top()
        for record in whole:
            self._complete(self.top, record)
        self.kinds: dict[str, str] = {span.span_id: kind_of(span) for span in self.ordered}
        self.models: list[WireSpan] = sorted(self.of_kind("llm"), key=lambda span: span.finished_at or 0)

    def _add(self, record: WireSpan) -> None:
        record.span_id = record.span_id or f"unidentified-{len(self._spans) + 1}"
        where = f"span {record.span_id} ({record.name or 'unnamed'})"
        faults = list(record.faults)
        hidden = [key for key, value in record.attributes.items() if value == HIDDEN]
        for key in hidden:
            del record.attributes[key]
            self.hides_texts = True
        if record.started_at and record.finished_at and record.finished_at < record.started_at:
            faults.append("ends before it starts")
        self.faults += [f"{where}: {fault}" for fault in faults]
        if record.dropped:
            self.warnings.append(
                f"{where}: {record.dropped} of its attributes and events were dropped before the export"
            )
        self.warnings += [f"{where}: {what}" for what in unread_usage(record.attributes)]
        known = self._spans.setdefault(record.span_id, record)
        if known.finished_at is None and record.finished_at is not None:
            self._spans[record.span_id] = record  # it was exported before it ended, too
        elif known is not record and known != record and record.finished_at is not None:
            self.warnings.append(f"{where}: occurs twice with different contents; the first counts")

    def _complete(self, span: WireSpan | None, record: WireSpan) -> None:
        """Add what was exported apart from a span."""
        if span is None:
            what = "has scores" if record.scores else "has events" if record.events else "is listed"
            self.warnings.append(f"span {record.span_id}: {what}, but the span itself is missing")
            return
        span.attributes = {**record.attributes, **span.attributes}
        span.events += record.events
        span.scores += [score for score in record.scores if score not in span.scores]
        span.facts |= record.facts

    def _nest(self) -> None:
        """Put a model call that two instrumentations recorded beside each other below the span around it."""
        models = [span for span in self._spans.values() if kind_of(span) == "llm" and span.finished_at]
        calls = [_recorded_call(span, self._reply(span)) for span in models]
        parents = {span.span_id: span.parent_id for span in self._spans.values()}
        for inner, outer in same_calls(calls, parents).items():
            self._spans[inner].parent_id = outer

    def _surround(self, trace_id: str) -> None:
        """Put several roots below a span of the whole trace, which was exported apart from its spans."""
        roots = [span for span in self._spans.values() if span.parent_id is None]
        if len(roots) < 2:
            return
        starts = [span.started_at for span in roots if span.started_at is not None]
        ends = [span.finished_at for span in roots if span.finished_at is not None]
        around = WireSpan(trace_id, trace_id, "trace", None, min(starts, default=None))
        around.finished_at = max(ends) if len(ends) == len(roots) else None
        for span in roots:
            span.parent_id = trace_id
        self._spans[trace_id] = around

    def innermost_spans(self, spans: Sequence[WireSpan]) -> list[WireSpan]:
        """The spans that contain none of the others."""
        around: set[str] = set()
        for span in spans:
            at = span.parent_id
            while at is not None and at in self._spans and at not in around:
                around.add(at)
                at = self._spans[at].parent_id
        return [span for span in spans if span.span_id not in around]

    def _span_depths(self) -> dict[str, int]:
        """The depth of each span; one whose parent is missing, or that is in a cycle of parents, is at the top."""
        depths: dict[str, int] = {}
        for span_id in self._spans:
            way: dict[str, None] = {}
            at: str | None = span_id
            while at is not None and at in self._spans and at not in depths and at not in way:
                way[at] = None
                at = self._spans[at].parent_id
            if at in way:
                self.faults.append(f"span {at}: is below itself")
            depth = depths.get(at, -1) if at is not None else -1
            for one in reversed(way):
                depth += 1
                depths[one] = depth
        return depths

    def _find_top(self) -> WireSpan:
        tops = [span for span in self.ordered if self._depths[span.span_id] == 0]
        roots = [span for span in tops if span.parent_id is None]
        if not roots:
            self.warnings.append(f"the root span is missing; {tops[0].name!r}, the first one, is used instead")
        elif len(tops) > 1:
            self.warnings.append(f"{len(tops)} spans have no parent; {roots[0].name!r}, the first one, is the root")
        return (roots or tops)[0]

    def of_kind(self, *kinds: str) -> list[WireSpan]:
        return [span for span in self.ordered if self.kinds[span.span_id] in kinds]

    def speakers(self) -> list[WireSpan]:
        """Spans that may have the input and the answer of the whole trace: the root, then agents and chains from the
        top."""
        inner = [span for span in self.of_kind("agent", "chain") if span is not self.top]
        return [self.top, *sorted(inner, key=lambda span: self._depths[span.span_id])]

    def input_messages(self, span: WireSpan) -> list[dict[str, Any]]:
        return self._once("given", input_messages, span)

    def output_messages(self, span: WireSpan) -> list[dict[str, Any]]:
        return self._once("answered", output_messages, span)

    def requested_calls(self, span: WireSpan) -> list[ToolCall]:
        """The calls in the reply of a model."""
        return self._reply(span).tool_calls

    def _reply(self, span: WireSpan) -> RecordedConversation:
        return read_conversation(self.output_messages(span), "", _ignore)

    def _once(
        self, what: str, read: Callable[[WireSpan], list[dict[str, Any]]], span: WireSpan
    ) -> list[dict[str, Any]]:
        """The cached result of `read`: messages are needed several times, and reading them takes most of the time."""
        key = what, span.span_id
        if key not in self._messages:
            self._messages[key] = read(span)
        return self._messages[key]


def _ignore(key: str, message: str) -> None:
    """Does nothing: messages are reported when the conversation of the trace is read."""


def _recorded_call(span: WireSpan, talk: RecordedConversation) -> RecordedCall:
    usage, response = usage_of(span.attributes) or SpanUsage(), span.attributes.get("gen_ai.response.id")
    calls = [[call.name, call.arguments] for call in talk.tool_calls]
    output_of = msgspec.json.encode([talk.final_answer, calls]).decode() if talk.final_answer or calls else ""
    return RecordedCall(
        span.span_id,
        span.started_at or 0,
        span.finished_at or 0,
        span.name or "",  # exports do not name instrumentations, and two do not name their spans alike
        (usage.input or 0, usage.output or 0),
        output_of,
        response if isinstance(response, str) else None,
    )
