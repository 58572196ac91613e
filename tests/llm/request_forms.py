"""What OpenAI and Anthropic accept in a request, as strictly as they do.

Written from their API references (platform.openai.com/docs/api-reference, docs.anthropic.com/en/api).
"""

from __future__ import annotations

import json
import re

__all__ = ["Refused", "check_anthropic", "check_chat", "only"]

CHAT = frozenset(
    [
        "model",
        "messages",
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    ]
)
MESSAGE = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio", "function_call"},
    "tool": {"role", "content", "tool_call_id", "name"},
}
PART = {"text": {"type", "text"}, "image_url": {"type", "image_url"}, "input_audio": {"type", "input_audio"}}
ANTHROPIC = frozenset(
    [
        "model",
        "messages",
        "max_tokens",
        "container",
        "context_management",
        "mcp_servers",
        "metadata",
        "output_config",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    ]
)
BLOCK = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
}
REASONING = re.compile(r"(o\d|gpt-5)")


class Refused(Exception):
    def __init__(self, message, status=400):
        super().__init__(message)
        self.status = status


def only(given, known, place):
    if not isinstance(given, dict):
        raise Refused(f"{place}: expected an object")
    if unknown := sorted(given.keys() - known):
        raise Refused(f"{place}: unknown field {unknown[0]!r}")


def strict_schema(schema, place="schema"):
    """What `strict: true` asks for: every property required, and no others."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" or "properties" in schema:
            if schema.get("additionalProperties") is not False:
                raise Refused(f"{place}: 'additionalProperties' is required to be supplied and to be false")
            if set(schema.get("required", ())) != set(schema.get("properties", {})):
                raise Refused(f"{place}: 'required' is required to be supplied and to be an array of every key")
        for key, value in schema.items():
            strict_schema(value, f"{place}.{key}")
    elif isinstance(schema, list):
        for value in schema:
            strict_schema(value, place)


def check_chat(body):
    only(body, CHAT, "body")
    if not body.get("messages"):
        raise Refused("messages: at least one message is required")
    if REASONING.match(body["model"]):
        if "max_tokens" in body:
            raise Refused("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if body.get("temperature", 1) != 1:
            raise Refused("Unsupported value: 'temperature' does not support this value with this model.")
    if "stream_options" in body and not body.get("stream"):
        raise Refused("stream_options is only allowed when stream is enabled")
    called = set()
    for number, message in enumerate(body["messages"]):
        place = f"messages[{number}]"
        if message.get("role") not in MESSAGE:
            raise Refused(f"{place}.role: unknown")
        only(message, MESSAGE[message["role"]], place)
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part.get("type") not in PART:
                raise Refused(f"{place}.content: unknown type {part.get('type')!r}")
            only(part, PART[part["type"]], f"{place}.content")
        called |= {call["id"] for call in message.get("tool_calls") or ()}
        if message["role"] == "tool" and message.get("tool_call_id") not in called:
            raise Refused(f"{place}: tool message without a call before it")
    for tool in body.get("tools", ()):
        only(tool, {"type", "function"}, "tools")
        only(tool["function"], {"name", "description", "parameters", "strict"}, "tools.function")
    form = body.get("response_format")
    if form is not None:
        only(form, {"type", "json_schema"}, "response_format")
        if form["type"] == "json_schema":
            only(form["json_schema"], {"name", "schema", "strict", "description"}, "json_schema")
            if form["json_schema"].get("strict"):
                strict_schema(form["json_schema"]["schema"])
        elif form["type"] == "json_object" and "json" not in json.dumps(body["messages"]).lower():
            raise Refused("'messages' must contain the word 'json' to use 'response_format' of type 'json_object'.")


def check_anthropic(body):
    only(body, ANTHROPIC, "body")
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        raise Refused("max_tokens: Field required")
    if not 0 <= body.get("temperature", 1) <= 1:
        raise Refused("temperature: range: 0..1")
    marks, used = 0, set()
    parts = body.get("system") if isinstance(body.get("system"), list) else []
    for number, message in enumerate(body["messages"]):
        only(message, {"role", "content"}, f"messages.{number}")
        if message["role"] not in ("user", "assistant"):
            raise Refused(f"messages.{number}.role: Input should be 'user' or 'assistant'")
        parts = [*parts, *(message["content"] if isinstance(message["content"], list) else ())]
    for part in parts:
        if part.get("type") not in BLOCK:
            raise Refused(f"unknown block {part.get('type')!r}")
        only(part, BLOCK[part["type"]], "content")
        if part["type"] == "text" and not part["text"]:
            raise Refused("text content blocks must be non-empty")
        if part["type"] == "tool_use":
            used.add(part["id"])
        if part["type"] == "tool_result" and part["tool_use_id"] not in used:
            raise Refused("unexpected tool_use_id in tool_result block")
        marks += "cache_control" in part
    for tool in body.get("tools", ()):
        only(tool, {"name", "description", "input_schema", "cache_control", "type", "strict"}, "tools")
        marks += "cache_control" in tool
    if marks > 4:
        raise Refused("A maximum of 4 blocks with cache_control may be provided")
