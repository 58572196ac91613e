"""What was sent to a model and came back, as its SDK recorded it: messages in the forms of LangChain, OpenAI (both
of its APIs), Anthropic and Gemini."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import msgspec

from evalwright.importers.record_values import dictionaries

__all__ = ["chat_message", "is_message_list", "langchain_fields", "reply_messages", "request_messages"]

_ROLES = {
    "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
    "human": "user", "ai": "assistant", "system": "system", "tool": "tool",
}  # fmt: skip


def request_messages(inputs: Any) -> list[dict[str, Any]]:
    """The messages in the inputs of a call of a model."""
    request = inputs if isinstance(inputs, dict) else {"messages": inputs}
    instructions = next((request[key] for key in ("system", "instructions") if request.get(key)), None)
    messages = next((request[key] for key in ("messages", "input", "contents") if request.get(key)), None)
    if isinstance(messages, list) and messages and isinstance(messages[0], list):
        messages = messages[0]  # LangChain sends batches, with one list of messages per run
    if isinstance(messages, str) and isinstance(inputs, dict):
        messages = [{"role": "user", "content": messages}]
    listed = [message for dictionary in dictionaries(messages) if (message := chat_message(dictionary)) is not None]
    return (
        [{"role": "system", "content": instructions}, *listed]
        if listed and isinstance(instructions, str | list)
        else listed
    )


def reply_messages(outputs: Any) -> list[dict[str, Any]]:
    """The reply of a model."""
    if not isinstance(outputs, dict):
        return []
    if isinstance(outputs.get("generations"), list):
        first = outputs["generations"][0] if outputs["generations"] else None
        parts = [*dictionaries(first if isinstance(first, list) else [first])]
        replies = [chat_message(part["message"]) for part in parts if isinstance(part.get("message"), dict)]
        texts = [{"role": "assistant", "content": part["text"]} for part in parts if isinstance(part.get("text"), str)]
        return [one for one in replies if one is not None] or texts
    held = (("choices", "message"), ("candidates", "content"))
    choices = [
        dictionary[key]
        for name, key in held
        for dictionary in dictionaries(outputs.get(name))
        if isinstance(dictionary.get(key), dict)
    ]
    listed = next((outputs[key] for key in ("messages", "output") if isinstance(outputs.get(key), list)), None)
    messages = choices or [*dictionaries(listed)] or ([outputs] if "role" in outputs else [])
    return [message for one in messages if (message := chat_message(one)) is not None]


def chat_message(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """A message in OpenAI's form, from LangChain's constructor, from its fields (which may be below `data`), from an
    item of a response, or already in that form; None for anything else."""
    message = langchain_fields(message)
    if (item := _item(message)) is not None:
        return item
    role = message.get("role") or _ROLES.get(str(message.get("type")))
    if not isinstance(role, str):
        return None
    calls = [_call(call) for call in dictionaries(message.get("tool_calls"))]
    kept = {key: message[key] for key in ("name", "tool_call_id", "parts") if message.get(key)}
    return {"role": role, "content": message.get("content"), **({"tool_calls": calls} if calls else {}), **kept}


def is_message_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value is a list of messages, as far as its first item shows: other records have roles and types, too,
    but say nothing."""
    first = value[0] if isinstance(value, list) and value else None
    message = chat_message(first) if isinstance(first, dict) and "messages" not in first else None
    if message is None or message["role"] not in ("developer", *_ROLES.values()):
        return False
    return message["content"] is not None or "tool_calls" in message or "parts" in message


def langchain_fields(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a message of LangChain, with its type, in whichever of its forms; any other message as it is."""
    if isinstance(message.get("kwargs"), dict):
        path = message.get("id")
        name = str(path[-1]).removesuffix("Chunk") if isinstance(path, list) and path else ""
        return {**message["kwargs"], "type": name or message["kwargs"].get("type")}
    if isinstance(message.get("data"), dict):
        return {**message["data"], "type": message.get("type")}
    return message


def _item(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """The message that an item of OpenAI's Responses API is, unless it has a role."""
    match item.get("type"):
        case "function_call":
            called = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": item.get("call_id"), "type": "function", "function": called}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        case "function_call_output":
            return {"role": "tool", "content": item.get("output"), "tool_call_id": item.get("call_id")}
        case "reasoning":
            summaries = [*dictionaries(item.get("summary")), *dictionaries(item.get("content"))]
            return {"role": "assistant", "content": [{**summary, "type": "reasoning"} for summary in summaries]}
    return None


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(call.get("function"), dict):
        return dict(call)
    arguments = msgspec.json.encode(call.get("args") or {}).decode()
    return {"id": call.get("id"), "type": "function", "function": {"name": call.get("name"), "arguments": arguments}}
