"""The messages that a chat model gets for a case: those in its input, or a conversation so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from evalwright.errors import TargetError
from evalwright.files.key_paths import as_written
from evalwright.files.plain import plain
from evalwright.model.chat import ChatMessage
from evalwright.model.snapshot import Case
from evalwright.model.trace import ToolCall, TraceMessage
from evalwright.targets.templates import Template

__all__ = ["GOING_ON", "as_chat", "as_trace", "opening"]

GOING_ON = "evalwright.conversation"
"""In `Case.extra`: each TraceMessage of a conversation so far, including tool use."""


def opening(case: Case, user_template: Template | None) -> list[ChatMessage]:
    """The messages that the model should answer. Raises TargetError if the case has none."""
    if GOING_ON in case.extra:
        messages = as_chat(case.extra[GOING_ON])
        if user_template is not None:
            messages[-1] = ChatMessage("user", user_template.render(case))
        return messages
    if user_template is not None:
        return [ChatMessage("user", user_template.render(case))]
    content = case.input
    if isinstance(content, str):
        content = {"user_message": content}
    for key in ("messages", "conversation"):
        if isinstance(content, dict) and content.get(key):
            return _listed_messages(content[key], f"input.{key}")
    message = content.get("user_message") if isinstance(content, dict) else None
    if not isinstance(message, str) or not message.strip():
        raise TargetError(
            "the case has no text in input.user_message and no input.messages; add one or a user_template"
        )
    return [ChatMessage("user", message)]


def _listed_messages(items: Any, place: str) -> list[ChatMessage]:
    if not isinstance(items, list):
        raise TargetError(f"{place} must be a list of messages, found {as_written(items)}")
    return [_message(item, f"{place}[{number}]") for number, item in enumerate(items)]


def _message(item: Any, place: str) -> ChatMessage:
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        raise TargetError(f"{place} must be a mapping with a role and content")
    content = item.get("content")
    if not isinstance(content, str | list | None):
        raise TargetError(f"{place}.content must be text or a list of parts, found {as_written(content)}")
    calls = [_call(call, f"{place}.tool_calls[{n}]") for n, call in enumerate(item.get("tool_calls") or [])]
    return ChatMessage(item["role"], content or "", item.get("name"), calls, item.get("tool_call_id"))


def _call(item: Any, place: str) -> ToolCall:
    """A call in the shape of the OpenAI API, or of traces."""
    inner = item.get("function") if isinstance(item, dict) and "function" in item else item
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        raise TargetError(f"{place} must be a mapping with the name of a tool")
    arguments = inner.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (ValueError, RecursionError) as error:
            raise TargetError(f"{place}.arguments is not valid JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise TargetError(f"{place}.arguments must be a mapping")
    return ToolCall(inner["name"], item.get("id"), arguments)


def as_trace(messages: Iterable[ChatMessage]) -> list[TraceMessage]:
    """The messages in the shape of traces: one call per message, further calls in messages of their own after it."""
    trace_messages: list[TraceMessage] = []
    for message in messages:
        calls: list[ToolCall | None] = [*message.tool_calls] or [None]
        content = plain(message.content, "content", [])
        trace_messages.append(TraceMessage(message.role, content, None, calls[0], message.name))
        trace_messages += [TraceMessage(message.role, None, None, call) for call in calls[1:]]
    return trace_messages


def as_chat(messages: Sequence[TraceMessage]) -> list[ChatMessage]:
    """The messages in the shape for models: the calls of a turn together, each result with the id of its call, in
    order."""
    chat: list[ChatMessage] = []
    waiting: list[ToolCall] = []
    follows_a_call = False
    for message in messages:
        if message.role == "tool":
            call = waiting.pop(0) if waiting else None
            chat.append(
                ChatMessage("tool", _text(message.content), message.name, tool_call_id=call.id if call else None)
            )
        elif message.tool_call is not None and message.content is None and follows_a_call:
            chat[-1] = msgspec.structs.replace(chat[-1], tool_calls=[*chat[-1].tool_calls, message.tool_call])
            waiting.append(message.tool_call)
        else:
            calls = [] if message.tool_call is None else [message.tool_call]
            content = message.content if isinstance(message.content, list) else _text(message.content)
            chat.append(ChatMessage(message.role, content, message.name, calls))
            waiting = list(calls)
        follows_a_call = message.tool_call is not None
    return chat


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return msgspec.json.encode(content).decode()
