"""What was sent to a model and came back, as its SDK recorded it: messages in the forms of LangChain and of OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from evalwright.importers.blocks import dictionaries

__all__ = ["reply_messages", "request_messages"]

_ROLES = {
    "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
    "human": "user", "ai": "assistant", "system": "system", "tool": "tool",
}  # fmt: skip


def request_messages(inputs: Any) -> list[dict[str, Any]]:
    """The messages in the inputs of a call of a model."""
    given = inputs.get("messages") if isinstance(inputs, dict) else None
    if isinstance(given, list) and given and isinstance(given[0], list):
        given = given[0]  # LangChain sends batches, with one list of messages per run
    return [message for one in dictionaries(given) if (message := _message(one)) is not None]


def reply_messages(outputs: Any) -> list[dict[str, Any]]:
    """The reply of a model in the forms of LangChain and of OpenAI."""
    if not isinstance(outputs, dict):
        return []
    if isinstance(outputs.get("generations"), list):
        first = outputs["generations"][0] if outputs["generations"] else None
        parts = [*dictionaries(first if isinstance(first, list) else [first])]
        found = [_message(part["message"]) for part in parts if isinstance(part.get("message"), dict)]
        texts = [{"role": "assistant", "content": part["text"]} for part in parts if isinstance(part.get("text"), str)]
        return [one for one in found if one is not None] or texts
    choices = [one["message"] for one in dictionaries(outputs.get("choices")) if isinstance(one.get("message"), dict)]
    messages = choices or [*dictionaries(outputs.get("messages"))] or ([outputs] if "role" in outputs else [])
    return [message for one in messages if (message := _message(one)) is not None]


def _message(one: Mapping[str, Any]) -> dict[str, Any] | None:
    """A message in OpenAI's form, from LangChain's constructor, from its fields, or already in that form."""
    if isinstance(one.get("kwargs"), dict):
        path = one.get("id")
        name = str(path[-1]).removesuffix("Chunk") if isinstance(path, list) and path else ""
        one = {"type": name, **one["kwargs"]}
        one = {**one, "type": name or one.get("type")}
    role = one.get("role") or _ROLES.get(str(one.get("type")))
    if not isinstance(role, str):
        return None
    calls = [_call(call) for call in dictionaries(one.get("tool_calls"))]
    return {
        "role": role,
        "content": one.get("content"),
        **({"tool_calls": calls} if calls else {}),
        **({"tool_call_id": one["tool_call_id"]} if isinstance(one.get("tool_call_id"), str) else {}),
    }


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(call.get("function"), dict):
        return dict(call)
    arguments = msgspec.json.encode(call.get("args") or {}).decode()
    return {"id": call.get("id"), "type": "function", "function": {"name": call.get("name"), "arguments": arguments}}
