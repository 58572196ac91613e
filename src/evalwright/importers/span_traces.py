"""The spans of one trace as a recording: input, answer, tool calls, tokens, times and the tree of its steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.call_payloads import is_message_list
from evalwright.importers.openai_messages import read_conversation
from evalwright.importers.platform_scores import scores_by_name
from evalwright.importers.recording import UNKNOWN_TIME, RecordedConversation
from evalwright.importers.span_conventions import (
    SpanUsage,
    shown_input,
    shown_output,
    tool_of,
    usage_of,
)
from evalwright.importers.span_failures import error_of, failure_in
from evalwright.importers.span_messages import content_of, json_content, plain_messages, text_content
from evalwright.importers.span_tree import HIDDEN, SpanTree
from evalwright.importers.span_turns import joined_turns, with_answered_calls, with_thinking
from evalwright.importers.wire_spans import WireSpan
from evalwright.model.trace import Metrics, Output, Span, SpanEvent, ToolCall, ToolResult, Trace, TraceError

__all__ = ["trace_of_spans"]

_MOST_WARNINGS = 20
_ABOUT = ("session.id", "gen_ai.conversation.id", "user.id", "gen_ai.agent.name")
_SAID = ("input.", "output.", "llm.input_messages", "llm.output_messages", "gen_ai.input.messages", "gen_ai.prompt",
         "gen_ai.output.messages", "gen_ai.completion", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
         "traceloop.entity.input", "traceloop.entity.output", "retrieval.documents", "ai.prompt", "ai.response.text",
         "ai.response.toolCalls", "ai.toolCall.args", "ai.toolCall.result", "pydantic_ai.all_messages",
         "tool_arguments", "tool_response", "final_result", "llm.prompts", "llm.completions",
         "gcp.vertex.agent.llm_", "gcp.vertex.agent.tool_")  # fmt: skip
"""Attributes that make up a span's input and output."""


def trace_of_spans(records: Sequence[WireSpan], file: str) -> tuple[Trace, dict[str, Any], dict[str, Any]]:
    """The recording of one trace, what else is known about it (for the metadata of its case), and the facts that its
    case expects.

    A trace with a broken span, without an end, or with a failed application has an error and gets no verdict.
    """
    tree = SpanTree(records)
    recording = _Recording(tree)
    talk = recording.conversation()
    started, finished = recording.times()
    question, output_of, calls = recording.input(talk), recording.output_of(talk), recording.calls(talk)
    trace = Trace(
        case_id=tree.top.trace_id,
        variant_name="recorded",
        started_at=_at(started) or UNKNOWN_TIME,
        finished_at=_at(finished or started) or UNKNOWN_TIME,
        latency_ms=(finished - started) // 1_000_000 if started and finished and finished >= started else None,
        input=question,
        output=output_of,
        messages=talk.messages,
        tool_calls=calls,
        tool_results=recording.results(talk, calls),
        metrics=recording.metrics(talk),
        error=recording.error(output_of.final_answer),
        extra={"source": "import", "trace_id": tree.top.trace_id, "imported_from": {"file": file}},
        spans=[recording.span(span) for span in tree.ordered],
    )
    unrecorded = recording.unrecorded(question, output_of)
    if trace.error is None and unrecorded is not None:
        trace.extra["answer_unrecorded"] = unrecorded
    if scores := recording.scores():
        trace.extra["recorded_scores"] = scores
        trace.metrics.custom |= scores_by_name(tree.top.scores)
    if tree.warnings:
        trace.extra["warnings"] = tree.warnings[:_MOST_WARNINGS]
    return trace, recording.about(), tree.top.facts


class _Recording:
    """What a trace says about the run that it records."""

    def __init__(self, tree: SpanTree) -> None:
        self._tree, self._top = tree, tree.top
        self._executed = [(span, _executed_call(span)) for span in tree.of_kind("tool")]
        self._is_silent = False
        """Whether the last call of a model was exported without its reply."""

    def times(self) -> tuple[int | None, int | None]:
        """Start and end in nanoseconds: the root's, else the first and last of all spans."""
        starts = [span.started_at for span in self._tree.ordered if span.started_at]
        ends = [span.finished_at for span in self._tree.ordered if span.finished_at]
        return self._top.started_at or min(starts, default=None), self._top.finished_at or max(ends, default=None)

    def error(self, answer: str | None) -> TraceError | None:
        faults = list(self._tree.faults)
        if self._top.finished_at is None and self._top.status != "error":  # what failed may have been given no end
            faults.append(
                f"span {self._top.span_id} ({self._top.name}): has no end: it was not finished, or not fully exported"
            )
        if self._top.started_at is None:
            faults.append(f"span {self._top.span_id} ({self._top.name}): has no start")
        if faults:
            more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
            return TraceError("broken_trace", "; ".join(faults[:5]) + more)
        if self._top.status == "error":
            return error_of(self._top)
        # some frameworks end the span around an agent that failed as if it had not
        agents = [span for span in self._tree.speakers() if self._tree.kinds[span.span_id] == "agent"]
        failed = [span for span in [*agents, *self._tree.models[-1:]] if span.status == "error"]
        if answer:
            if any(self._answer(span)[0] for span in self._tree.speakers()):
                return None
            # what a model said before the last agent failed, for instance beside a call, is no answer
            last = max(span.finished_at or 0 for span in [*agents, *self._tree.models]) if failed else 0
            failed = [span for span in failed if span in agents and (span.finished_at or 0) >= last]
        return next(map(error_of, failed), None)

    def conversation(self) -> RecordedConversation:
        """The conversation of the model call that ended last, or of the agent if there are no model calls; else the one
        that an application has in its state."""
        for span in [*reversed(self._tree.models), *self._tree.speakers()]:
            messages = joined_turns([*self._tree.input_messages(span), *self._tree.output_messages(span)])
            if messages:
                replies = map(joined_turns, map(self._tree.output_messages, self._tree.models))
                messages = with_answered_calls(with_thinking(messages, chain.from_iterable(replies)))
                talk = read_conversation(messages, f"span {span.span_id}, messages", self._warn)
                if span in self._tree.models and talk.messages and talk.messages[-1].role != "assistant":
                    # what was said before a reply that is not among the messages is no answer
                    talk.final_answer = text_content(shown_output(span), "assistant")
                    self._is_silent = talk.final_answer is None and span.status != "error"
                return talk
        for span in self._tree.speakers():
            if messages := _messages_in_state(span):
                return read_conversation(messages, f"span {span.span_id}, messages", self._warn)
        return RecordedConversation()

    def _warn(self, key: str, message: str) -> None:
        self._tree.warnings.append(f"{key}: {message}")

    def input(self, talk: RecordedConversation) -> dict[str, Any]:
        """The input of the case: the application's input fields, and the user's text as `user_message`."""
        for span in self._tree.speakers():
            shown = self._shown(span, self._tree.input_messages, shown_input)
            text = text_content(shown, "user") or content_of(self._tree.input_messages(span), "user")
            if text:
                fields = shown if isinstance(shown, dict) and "messages" not in shown else {}
                return {"user_message": text, **fields}
        first = next(
            (content for span in self._tree.models if (content := content_of(self._tree.input_messages(span), "user"))),
            None,
        )
        return {
            "user_message": first
            or talk.user_message
            or self._only_text(self._tree.input_messages, shown_input, "user")
            or ""
        }

    def _shown(self, span: WireSpan, messages: Callable[[WireSpan], Any], shown: Callable[[WireSpan], Any]) -> Any:
        """The input or output of a span; None for a call of a model with messages, whose values are the whole request
        and reply."""
        return None if self._tree.kinds[span.span_id] == "llm" and messages(span) else shown(span)

    def output_of(self, talk: RecordedConversation) -> Output:
        # what the steps of an application returned before it failed is no answer
        for span in [self._top] if self._top.status == "error" else self._tree.speakers():
            text, shown = self._answer(span)
            if text:
                return Output(text, talk.thinking, shown if isinstance(shown, dict) else None)
        text = talk.final_answer
        if text is None and not self._is_silent:
            text = self._only_text(self._tree.output_messages, shown_output, "assistant")
        return Output(text, talk.thinking)

    def _answer(self, span: WireSpan) -> tuple[str | None, Any]:
        """The answer that a span has, and the value with it."""
        shown = self._shown(span, self._tree.output_messages, shown_output)
        return text_content(shown, "assistant") or content_of(self._tree.output_messages(span), "assistant"), shown

    def unrecorded(self, question: dict[str, Any], output_of: Output) -> str | None:
        """Why the answer is unknown; None if it is known, or known to be missing."""
        if output_of.final_answer:
            return None
        if self._tree.hides_texts:
            return f"texts were hidden before the export ({HIDDEN})"
        if self._is_silent:
            return "the export lacks the reply of the last call of a model"
        return None if question["user_message"] else "the export contains neither input nor answer"

    def _only_text(self, messages: Any, shown: Any, role: str) -> str | None:
        """The text according to values of model calls without messages."""
        texts = (text_content(self._shown(span, messages, shown), role) for span in reversed(self._tree.models))
        return next((text for text in texts if text), None)

    def calls(self, talk: RecordedConversation) -> list[ToolCall]:
        """The calls with spans of tools, and further ones that models requested, ordered by time; those that began at
        the same one, in the order in which they were requested."""
        calls = [(span.started_at or 0, call) for span, call in self._executed]
        executed = [call for _, call in calls]
        requested = {span.span_id: self._tree.requested_calls(span) for span in self._tree.models}
        innermost = self._tree.innermost_spans([span for span in self._tree.models if requested[span.span_id]])
        ids = {call.id: place for place, call in enumerate(c for span in innermost for c in requested[span.span_id])}
        for span in innermost:
            further = [call for call in requested[span.span_id] if not _take_executed(call, executed, ids)]
            calls += [(span.finished_at or 0, call) for call in further]
        if not calls:
            return talk.tool_calls
        return [call for _, call in sorted(calls, key=lambda pair: (pair[0], ids.get(pair[1].id, 0)))]

    def results(self, talk: RecordedConversation, calls: list[ToolCall]) -> list[ToolResult]:
        """What the calls returned, in their order: according to their spans, else to the conversation, else the reason
        why they failed. What the conversation has from before the trace is not among it."""
        places = {call.id: place for place, call in enumerate(calls) if call.id is not None}
        messages = [result for result in talk.tool_results if result.tool_call_id in (None, *places)]
        results = []
        for span, call in self._executed:
            result = tool_of(span).result
            message = next((result for result in messages if _is_of(result, call)), None)
            if message is not None:
                messages.remove(message)
            if result is not None:
                result = result if isinstance(result, dict) else text_content(result, "tool") or ""
            else:
                result = message.content if message is not None else failure_in(span)
            if result is not None:
                results.append(ToolResult(call.name, result, call.id))
        return sorted([*results, *messages], key=lambda result: places.get(result.tool_call_id or "", len(places)))

    def metrics(self, talk: RecordedConversation) -> Metrics:
        """The sums over the innermost spans with a number: spans around them often repeat the sum, and sometimes only
        they have the cost. Without any, what the messages say that they used."""
        usages = {span.span_id: usage for span in self._tree.ordered if (usage := usage_of(span.attributes))}
        sums = [self._sum({id: usage[part] for id, usage in usages.items()}) for part in range(len(SpanUsage()))]
        tools = self._tree.of_kind("tool")
        failed = sum(span.status == "error" for span in tools) if tools else talk.failed_results
        if not usages:
            used = talk.tokens
            sums = [used.input, used.output, used.thinking, used.cost, used.cache_read, used.cache_write]
        read_in, written_out, thinking, cost, read, written = sums
        found = {"cache_read_tokens": read, "cache_write_tokens": written, "failed_tool_results": failed or None}
        custom = {name: number for name, number in found.items() if number is not None}
        return Metrics(read_in, written_out, thinking, cost, custom=custom)

    def _sum(self, numbers: Mapping[str, Any]) -> Any:
        """The sum of the numbers of spans, by their ids; None if there are none."""
        spans = [span for span in self._tree.ordered if numbers.get(span.span_id) is not None]
        return sum(numbers[span.span_id] for span in self._tree.innermost_spans(spans)) if spans else None

    def scores(self) -> list[dict[str, Any]]:
        """What was found in the trace, then what was found in its other spans, with their ids."""
        inside = [
            {**score, "span": span.span_id}
            for span in self._tree.ordered
            if span is not self._top
            for score in span.scores
        ]
        return [*self._top.scores, *inside]

    def about(self) -> dict[str, Any]:
        attributes = self._top.attributes
        metadata, tags = json_content(attributes.get("metadata")), json_content(attributes.get("tag.tags"))
        names = {"service": self._top.service, **{key: attributes.get(key) for key in _ABOUT}}
        return {
            **(metadata if isinstance(metadata, dict) else {}),
            **({"tags": tags} if isinstance(tags, list) and tags else {}),
            **{key: value for key, value in names.items() if isinstance(value, str)},
        }

    def span(self, wire_span: WireSpan) -> Span:
        messages_in, messages_out = self._tree.input_messages(wire_span), self._tree.output_messages(wire_span)
        return Span(
            wire_span.span_id,
            wire_span.name or "(unnamed)",
            wire_span.parent_id,
            self._tree.kinds[wire_span.span_id],
            _at(wire_span.started_at),
            _at(wire_span.finished_at),
            wire_span.status,
            failure_in(wire_span),
            messages_in or shown_input(wire_span),
            messages_out or shown_output(wire_span),
            {key: value for key, value in wire_span.attributes.items() if not key.startswith(_SAID)},
            [SpanEvent(event.name, _at(event.at), event.attributes) for event in wire_span.events],
        )


def _messages_in_state(span: WireSpan) -> list[Any]:
    """The messages in the state that an application returned, as LangGraph does; before them those that it was given,
    unless the state contains the user's."""
    request, state = (
        messages if is_message_list(messages := mapping_or_empty(shown(span)).get("messages")) else []
        for shown in (shown_input, shown_output)
    )
    has_request = any(message["role"] == "user" for message in plain_messages(state, "assistant"))
    return [*request, *state] if state and not has_request else state


def _executed_call(span: WireSpan) -> ToolCall:
    name, call_id, arguments, _ = tool_of(span)
    fields = arguments if isinstance(arguments, dict) else {} if arguments is None else {"_raw": arguments}
    return ToolCall(name, call_id, fields, _at(span.started_at))


def _is_of(result: ToolResult, call: ToolCall) -> bool:
    """Whether a message in the conversation is the result of a call."""
    unnamed = call.id is None or result.tool_call_id is None
    return result.name == call.name if unnamed else result.tool_call_id == call.id


def _take_executed(call: ToolCall, executed: list[ToolCall], requested: Collection[str | None]) -> bool:
    """Whether a call that a model requested is among the executed ones, each of which counts once; `requested` are the
    ids of all requested calls.

    The span of an executed call may lack its id or its arguments, or have these as a text only; OpenInference writes
    a single argument that is a text without its name, and OpenLLMetry the id of a response's item as that of its call.
    """
    same = [candidate for candidate in executed if candidate.name == call.name]
    fits = (
        [candidate for candidate in executed if candidate.id is not None and candidate.id == call.id]
        or [candidate for candidate in same if candidate.id is None or call.id is None]
        or [candidate for candidate in same if candidate.id not in requested and candidate.arguments == call.arguments]
    )
    if fits:
        best = next((candidate for candidate in fits if candidate.arguments == call.arguments), fits[0])
        executed.remove(best)
        best.id = best.id or call.id
        unnamed = best.arguments in map(json_content, call.arguments.values())
        if "_raw" in best.arguments or not best.arguments or unnamed:
            best.arguments = call.arguments
    return bool(fits)


def _at(nanoseconds: int | None) -> datetime | None:
    if nanoseconds is None:
        return None
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).replace(
        microsecond=nanoseconds // 1000 % 1_000_000
    )
