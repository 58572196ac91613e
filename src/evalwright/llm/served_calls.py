"""Calls of tools that the provider itself runs, in the items of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.llm.replies import arguments_in, tool_content
from evalwright.model.chat import SERVED_RESULTS, ServedCall
from evalwright.model.trace import ToolCall

__all__ = ["served_call"]

_OF_ITEM = frozenset({"type", "id", "call_id", "status", *SERVED_RESULTS})


def served_call(item: Mapping[str, Any]) -> ServedCall:
    """The call in an item of type `web_search_call`, `mcp_call` and so on."""
    kind: str = item["type"]
    if kind == "mcp_call":
        result = item.get("output") if item.get("error") is None else item["error"]
        name: Any = item.get("name")
        call = ToolCall(name, item.get("id"), arguments_in(item.get("arguments")))
        return ServedCall(call, None if result is None else tool_content(result))
    name = kind.removesuffix("_call")
    returned: Any = {key: item[key] for key in SERVED_RESULTS if item.get(key) is not None}
    if name == "image_generation" and returned:
        returned = "[image]"
    arguments = {key: value for key, value in item.items() if key not in _OF_ITEM}
    return ServedCall(ToolCall(name, item.get("call_id") or item.get("id"), arguments), returned or None)
