"""The spans that are captured from a running application: observed steps and model calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

__all__ = [
    "AssistantMessage",
    "ImageContent",
    "LLMSpan",
    "Message",
    "ObserveSpan",
    "StepSpan",
    "SystemMessage",
    "TextContent",
    "ToolCall",
    "ToolDefinition",
    "ToolResultMessage",
    "UserMessage",
]


@dataclass(frozen=True)
class TextContent:
    """A part of a message that is text."""

    text: str
    type: str = "text"


@dataclass(frozen=True)
class ImageContent:
    """A part of a message that is an image."""

    url: str
    detail: str | None = None
    type: str = "image"


@dataclass(frozen=True)
class ToolCall:
    """A tool call that a model requested."""

    name: str
    arguments: dict[str, Any]
    id: str | None = None


@dataclass(frozen=True)
class ToolDefinition:
    """A tool that was offered to a model."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


@dataclass(frozen=True)
class SystemMessage:
    """Instructions to the model."""

    content: str
    role: str = "system"


@dataclass(frozen=True)
class UserMessage:
    """A message to the model."""

    content: tuple[TextContent | ImageContent, ...]
    role: str = "user"

    @classmethod
    def from_text(cls, text: str) -> UserMessage:
        """A message with a single text."""
        return cls((TextContent(text),))


@dataclass(frozen=True)
class AssistantMessage:
    """A reply of the model."""

    content: tuple[TextContent | ImageContent, ...]
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str | None = None
    role: str = "assistant"


@dataclass(frozen=True)
class ToolResultMessage:
    """The result of a tool call."""

    content: str
    tool_call_id: str | None = None
    tool_name: str | None = None
    role: str = "tool"


Message = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage


@dataclass(frozen=True)
class ObserveSpan:
    """One step of the application."""

    span_id: str
    trace_id: str
    parent_span_id: str | None
    started_at: datetime
    ended_at: datetime
    duration_ms: float
    name: str | None
    input: Any
    output: Any
    metadata: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class LLMSpan:
    """One call of a model."""

    span_id: str
    trace_id: str
    parent_span_id: str | None
    started_at: datetime
    ended_at: datetime
    duration_ms: float
    operation: str
    provider: str
    request_model: str
    response_model: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    request_temperature: float | None
    request_max_tokens: int | None
    request_top_p: float | None
    finish_reasons: tuple[str, ...]
    response_id: str | None
    output_type: str | None
    error_type: str | None
    input_messages: tuple[Message, ...]
    output_messages: tuple[AssistantMessage, ...]
    tool_definitions: tuple[ToolDefinition, ...]
    scope: str = ""
    """The instrumentation that recorded it."""


@dataclass(frozen=True)
class StepSpan:
    """Any other span of the application, with the attributes that its instrumentation set.

    `kind` is the kind of the trace's span: agent, chain, tool, retriever, llm, embedding or span.
    """

    span_id: str
    trace_id: str
    parent_span_id: str | None
    started_at: datetime
    ended_at: datetime
    name: str
    kind: str
    attributes: dict[str, Any]
    error: str | None
    scope: str = ""
