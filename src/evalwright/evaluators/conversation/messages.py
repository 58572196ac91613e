"""Chat API messages sorted by role, by the rules of NorthStar. Never raises on plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from evalwright.model.conversation import Conversation, ConversationExpected, ToolOutput, ToolUse
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = [
    "RECORDING",
    "calls_in",
    "conversation_of",
    "expected_of",
    "json_text",
    "latency_of",
    "normalized",
    "parsed_json",
]

RECORDING = "recording"
"""The key of `Trace.extra` with what was recorded: `{messages, metrics, metadata}`, as its author wrote it.

A run that exists only in memory may have its `conversation` and its `steps` there, already parsed: they are then judged
as they are, whatever the messages say.
"""

_decode = msgspec.json.Decoder().decode
_NOTHING = ConversationExpected()
_last: tuple[Trace | None, Conversation] = (None, Conversation())
"""The last trace and its conversation: eleven evaluators in a row ask for the same one. Read and replaced as a whole,
so that threads with other traces only parse theirs again."""


def expected_of(case: Case) -> ConversationExpected:
    """What a case expects of its conversation."""
    found = case.expected.conversation
    return found if isinstance(found, ConversationExpected) else _NOTHING


def conversation_of(trace: Trace) -> Conversation:
    """The conversation of a trace of any origin; evaluators of one trace share it."""
    global _last
    known, conversation = _last
    if known is not trace:
        recording = trace.extra.get(RECORDING)
        given = recording if isinstance(recording, dict) else {}
        messages, made = given.get("messages"), given.get("conversation")
        if isinstance(made, Conversation):
            conversation = made
        else:
            conversation = normalized(messages) if isinstance(messages, list) else _of_parts(trace)
        _last = (trace, conversation)
    return conversation


def latency_of(trace: Trace) -> float | None:
    """Milliseconds; for a recording the measured ones, None if none were."""
    recording = trace.extra.get(RECORDING)
    if not isinstance(recording, dict):
        return trace.latency_ms
    metrics = recording.get("metrics")
    latency = metrics.get("latency_ms") if isinstance(metrics, dict) else None
    return latency if isinstance(latency, (int, float)) else None


def normalized(messages: Sequence[Any]) -> Conversation:
    """The conversation in messages; anything that is not a message of a known role is skipped."""
    found = Conversation(list(messages))
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            found.tool_calls += calls_in(message)
            text = _text(message.get("content"))
            if text:
                found.assistant_messages.append(text)
                found.final_response = text
        elif role == "tool":
            name, call_id = message.get("name"), message.get("tool_call_id")
            found.tool_outputs.append(ToolOutput(_word(call_id), _word(name), message.get("content")))
        elif role == "user" or role == "system":
            text = _text(message.get("content"))
            if text is not None:
                (found.user_messages if role == "user" else found.system_prompts).append(text)
    return found


def json_text(value: Any) -> str:
    """JSON with sorted keys and ASCII only, for any value at all."""
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__} that JSON cannot hold>"


def calls_in(message: dict[str, Any]) -> list[ToolUse]:
    """The tool calls in one message of the system, of any shape."""
    found: list[ToolUse] = []
    listed = message.get("tool_calls")
    for call in listed if isinstance(listed, list) else ():
        if isinstance(call, dict):
            function = call.get("function")
            inside = function if isinstance(function, dict) else {}
            name = inside.get("name") or call.get("name") or "unknown_tool"
            given = inside["arguments"] if "arguments" in inside else call.get("arguments")
            found.append(ToolUse(_word(call.get("id")), str(name), given))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        found.append(ToolUse(None, str(legacy.get("name") or "unknown_tool"), legacy.get("arguments")))
    return found


def _word(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _text(content: Any) -> str | None:
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


def _of_parts(trace: Trace) -> Conversation:
    """The conversation of a trace that was not recorded as messages."""
    texts = [(message.role, _text(message.content)) for message in trace.messages]
    answer = trace.output.final_answer or None
    said = [text for role, text in texts if role == "assistant" and text]
    return Conversation(
        [msgspec.to_builtins(message) for message in trace.messages],
        [text for role, text in texts if role == "system" and text is not None],
        [text for role, text in texts if role == "user" and text is not None],
        said if said or answer is None else [answer],
        answer or (said[-1] if said else None),
        [ToolUse(call.id, call.name, call.arguments) for call in trace.tool_calls],
        [ToolOutput(result.tool_call_id, result.name or None, result.content) for result in trace.tool_results],
    )


def parsed_json(given: Any) -> Any:
    """The value of a JSON text; anything else, and text that is not JSON, is returned as it is."""
    if not isinstance(given, str):
        return given
    try:
        return _decode(given)
    except (ValueError, RecursionError):
        return _python_json(given)


def _python_json(text: str) -> Any:
    """The value of a text in Python's own variant of JSON, which has NaN and infinities; else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
