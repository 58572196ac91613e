"""Messages and tool calls as libraries hold them: objects of OpenAI's SDK, objects and mappings of LangChain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.errors import TargetError
from evalwright.files.plain import plain
from evalwright.model.trace import TraceMessage

__all__ = ["closing_text", "role_of", "with_mappings"]

_ROLES = {
    "human": "user", "HumanMessageChunk": "user", "ai": "assistant", "AIMessageChunk": "assistant",
    "system": "system", "tool": "tool", "function": "tool",
}  # fmt: skip
"""LangChain's types of messages; its messages have no role."""


def role_of(message: Mapping[str, Any]) -> Any:
    """The role of a message, also from its type if it is one of LangChain; None if it has neither."""
    return message.get("role") or _ROLES.get(str(message.get("type")))


def with_mappings(answer: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """The parts of an answer, with each message and tool call that is an object as the mapping of its fields.

    Raises TargetError for a message that is no mapping: as text, its role and its tool calls would be lost.
    """
    for key, mapping in (("messages", _message), ("tool_calls", plain)):
        items = answer.get(key)
        if isinstance(items, (list, tuple)) and not all(isinstance(item, (dict, str)) for item in items):
            places = ((item, f"{key}[{i}]") for i, item in enumerate(items))
            mappings = [
                item if isinstance(item, (dict, str)) else mapping(item, place, notes) for item, place in places
            ]
            answer = {**answer, key: mappings}
    return answer


def _message(message: Any, place: str, notes: list[str]) -> dict[str, Any]:
    fields = plain(message, place, notes)
    if not isinstance(fields, dict) or (role_of(fields) is None and "type" not in fields):
        raise TargetError(
            f"{place} is a {type(message).__name__} without a role; expected a mapping with role and content, a "
            "message of OpenAI's SDK or of LangChain, or text"
        )
    if fields.get("content") is None and isinstance(fields.get("refusal"), str):
        fields["content"] = fields["refusal"]
    return fields


def closing_text(messages: Sequence[TraceMessage]) -> str | None:
    """The text of the last message if the system said it and called no tool with it; None otherwise."""
    last = messages[-1]
    if last.role != "assistant" or last.tool_call is not None:
        return None
    if isinstance(last.content, str):
        return last.content
    parts = last.content if isinstance(last.content, list) else ()
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, (str, dict))]
    return "\n".join(text for text in texts if isinstance(text, str)) or None
