"""Messages and agents in the form of `letta_client`'s own models, which require more than graders look at.

What a system left out is filled in: a message's id is its place in the conversation, its date the cell's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["agent_record", "other_tokens", "trajectory_records", "usage_records"]

_REQUIRED: dict[str, dict[str, Any]] = {
    "approval_request_message": {"tool_call": {}},
    "approval_response_message": {},
    "assistant_message": {"content": ""},
    "event_message": {"event_data": {}, "event_type": "compaction"},
    "hidden_reasoning_message": {"state": "omitted"},
    "reasoning_message": {"reasoning": ""},
    "summary_message": {"summary": ""},
    "system_message": {"content": ""},
    "tool_call_message": {"tool_call": {}},
    "tool_return_message": {"status": "success", "tool_call_id": "", "tool_return": ""},
    "user_message": {"content": ""},
}
"""What the models require besides `id` and `date`, by `message_type`; they know no other types."""
_TEXTS = ("reasoning", "summary", "tool_call_id", "tool_return")


def trajectory_records(turns: Iterable[Iterable[Mapping[str, Any]]], date: str) -> list[list[dict[str, Any]]]:
    """The turns, with only messages of known types, each complete. `date` is in ISO 8601."""
    return [
        [
            _message(message, f"message-{turn}-{place}", date)
            for place, message in enumerate(messages)
            if message.get("message_type") in _REQUIRED
        ]
        for turn, messages in enumerate(turns)
    ]


def _message(record: Mapping[str, Any], name: str, date: str) -> dict[str, Any]:
    fields = {key: value for key, value in record.items() if value is not None}
    message = {"id": name, "date": date, **_REQUIRED[record["message_type"]], **fields}
    for key in _TEXTS:
        if key in message and not isinstance(message[key], str):
            message[key] = json.dumps(message[key], ensure_ascii=False)
    if "tool_call" in message:
        calls = message.get("tool_calls")
        call = message["tool_call"] or (calls[0] if isinstance(calls, list) and calls else {})
        message["tool_call"] = _call(call)
        if isinstance(calls, list):
            message["tool_calls"] = [_call(call) for call in calls]
    if isinstance(message.get("content"), list):
        message["content"] = [
            {"type": "text", **part} if isinstance(part, dict) else part for part in message["content"]
        ]
    return message


def _call(record: Any) -> dict[str, Any]:
    call: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    arguments = call.get("arguments", "")
    return {
        **call,
        "name": str(call.get("name") or ""),
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
        "tool_call_id": str(call.get("tool_call_id") or ""),
    }


def agent_record(agent_id: str | None, model: str | None, blocks: Mapping[str, str]) -> dict[str, Any]:
    """An agent with these memory blocks; whatever else the model requires is empty."""
    memory = [{"label": label, "value": value} for label, value in blocks.items()]
    return {
        "id": agent_id or "",
        "name": agent_id or "",
        "agent_type": "letta_v1_agent",
        "system": "",
        "llm_config": {"model": model or "", "model_endpoint_type": "openai", "context_window": 0},
        "memory": {"blocks": memory},
        "blocks": memory,
        "sources": [],
        "tags": [],
        "tools": [],
    }


def usage_records(usage: Any) -> list[dict[str, Any]] | None:
    """What the agent used, as a list: recordings have one entry for each message, a backend reports one for all."""
    usages = usage if isinstance(usage, list) else [usage]
    return [usage_part for usage_part in usages if isinstance(usage_part, dict)] or None


_TOKENS = {
    "cached_input_tokens": ("prompt_tokens_details", ("cached_tokens", "cache_read_tokens", "cached_input_tokens")),
    "cache_write_tokens": ("prompt_tokens_details", ("cache_creation_tokens",)),
    "reasoning_tokens": ("completion_tokens_details", ("reasoning_tokens",)),
}
"""Where providers report a number of tokens that a usage does not have at its top."""


def other_tokens(usage: Any) -> dict[str, int | None]:
    """The tokens of each kind that a conversation used beside its plain ones; None if none are reported."""
    used = usage_records(usage) or []
    return {
        name: sum(_count([part.get(name), *_reported(part.get(details), names)]) for part in used) or None
        for name, (details, names) in _TOKENS.items()
    }


def _reported(details: Any, names: Iterable[str]) -> list[Any]:
    return [details.get(name) for name in names] if isinstance(details, Mapping) else []


def _count(values: Iterable[Any]) -> int:
    """The first of the values that is a number of tokens above 0; 0 if there is none."""
    return next((value for value in values if type(value) is int and value > 0), 0)
