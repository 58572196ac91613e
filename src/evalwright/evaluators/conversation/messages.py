"""What evaluators see of a conversation: its messages by role, and what is expected. Never raises on plain data."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from evalwright.model.conversation import Conversation, ConversationExpected, ToolOutput, ToolUse
from evalwright.model.recordings import RECORDING, conversation_in, text_of
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["conversation_of", "cost_of", "expected_of", "latency_of", "parsed_json"]

_decode = msgspec.json.Decoder().decode
_NOTHING = ConversationExpected()
_last: tuple[Trace | None, Conversation] = (None, Conversation())
"""The last trace and its conversation: eleven evaluators in a row ask for the same one. Read and replaced as a whole,
so that threads with other traces only parse theirs again."""


def expected_of(case: Case) -> ConversationExpected:
    """What a case expects of its conversation."""
    conversation = case.expected.conversation
    return conversation if isinstance(conversation, ConversationExpected) else _NOTHING


def conversation_of(trace: Trace) -> Conversation:
    """The conversation of a trace of any origin; evaluators of one trace share it."""
    global _last
    known, conversation = _last
    if known is not trace:
        recording = trace.extra.get(RECORDING)
        fields = recording if isinstance(recording, dict) else {}
        messages, made = fields.get("messages"), fields.get("conversation")
        if isinstance(made, Conversation):
            conversation = made
        else:
            conversation = conversation_in(messages) if isinstance(messages, list) else _conversation_of_parts(trace)
        _last = (trace, conversation)
    return conversation


def latency_of(trace: Trace) -> float | None:
    """Milliseconds; for a recording the measured ones, None if none were."""
    is_recorded = isinstance(trace.extra.get(RECORDING), dict)
    return _recorded_number(trace, "latency_ms") if is_recorded else trace.latency_ms


def cost_of(trace: Trace) -> float | None:
    """US dollars, as recorded or else as reported or computed."""
    recorded = _recorded_number(trace, "cost_usd")
    return trace.metrics.cost_usd if recorded is None else recorded


def _recorded_number(trace: Trace, name: str) -> float | None:
    recording = trace.extra.get(RECORDING)
    metrics = recording.get("metrics") if isinstance(recording, dict) else None
    number = metrics.get(name) if isinstance(metrics, dict) else None
    return number if isinstance(number, (int, float)) else None


def _conversation_of_parts(trace: Trace) -> Conversation:
    """The conversation of a trace that was not recorded as messages."""
    texts = [(message.role, text_of(message.content)) for message in trace.messages]
    answer = trace.output.final_answer or None
    answers = [text for role, text in texts if role == "assistant" and text]
    return Conversation(
        [msgspec.to_builtins(message) for message in trace.messages],
        [text for role, text in texts if role == "system" and text is not None],
        [text for role, text in texts if role == "user" and text is not None],
        answers if answers or answer is None else [answer],
        answer or (answers[-1] if answers else None),
        [ToolUse(call.id, call.name, call.arguments) for call in trace.tool_calls],
        [ToolOutput(result.tool_call_id, result.name or None, result.content) for result in trace.tool_results],
    )


def parsed_json(text: Any) -> Any:
    """The value of a JSON text; anything else, and text that is not JSON, is returned as it is."""
    if not isinstance(text, str):
        return text
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return _python_json(text)


def _python_json(text: str) -> Any:
    """The value of a text in Python's own variant of JSON, which has NaN and infinities; else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
