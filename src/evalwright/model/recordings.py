"""Recorded conversations: what is kept of one, and the trace that is made of it.

A recording is kept once, as its author wrote it. The messages, the tool use and the answer of its trace follow from it
by the rules of NorthStar, which never raise on plain data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from evalwright.model.conversation import Conversation, ToolOutput, ToolUse
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, ToolCall, ToolResult, Trace, TraceError, TraceMessage

__all__ = ["RECORDING", "conversation_in", "json_text", "normalized", "recorded_of", "text_of"]

RECORDING = "recording"
"""The key of `Trace.extra` with what was recorded: `{messages, metrics, metadata}`, as its author wrote it.

A run that exists only in memory may have its `conversation` and its `steps` there, already parsed: they are then judged
as they are, whatever the messages say.
"""

_decode = msgspec.json.Decoder(Trace | list[Trace] | None).decode
_decode_any = msgspec.json.Decoder().decode


class _JudgedConversation(list[Any]):
    """The messages of a replayed recording with their conversation, for which whoever judges them asks again."""

    __slots__ = ("conversation",)

    def __init__(self, messages: list[Any], conversation: Conversation) -> None:
        super().__init__(messages)
        self.conversation = conversation


def recorded_of(case: Case) -> Trace | list[Trace] | None:
    """The recorded trace of a case, or all if it has several. Raises ValueError if it is none."""
    recorded: Trace | list[Trace] | None = _decode(case.recorded)
    for trace in recorded if isinstance(recorded, list) else () if recorded is None else (recorded,):
        _complete(trace)
    return recorded


def _complete(trace: Trace) -> None:
    """Add what follows from the recording of a trace that has nothing else."""
    recording = trace.extra.get(RECORDING)
    if trace.messages or not isinstance(recording, dict) or not isinstance(messages := recording.get("messages"), list):
        return
    readable = _ReadableConversation()
    conversation = _read(messages, readable)
    recording["messages"] = _JudgedConversation(messages, conversation)
    trace.output = Output(conversation.final_response)
    trace.messages, trace.tool_calls, trace.tool_results = readable.messages, readable.calls, readable.results
    if readable.wrong:
        trace.error = TraceError("malformed_messages", "; ".join(readable.wrong))


class _ReadableConversation:
    """The conversation for readers, and for evaluators that do not know about recordings."""

    __slots__ = ("calls", "messages", "results", "wrong")

    def __init__(self) -> None:
        self.messages: list[TraceMessage] = []
        """One for each call, and one for each text or other content."""
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []
        self.wrong: list[str] = []
        """Bare numbers of calls: the calls themselves are unknown. Texts and objects hold none."""


def _mapping(mapping: Any) -> dict[str, Any]:
    if isinstance(mapping, str):
        try:
            mapping = _decode_any(mapping)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
    return mapping if isinstance(mapping, dict) else {}


def _content(content: Any) -> dict[str, Any] | str:
    if isinstance(content, (dict, str)):
        return content
    return "" if content is None else msgspec.json.encode(content).decode()


def conversation_in(messages: list[Any]) -> Conversation:
    """Like `normalized`; those of a replayed recording are not read again."""
    return messages.conversation if isinstance(messages, _JudgedConversation) else normalized(messages)


def normalized(messages: Sequence[Any]) -> Conversation:
    """The conversation in messages; anything that is not a message of a known role is skipped."""
    return _read(messages)


def _read(messages: Sequence[Any], readable: _ReadableConversation | None = None) -> Conversation:
    """See `normalized`; `readable` gets the same conversation for readers, in which any role may speak."""
    conversation = Conversation(list(messages))
    for message in messages:
        if not isinstance(message, dict):
            continue
        role, content = message.get("role"), message.get("content")
        if readable is not None and (content is not None or role != "assistant") and isinstance(role, str):
            name = message.get("name")
            readable.messages.append(TraceMessage(role, content, None, None, name if isinstance(name, str) else None))
        if role == "user" or role == "system":
            text = text_of(content)
            if text is not None:
                (conversation.user_messages if role == "user" else conversation.system_prompts).append(text)
        elif role == "assistant":
            if "tool_calls" in message or "function_call" in message:
                calls = _calls_in(message)
                conversation.tool_calls += calls
                if readable is not None:
                    _add_calls(readable, calls, message, messages)
            if text := text_of(content):
                conversation.assistant_messages.append(text)
                conversation.final_response = text
        elif role == "tool":
            output = ToolOutput(_text_or_none(message.get("tool_call_id")), _text_or_none(message.get("name")), content)
            conversation.tool_outputs.append(output)
            if readable is not None:
                readable.results.append(ToolResult(output.name or "", _content(content), output.tool_call_id))
    return conversation


def _add_calls(
    parts: _ReadableConversation, calls: list[ToolUse], message: dict[str, Any], messages: Sequence[Any]
) -> None:
    for use in calls:
        call = ToolCall(use.name, use.id, _mapping(use.arguments))
        parts.calls.append(call)
        parts.messages.append(TraceMessage("assistant", None, None, call))
    if (listed := message.get("tool_calls")) and isinstance(listed, (int, float)):
        number = next(i for i, other in enumerate(messages) if other is message)
        parts.wrong.append(f"messages[{number}].tool_calls: expected a list of calls, found {json.dumps(listed)}")


def json_text(value: Any) -> str:
    """JSON with sorted keys and ASCII only, for any value at all."""
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__} that JSON cannot hold>"


def _calls_in(message: dict[str, Any]) -> list[ToolUse]:
    """The tool calls in one message of the system, of any shape."""
    uses: list[ToolUse] = []
    listed = message.get("tool_calls")
    for call in listed if isinstance(listed, list) else ():
        if isinstance(call, dict):
            function = call.get("function")
            inside = function if isinstance(function, dict) else {}
            name = inside.get("name") or call.get("name") or "unknown_tool"
            arguments = inside["arguments"] if "arguments" in inside else call.get("arguments")
            uses.append(ToolUse(_text_or_none(call.get("id")), str(name), arguments))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        uses.append(ToolUse(None, str(legacy.get("name") or "unknown_tool"), legacy.get("arguments")))
    return uses


def _text_or_none(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def text_of(content: Any) -> str | None:
    """The text of a message's content: null stays null, the parts of a list are joined."""
    if content is None or isinstance(content, str):
        return content
    try:
        return _text_inside(content)
    except RecursionError:
        return None


def _text_inside(content: Any) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in map(_text_inside, content) if part]
        return "\n".join(parts) if parts else None
    if isinstance(content, dict):
        text, inner = content.get("text"), content.get("content")
        if isinstance(text, str):
            return text
        return json_text(content) if inner is None else _text_inside(inner)
    return str(content)
