"""Spans of Vercel's AI SDK: their attributes in OpenTelemetry's GenAI conventions, which the SDK follows in part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.importers.span_messages import json_content

__all__ = ["with_gen_ai_names"]

_OPERATION = "ai.operationId"
_OPERATIONS = {"doGenerate": "chat", "doStream": "chat", "doEmbed": "embeddings", "toolCall": "execute_tool"}
_RENAMED = {
    "ai.toolCall.name": "gen_ai.tool.name",
    "ai.toolCall.id": "gen_ai.tool.call.id",
    "ai.toolCall.args": "gen_ai.tool.call.arguments",
    "ai.toolCall.result": "gen_ai.tool.call.result",
    "ai.prompt.messages": "gen_ai.input.messages",
    "ai.model.id": "gen_ai.request.model",
    "ai.usage.promptTokens": "gen_ai.usage.input_tokens",
    "ai.usage.inputTokens": "gen_ai.usage.input_tokens",
    "ai.usage.completionTokens": "gen_ai.usage.output_tokens",
    "ai.usage.outputTokens": "gen_ai.usage.output_tokens",
    "ai.usage.reasoningTokens": "gen_ai.usage.reasoning_tokens",
    "ai.usage.outputTokenDetails.reasoningTokens": "gen_ai.usage.reasoning_tokens",
    "ai.usage.cachedInputTokens": "gen_ai.usage.cache_read.input_tokens",
    "ai.usage.inputTokenDetails.cacheReadTokens": "gen_ai.usage.cache_read.input_tokens",
    "ai.usage.inputTokenDetails.cacheWriteTokens": "gen_ai.usage.cache_write.input_tokens",
    "ai.telemetry.functionId": "gen_ai.agent.name",
}


def with_gen_ai_names(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with those of the AI SDK under the names of the conventions as well."""
    operation = attributes.get(_OPERATION)
    if not isinstance(operation, str):
        return attributes
    renamed: dict[str, Any] = {name: attributes[key] for key, name in _RENAMED.items() if key in attributes}
    renamed["gen_ai.operation.name"] = _OPERATIONS.get(operation.rpartition(".")[2], "invoke_agent")
    if (prompt := _prompt(json_content(attributes.get("ai.prompt")))) and "gen_ai.input.messages" not in renamed:
        renamed["gen_ai.input.messages"] = prompt
    if (reply := _reply(attributes)) is not None:
        renamed["gen_ai.output.messages"] = [reply]
    return {**renamed, **attributes}


def _prompt(prompt: Any) -> list[Any]:
    """The messages of `ai.prompt`, which has a text or messages, and the instructions apart."""
    if not isinstance(prompt, dict):
        return []
    system, messages = prompt.get("system"), prompt.get("messages") or prompt.get("prompt")
    listed = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    first = [{"role": "system", "content": system}] if isinstance(system, str) else []
    return [*first, *listed] if isinstance(listed, list) else []


def _reply(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    text, thinking = (attributes.get(f"ai.response.{key}") for key in ("text", "reasoning"))
    text = attributes.get("ai.response.object") if text is None else text
    calls = json_content(attributes.get("ai.response.toolCalls"))
    if text is None and calls is None:
        return None
    thought = [{"type": "reasoning", "content": thinking}] if isinstance(thinking, str) and thinking else []
    parts = [{"type": "text", "content": text}] if text else []
    return {"role": "assistant", "parts": [*thought, *parts], "tool_calls": calls}
