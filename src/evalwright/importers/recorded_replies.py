"""The reply that logs of model calls keep beside the messages of the request: a chat completion, its message or its
text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["RecordedReply", "completion_reply", "ends_with_answer", "recorded_reply"]

_FINISHED = ("stop", "tool_calls", "function_call")


class RecordedReply(NamedTuple):
    """What a model replied."""

    message: dict[str, Any]
    about: Mapping[str, Any] = {}
    """The completion that has it: with its model, its usage, and when it was created."""
    stopped: str | None = None
    """Why it ended before the model had finished."""
    more: int = 0
    """Further choices."""


def recorded_reply(value: Any) -> RecordedReply | None:
    """The reply that a value is: a text, a message of the assistant or a chat completion; None for anything else."""
    if isinstance(value, str):
        return RecordedReply({"role": "assistant", "content": value})
    if isinstance(value, dict) and value.get("role") == "assistant":
        return RecordedReply(value)
    return completion_reply(value)


def completion_reply(value: Any) -> RecordedReply | None:
    """The first choice of a chat completion; None for anything else."""
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(first := choices[0], dict):
        return None
    message = first.get("message", {"content": first.get("text")})
    if not isinstance(message, dict):
        return None
    reason = first.get("finish_reason")
    stopped = reason if isinstance(reason, str) and reason not in _FINISHED else None
    return RecordedReply({**message, "role": "assistant"}, value, stopped, len(choices) - 1)


def ends_with_answer(messages: Any) -> bool:
    """Whether nothing is missing at the end of a conversation: it ends with what the assistant says."""
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, dict) and last.get("role") == "assistant" and bool(last.get("content"))
