"""Tool calls in messages in a shape that is not read: to evaluators they would seem not to have been made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["unread_calls"]

_CALL = re.compile(r"(?:.*[_-])?call|(?:.*[_-])?tool[_-]?use|(?:tool|function)call", re.IGNORECASE)
"""Types of calls: `tool_use` and `server_tool_use` of Anthropic's API, `function_call` and `web_search_call` of
OpenAI's Responses API, `tool_call` of OpenTelemetry, `tool-call` of Vercel's AI SDK."""
_UI_CALL = re.compile(r"(?:dynamic-tool|tool-.+)")
"""Types of calls in the messages of Vercel's user interfaces, which also have a `state`."""
_HOLDERS = frozenset(
    {
        "executablecode", "functioncall", "functioncalls", "toolcall", "toolcalls", "toolinvocation",
        "toolinvocations", "tooluse",
    }
)  # fmt: skip
"""Keys that hold calls, without `_` and in lower case: of Gemini (`functionCall`), Bedrock (`toolUse`), and others."""
_IDS = ("id", "call_id", "tool_call_id", "toolCallId", "toolUseId")
_OTHERS = ("user", "system", "developer", "tool", "function")
"""Roles that make no calls; the results of tools may contain anything."""
_DEPTH = 5
"""How deep calls are in the messages of any known API, with some room."""


def unread_calls(messages: Sequence[Any]) -> Iterator[int]:
    """The numbers of the messages with a call that has no name, or is in neither `tool_call` nor `tool_calls`."""
    for number, message in enumerate(messages):
        if isinstance(message, dict) and message.get("role") not in _OTHERS:
            own = "tool_call" if message.get("tool_call") is not None else "tool_calls"
            read = _calls(message.get(own))
            ids = {call[key] for call in read for key in _IDS if isinstance(call.get(key), str)}
            rest = {key: value for key, value in message.items() if key != own}
            if read:
                rest.pop("type", None)  # the message itself may be marked as a call
            lost = (ids.isdisjoint(map(str, map(call.get, _IDS))) for call in _within(rest, _DEPTH))
            if any(lost) or not all(map(_has_name, read)):
                yield number


def _has_name(call: dict[str, Any]) -> bool:
    inner = call.get("function") or call.get("custom")
    return bool(call.get("name") or (isinstance(inner, dict) and inner.get("name")))


def _within(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The calls in a part of a message."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _within(item, depth)
    if not isinstance(value, dict) or not depth:
        return
    kind = value.get("type")
    if isinstance(kind, str) and (_CALL.fullmatch(kind) or ("state" in value and _UI_CALL.fullmatch(kind))):
        yield value
        return
    for key, inner in value.items():
        if isinstance(key, str) and key.replace("_", "").lower() in _HOLDERS:
            yield from _calls(inner)
        else:
            yield from _within(inner, depth - 1)


def _calls(held: Any) -> list[dict[str, Any]]:
    return [call for call in (held if isinstance(held, (list, tuple)) else [held]) if isinstance(call, dict)]
