"""The spans of one trace as a recording: input, answer, tool calls, tokens, times and the tree of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from evalwright.importers.openai_messages import read_conversation
from evalwright.importers.platform_scores import scores_by_name
from evalwright.importers.recording import UNKNOWN_TIME, RecordedConversation
from evalwright.importers.span_conventions import (
    SpanUsage,
    input_messages,
    kind_of,
    output_messages,
    shown_input,
    shown_output,
    tool_of,
    usage_of,
)
from evalwright.importers.span_messages import content_of, text_content
from evalwright.importers.wire_spans import WireSpan
from evalwright.model.same_calls import RecordedCall, same_calls
from evalwright.model.trace import Metrics, Output, Span, SpanEvent, ToolCall, ToolResult, Trace, TraceError

__all__ = ["trace_of_spans"]

_MOST_WARNINGS = 20
_HIDDEN = "__REDACTED__"
"""What OpenInference's exporters write in place of hidden values."""
_ABOUT = ("session.id", "gen_ai.conversation.id", "user.id", "gen_ai.agent.name")
_SAID = ("input.", "output.", "llm.input_messages", "llm.output_messages", "gen_ai.input.messages", "gen_ai.prompt",
         "gen_ai.output.messages", "gen_ai.completion", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
         "traceloop.entity.input", "traceloop.entity.output", "retrieval.documents")  # fmt: skip
"""Attributes that make up a span's input and output."""


def trace_of_spans(records: Sequence[WireSpan], file: str) -> tuple[Trace, dict[str, Any], dict[str, Any]]:
    """The recording of one trace, what else is known about it (for the metadata of its case), and the facts that its
    case expects.

    A trace with a broken span, without an end, or with a failed application has an error and gets no verdict.
    """
    tree = _Tree(records)
    talk = tree.conversation()
    started, finished = tree.times()
    asked, output_of = tree.input(talk), tree.output_of(talk)
    trace = Trace(
        case_id=tree.top.trace_id,
        variant_name="recorded",
        started_at=_at(started) or UNKNOWN_TIME,
        finished_at=_at(finished or started) or UNKNOWN_TIME,
        latency_ms=(finished - started) // 1_000_000 if started and finished and finished >= started else None,
        input=asked,
        output=output_of,
        messages=talk.messages,
        tool_calls=tree.calls(talk),
        tool_results=tree.results(talk),
        metrics=tree.metrics(),
        error=tree.error(),
        extra={"source": "import", "trace_id": tree.top.trace_id, "imported_from": {"file": file}},
        spans=[tree.span(one) for one in tree.ordered],
    )
    unrecorded = tree.unrecorded(asked, output_of)
    if trace.error is None and unrecorded is not None:
        trace.extra["answer_unrecorded"] = unrecorded
    if scores := tree.scores():
        trace.extra["recorded_scores"] = scores
        trace.metrics.custom |= scores_by_name(tree.top.scores)
    if tree.warnings:
        trace.extra["warnings"] = tree.warnings[:_MOST_WARNINGS]
    return trace, tree.about(), tree.top.facts


class _Tree:
    """The spans of a trace, each once, below their parents."""

    def __init__(self, records: Sequence[WireSpan]) -> None:
        self.warnings: list[str] = []
        self._hidden = False
        self._faults: list[str] = []
        self._spans: dict[str, WireSpan] = {}
        for record in records:
            if record.name is not None:
                self._add(record)
        for record in records:
            if record.name is not None:
                continue
            span = self._spans.get(record.span_id)
            if span is None:
                what = "scores" if record.scores else "events"
                self.warnings.append(f"span {record.span_id}: has {what}, but the span itself is missing")
                continue
            span.events += record.events
            span.scores += record.scores
            span.facts |= record.facts
        self._messages: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._nest()
        self.ordered = sorted(self._spans.values(), key=lambda span: (span.started_at or 0, -(span.finished_at or 0)))
        self._depths = self._span_depths()
        self.top = self._find_top()
        self._kinds = {span.span_id: kind_of(span) for span in self.ordered}
        self._models = sorted(self._of_kind("llm"), key=lambda span: span.finished_at or 0)

    def _add(self, record: WireSpan) -> None:
        record.span_id = record.span_id or f"unidentified-{len(self._spans) + 1}"
        where = f"span {record.span_id} ({record.name or 'unnamed'})"
        faults = list(record.faults)
        hidden = [key for key, value in record.attributes.items() if value == _HIDDEN]
        for key in hidden:
            del record.attributes[key]
            self._hidden = True
        if record.started_at and record.finished_at and record.finished_at < record.started_at:
            faults.append("ends before it starts")
        self._faults += [f"{where}: {fault}" for fault in faults]
        if record.dropped:
            self.warnings.append(
                f"{where}: {record.dropped} of its attributes and events were dropped before the export"
            )
        known = self._spans.setdefault(record.span_id, record)
        if known is not record and known != record:
            self.warnings.append(f"{where}: occurs twice with different contents; the first counts")

    def _nest(self) -> None:
        """Put a model call that two instrumentations recorded beside each other below the span around it."""
        models = [span for span in self._spans.values() if kind_of(span) == "llm" and span.finished_at]
        calls = [
            _recorded_call(span, read_conversation(self._output_messages(span), "", self._ignore)) for span in models
        ]
        parents = {span.span_id: span.parent_id for span in self._spans.values()}
        for inner, outer in same_calls(calls, parents).items():
            self._spans[inner].parent_id = outer

    def _innermost_spans(self, spans: Sequence[WireSpan]) -> list[WireSpan]:
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
                self._faults.append(f"span {at}: is below itself")
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

    def _of_kind(self, *kinds: str) -> list[WireSpan]:
        return [span for span in self.ordered if self._kinds[span.span_id] in kinds]

    def _speakers(self) -> list[WireSpan]:
        """Spans that may have the input and the answer of the whole trace: the root, then agents and chains from the
        top."""
        inner = [span for span in self._of_kind("agent", "chain") if span is not self.top]
        return [self.top, *sorted(inner, key=lambda span: self._depths[span.span_id])]

    def _input_messages(self, span: WireSpan) -> list[dict[str, Any]]:
        return self._once("given", input_messages, span)

    def _output_messages(self, span: WireSpan) -> list[dict[str, Any]]:
        return self._once("answered", output_messages, span)

    def _once(
        self, what: str, read: Callable[[WireSpan], list[dict[str, Any]]], span: WireSpan
    ) -> list[dict[str, Any]]:
        """The cached result of `read`: messages are needed several times, and reading them takes most of the time."""
        key = what, span.span_id
        if key not in self._messages:
            self._messages[key] = read(span)
        return self._messages[key]

    def times(self) -> tuple[int | None, int | None]:
        """Start and end in nanoseconds: the root's, else the first and last of all spans."""
        starts = [span.started_at for span in self.ordered if span.started_at]
        ends = [span.finished_at for span in self.ordered if span.finished_at]
        return self.top.started_at or min(starts, default=None), self.top.finished_at or max(ends, default=None)

    def error(self) -> TraceError | None:
        faults = list(self._faults)
        if self.top.finished_at is None:
            faults.append(
                f"span {self.top.span_id} ({self.top.name}): has no end: it was not finished, or not fully exported"
            )
        if self.top.started_at is None:
            faults.append(f"span {self.top.span_id} ({self.top.name}): has no start")
        if faults:
            more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
            return TraceError("broken_trace", "; ".join(faults[:5]) + more)
        if self.top.status != "error":
            return None
        raised = next((event.attributes for event in self.top.events if event.name == "exception"), {})
        kind = self.top.attributes.get("error.type", raised.get("exception.type"))
        message = self.top.message or raised.get("exception.message") or "the application failed"
        stack = raised.get("exception.stacktrace")
        text = f"{kind}: {message}" if isinstance(kind, str) and kind not in str(message) else str(message)
        return TraceError("exception", text, stack if isinstance(stack, str) else None)

    def conversation(self) -> RecordedConversation:
        """The conversation of the model call that ended last, or of the agent if there are no model calls."""
        for span in [*reversed(self._models), *self._speakers()]:
            messages = [*self._input_messages(span), *self._output_messages(span)]
            if messages:
                return read_conversation(messages, f"span {span.span_id}, messages", self._warn)
        return RecordedConversation()

    def _warn(self, key: str, message: str) -> None:
        self.warnings.append(f"{key}: {message}")

    def input(self, talk: RecordedConversation) -> dict[str, Any]:
        """The input of the case: the application's input fields, and the user's text as `user_message`."""
        for span in self._speakers():
            shown = shown_input(span)
            text = text_content(shown, "user") or content_of(self._input_messages(span), "user")
            if text:
                fields = shown if isinstance(shown, dict) and "messages" not in shown else {}
                return {"user_message": text, **fields}
        first = next(
            (found for span in self._models if (found := content_of(self._input_messages(span), "user"))), None
        )
        return {"user_message": first or talk.user_message or self._only_text(shown_input, "user") or ""}

    def output_of(self, talk: RecordedConversation) -> Output:
        for span in self._speakers():
            shown = shown_output(span)
            text = text_content(shown, "assistant") or content_of(self._output_messages(span), "assistant")
            if text:
                return Output(text, talk.thinking, shown if isinstance(shown, dict) else None)
        return Output(talk.final_answer or self._only_text(shown_output, "assistant"), talk.thinking)

    def unrecorded(self, asked: dict[str, Any], output_of: Output) -> str | None:
        """Why the answer is unknown; None if it is known, or known to be missing."""
        if output_of.final_answer:
            return None
        if self._hidden:
            return f"texts were hidden before the export ({_HIDDEN})"
        return None if asked["user_message"] else "the export contains neither input nor answer"

    def _only_text(self, shown: Any, role: str) -> str | None:
        """The text according to values of model calls without messages."""
        return next((found for span in reversed(self._models) if (found := text_content(shown(span), role))), None)

    def calls(self, talk: RecordedConversation) -> list[ToolCall]:
        """The calls with spans of tools, and further ones that models requested, ordered by time."""
        found = [(span.started_at or 0, self._executed_call(span)) for span in self._of_kind("tool")]
        executed = [call for _, call in found]
        asked = {span.span_id: self._requested_calls(span) for span in self._models}
        for span in self._innermost_spans([span for span in self._models if asked[span.span_id]]):
            found += [
                (span.finished_at or 0, call) for call in asked[span.span_id] if not _take_executed(call, executed)
            ]
        if not found:
            return talk.tool_calls
        return [call for _, call in sorted(found, key=lambda pair: pair[0])]

    def _requested_calls(self, span: WireSpan) -> list[ToolCall]:
        return read_conversation(self._output_messages(span), "", self._ignore).tool_calls

    def _ignore(self, key: str, message: str) -> None:
        """Does nothing: these were reported while the conversation was read."""

    def _executed_call(self, span: WireSpan) -> ToolCall:
        name, call_id, arguments, _ = tool_of(span)
        given = arguments if isinstance(arguments, dict) else {} if arguments is None else {"_raw": arguments}
        return ToolCall(name, call_id, given, _at(span.started_at))

    def results(self, talk: RecordedConversation) -> list[ToolResult]:
        found = []
        for span in self._of_kind("tool"):
            name, call_id, _, result = tool_of(span)
            if result is not None:
                found.append(
                    ToolResult(
                        name, result if isinstance(result, dict) else text_content(result, "tool") or "", call_id
                    )
                )
        return found or talk.tool_results

    def metrics(self) -> Metrics:
        """The sums over the innermost spans with usage: spans around them often repeat the sum."""
        used = [span for span in self.ordered if usage_of(span.attributes) is not None]
        counted = [usage_of(span.attributes) or SpanUsage() for span in self._innermost_spans(used)]
        sums = [
            sum(given) if (given := [one for one in column if one is not None]) else None
            for column in zip(*counted, strict=True)
        ]
        if not sums:
            return Metrics()
        read_in, written_out, thinking, cost, read, written = sums
        cached = {"cache_read_tokens": read, "cache_write_tokens": written}
        custom = {name: number for name, number in cached.items() if number is not None}
        return Metrics(read_in, written_out, thinking, cost, custom=custom)

    def scores(self) -> list[dict[str, Any]]:
        """What was found in the trace, then what was found in its other spans, with their ids."""
        inside = [{**one, "span": span.span_id} for span in self.ordered if span is not self.top for one in span.scores]
        return [*self.top.scores, *inside]

    def about(self) -> dict[str, Any]:
        names = {"service": self.top.service, **{key: self.top.attributes.get(key) for key in _ABOUT}}
        return {key: value for key, value in names.items() if isinstance(value, str)}

    def span(self, one: WireSpan) -> Span:
        messages_in, messages_out = self._input_messages(one), self._output_messages(one)
        raised = next(
            (event.attributes.get("exception.message") for event in one.events if event.name == "exception"), None
        )
        error = (one.message or str(raised or "error")) if one.status == "error" else None
        return Span(
            one.span_id,
            one.name or "(unnamed)",
            one.parent_id,
            self._kinds[one.span_id],
            _at(one.started_at),
            _at(one.finished_at),
            one.status,
            error,
            messages_in or shown_input(one),
            messages_out or shown_output(one),
            {key: value for key, value in one.attributes.items() if not key.startswith(_SAID)},
            [SpanEvent(event.name, _at(event.at), event.attributes) for event in one.events],
        )


def _take_executed(call: ToolCall, executed: list[ToolCall]) -> bool:
    """Whether a call that a model requested is among the executed ones, each of which counts once.

    The span of an executed call may lack its id or its arguments, or have these as a text only.
    """
    fits = [one for one in executed if one.id is not None and one.id == call.id] or [
        one for one in executed if one.name == call.name and (one.id is None or call.id is None)
    ]
    if fits:
        found = next((one for one in fits if one.arguments == call.arguments), fits[0])
        executed.remove(found)
        found.id = found.id or call.id
        if "_raw" in found.arguments or not found.arguments:
            found.arguments = call.arguments
    return bool(fits)


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


def _at(nanoseconds: int | None) -> datetime | None:
    if nanoseconds is None:
        return None
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).replace(
        microsecond=nanoseconds // 1000 % 1_000_000
    )
