"""Spans of Google's Agent Development Kit: requests, replies and tools under the names of OpenTelemetry's GenAI
conventions."""

from __future__ import annotations

from typing import Any

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.span_messages import json_content

__all__ = ["with_adk_messages"]

_RENAMED = {
    "gcp.vertex.agent.tool_call_args": "gen_ai.tool.call.arguments",
    "gcp.vertex.agent.tool_response": "gen_ai.tool.call.result",
    "gcp.vertex.agent.session_id": "gen_ai.conversation.id",
}

_HIDDEN = (None, "", "{}")
"""What the kit writes where it is told to leave content out."""
_MERGED = "(merged tools)"
"""What the kit names as the tool of a further span for parallel calls, each of which has its own."""


def with_adk_messages(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with those of the kit under the names of the conventions as well."""
    found = {name: attributes[key] for key, name in _RENAMED.items() if attributes.get(key) not in _HIDDEN}
    request = json_content(attributes.get("gcp.vertex.agent.llm_request"))
    if isinstance(request, dict) and isinstance(request.get("contents"), list):
        found |= {"gen_ai.operation.name": "chat", "gen_ai.input.messages": request["contents"]}
        instruction = mapping_or_empty(request.get("config")).get("system_instruction")
        if isinstance(instruction, str) and instruction:
            found["gen_ai.system_instructions"] = [{"type": "text", "content": instruction}]
        elif isinstance(instruction, dict) and isinstance(instruction.get("parts"), list):
            found["gen_ai.system_instructions"] = instruction["parts"]
    response = json_content(attributes.get("gcp.vertex.agent.llm_response"))
    if isinstance(response, dict) and isinstance(response.get("content"), dict):
        found["gen_ai.output.messages"] = [response["content"]]
    merged = {"gen_ai.operation.name": "task"} if attributes.get("gen_ai.tool.name") == _MERGED else {}
    return {**found, **attributes, **merged} if found or merged else attributes
