"""The messages of Letta agents as user code sees them: one class for each `message_type`, with any further fields.

If the package `letta_client` is installed, its own classes are used instead.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from evalwright.evaluators.conversation.turns import Turn

__all__ = [
    "CLASSES",
    "ApprovalRequestMessage",
    "AssistantMessage",
    "HiddenReasoningMessage",
    "LettaMessage",
    "ReasoningMessage",
    "SystemMessage",
    "TextContent",
    "ToolCall",
    "ToolCallMessage",
    "ToolReturnMessage",
    "UserMessage",
    "as_data",
    "trajectory_of",
]


class _Fields:
    """An object with whatever fields it was made with; unset fields that its class knows are None."""

    message_type: str = ""
    _known: tuple[str, ...] = ()

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(dict.fromkeys(self._known), **fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__: None = None  # type: ignore[assignment]

    def model_dump(self) -> dict[str, Any]:
        """The fields as plain data."""
        fields = {"message_type": self.message_type} if self.message_type else {}
        return fields | {name: as_data(value) for name, value in self.__dict__.items()}


def as_data(value: Any) -> Any:
    """A message, or a part of one, as plain data."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return [as_data(item) for item in value] if isinstance(value, list) else value


class TextContent(_Fields):
    """A part of a message's content: `text`."""

    _known = ("type", "text")


class ToolCall(_Fields):
    """A call of a tool: `name`, `arguments` (JSON text), `tool_call_id`."""

    _known = ("name", "arguments", "tool_call_id")


class LettaMessage(_Fields):
    """A message of any type."""

    _known: tuple[str, ...] = ("id", "date", "otid", "step_id")


class AssistantMessage(LettaMessage):
    message_type = "assistant_message"
    _known = (*LettaMessage._known, "content")


class ToolCallMessage(LettaMessage):
    message_type = "tool_call_message"
    _known = (*LettaMessage._known, "tool_call", "tool_calls")


class ToolReturnMessage(LettaMessage):
    message_type = "tool_return_message"
    _known = (*LettaMessage._known, "tool_call_id", "tool_return", "status")


class ReasoningMessage(LettaMessage):
    message_type = "reasoning_message"
    _known = (*LettaMessage._known, "reasoning")


class HiddenReasoningMessage(LettaMessage):
    message_type = "hidden_reasoning_message"


class UserMessage(LettaMessage):
    message_type = "user_message"
    _known = (*LettaMessage._known, "content")


class SystemMessage(LettaMessage):
    message_type = "system_message"
    _known = (*LettaMessage._known, "content")


class ApprovalRequestMessage(LettaMessage):
    message_type = "approval_request_message"
    _known = (*LettaMessage._known, "tool_call", "tool_calls")


CLASSES: dict[str, type[LettaMessage]] = {
    kind.message_type: kind
    for kind in (
        ApprovalRequestMessage,
        AssistantMessage,
        HiddenReasoningMessage,
        ReasoningMessage,
        SystemMessage,
        ToolCallMessage,
        ToolReturnMessage,
        UserMessage,
    )
}


def trajectory_of(turns: list[Turn]) -> list[list[Any]]:
    """The turns as lists of message objects."""
    return [[_message(message) for message in turn] for turn in turns]


def _message(fields: dict[str, Any]) -> Any:
    kind = CLASSES.get(str(fields.get("message_type")), LettaMessage)
    real = _real_class(kind.__name__)
    if real is not None:
        try:
            return real(**fields)
        except (TypeError, ValueError):  # it lacks what a server adds, or was recorded by another version
            return real.construct(**fields)
    read = dict(fields)
    if isinstance(read.get("tool_call"), dict):
        read["tool_call"] = ToolCall(**read["tool_call"])
    if isinstance(read.get("tool_calls"), list):
        read["tool_calls"] = [ToolCall(**call) if isinstance(call, dict) else call for call in read["tool_calls"]]
    if isinstance(read.get("content"), list):
        read["content"] = [TextContent(**part) if isinstance(part, dict) else part for part in read["content"]]
    return kind(**read)


@cache
def _real_class(name: str) -> Any:
    """The class of the installed `letta_client`, if it is installed and is not our stand-in."""
    for module in ("letta_client.types", "letta_client.types.agents"):
        try:
            loaded = importlib.import_module(module)
        except ImportError:
            continue
        if not getattr(loaded, "stands_in", False) and hasattr(loaded, name):
            return getattr(loaded, name)
    return None
