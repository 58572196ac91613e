"""Reads model calls from OpenTelemetry spans with attributes of OpenInference, and steps from all others."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evalwright.capture.spans import (
    AssistantMessage,
    ImageContent,
    LLMSpan,
    Message,
    StepSpan,
    SystemMessage,
    TextContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
)

__all__ = ["llm_span_of", "step_of"]

_OPERATIONS = {"LLM": "chat", "EMBEDDING": "embedding"}
_PROVIDERS = {
    "gpt": "openai", "o1": "openai", "o3": "openai", "claude": "anthropic", "gemini": "google", "command": "cohere",
    "coral": "cohere", "llama": "meta", "mistral": "meta", "mixtral": "meta",
}  # fmt: skip
_KINDS = {
    "AGENT": "agent", "CHAIN": "chain", "TOOL": "tool", "RETRIEVER": "retriever", "chat": "llm",
    "text_completion": "llm", "generate_content": "llm", "embeddings": "embedding", "execute_tool": "tool",
    "invoke_agent": "agent",
}  # fmt: skip


def llm_span_of(span: Any) -> LLMSpan | None:
    """The model call that a finished OpenTelemetry span describes; None if it describes none."""
    attributes: Mapping[str, Any] = span.attributes or {}
    operation = _OPERATIONS.get(str(attributes.get("openinference.span.kind")))
    if operation is None:
        return None
    model = str(attributes.get("llm.model_name") or attributes.get("gen_ai.request.model") or "")
    parameters = _object(attributes.get("llm.invocation_parameters")) or {}
    failed = span.status.status_code.name == "ERROR"
    replies = _messages(attributes, "llm.output_messages")
    outputs = tuple(reply for reply in replies if isinstance(reply, AssistantMessage))
    return LLMSpan(
        **_span_position(span),
        duration_ms=(span.end_time - span.start_time) / 1e6,
        operation=operation,
        provider=str(attributes.get("gen_ai.system") or _provider(model)),
        request_model=model,
        response_model=attributes.get("gen_ai.response.model"),
        **_tokens(attributes),
        request_temperature=parameters.get("temperature"),
        request_max_tokens=parameters.get("max_tokens", parameters.get("max_completion_tokens")),
        request_top_p=parameters.get("top_p"),
        finish_reasons=tuple(output.finish_reason for output in outputs if output.finish_reason),
        response_id=attributes.get("gen_ai.response.id"),
        output_type=attributes.get("gen_ai.output.type"),
        error_type=attributes.get("error.type") or ("error" if failed else None),
        input_messages=_messages(attributes, "llm.input_messages"),
        output_messages=outputs,
        tool_definitions=_tools(attributes),
        scope=span.instrumentation_scope.name,
    )


def step_of(span: Any) -> StepSpan:
    """A finished span of the application that is not a model call, with its attributes unchanged."""
    attributes: Mapping[str, Any] = span.attributes or {}
    kind = attributes.get("openinference.span.kind") or attributes.get("gen_ai.operation.name")
    failed = span.status.status_code.name == "ERROR"
    return StepSpan(
        **_span_position(span),
        name=span.name,
        kind=_KINDS.get(str(kind), "span"),
        attributes=dict(attributes),
        error=str(span.status.description or attributes.get("error.type") or "error") if failed else None,
        scope=span.instrumentation_scope.name,
    )


def _span_position(span: Any) -> dict[str, Any]:
    """Ids, parent and times of a span."""
    return {
        "span_id": f"{span.context.span_id:016x}",
        "trace_id": f"{span.context.trace_id:032x}",
        "parent_span_id": f"{span.parent.span_id:016x}" if span.parent else None,
        "started_at": _datetime_of(span.start_time),
        "ended_at": _datetime_of(span.end_time),
    }


def _datetime_of(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)


def _provider(model: str) -> str:
    return next((provider for prefix, provider in _PROVIDERS.items() if model.lower().startswith(prefix)), "unknown")


_COUNTS = {
    "input_tokens": ("prompt",),
    "output_tokens": ("completion",),
    "cache_read_tokens": ("prompt_details.cache_read", "cache_read"),
    "cache_creation_tokens": ("prompt_details.cache_write", "cache_creation"),
}
"""The names of OpenInference, and after them those that pixie reads."""


def _tokens(attributes: Mapping[str, Any]) -> dict[str, Any]:
    counts = {ours: [attributes.get(f"llm.token_count.{name}") for name in names] for ours, names in _COUNTS.items()}
    return {ours: next((count for value in values if (count := _count(value))), 0) for ours, values in counts.items()}


def _count(value: Any) -> int:
    """A number of tokens; 0 for what is none."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() else 0
    return int(value) if isinstance(value, int | float) and 0 <= value < math.inf else 0


def _object(text: Any) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _messages(attributes: Mapping[str, Any], prefix: str) -> tuple[Message, ...]:
    messages: list[Message] = []
    # OpenInference writes lists as numbered attributes, without their length. Number 0 is missing where it is kept for
    # instructions and there are none; any other gap ends the list, as in pixie.
    number = 0 if f"{prefix}.0.message.role" in attributes else 1
    while f"{prefix}.{number}.message.role" in attributes:
        message = _message(attributes, f"{prefix}.{number}.message")
        if message is not None:
            messages.append(message)
        number += 1
    return tuple(messages)


def _message(attributes: Mapping[str, Any], at: str) -> Message | None:
    role = str(attributes[f"{at}.role"]).lower()
    if role == "system":
        return SystemMessage("".join(part.text for part in _parts(attributes, at) if isinstance(part, TextContent)))
    if role == "user":
        return UserMessage(_parts(attributes, at))
    if role == "assistant":
        return AssistantMessage(_parts(attributes, at), _calls(attributes, at), attributes.get(f"{at}.finish_reason"))
    if role == "tool":
        content = str(attributes.get(f"{at}.content") or "")
        return ToolResultMessage(content, attributes.get(f"{at}.tool_call_id"), attributes.get(f"{at}.name"))
    return None


def _parts(attributes: Mapping[str, Any], at: str) -> tuple[TextContent | ImageContent, ...]:
    if f"{at}.content" in attributes:
        return (TextContent(str(attributes[f"{at}.content"])),)
    parts: list[TextContent | ImageContent] = []
    while f"{at}.contents.{len(parts)}.message_content.type" in attributes:
        part = f"{at}.contents.{len(parts)}.message_content"
        if attributes[f"{part}.type"] == "image":
            url = attributes.get(f"{part}.image.url.url") or attributes.get(f"{part}.image.image.url")
            parts.append(ImageContent(str(url or ""), attributes.get(f"{part}.image.url.detail")))
        else:
            parts.append(TextContent(str(attributes.get(f"{part}.text") or "")))
    return tuple(parts)


def _calls(attributes: Mapping[str, Any], at: str) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    while f"{at}.tool_calls.{len(calls)}.tool_call.function.name" in attributes:
        call = f"{at}.tool_calls.{len(calls)}.tool_call"
        text = attributes.get(f"{call}.function.arguments")
        # Arguments that are not a JSON object are kept as text: what the model wrote is what has to be judged.
        arguments = {} if text is None else _object(text)
        calls.append(
            ToolCall(
                str(attributes[f"{call}.function.name"]),
                {"_raw": text} if arguments is None else arguments,
                attributes.get(f"{call}.id"),
            )
        )
    return tuple(calls)


def _tools(attributes: Mapping[str, Any]) -> tuple[ToolDefinition, ...]:
    tools: list[ToolDefinition] = []
    while f"llm.tools.{len(tools)}.tool.name" in attributes:
        at = f"llm.tools.{len(tools)}.tool"
        schema = _object(attributes.get(f"{at}.json_schema"))
        tools.append(ToolDefinition(str(attributes[f"{at}.name"]), attributes.get(f"{at}.description"), schema))
    return tuple(tools)
