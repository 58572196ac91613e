"""Events of known protocols, in a stream of which paths find the parts: what the paths miss or take for text."""

from __future__ import annotations

from typing import Any

from evalwright.targets.http.turns import object_at, objects_at

__all__ = ["misread_in", "reported_error"]

_CALLS = {
    "tool-input-available": "ai_sdk",
    "TOOL_CALL_START": "ag_ui",
    "TOOL_CALL_CHUNK": "ag_ui",
}
_NO_TEXT = {
    "reasoning-delta": "ai_sdk",
    "TOOL_CALL_ARGS": "ag_ui",
    "TOOL_CALL_CHUNK": "ag_ui",
    "TOOL_CALL_RESULT": "ag_ui",
    "REASONING_MESSAGE_CONTENT": "ag_ui",
    "REASONING_MESSAGE_CHUNK": "ag_ui",
    "THINKING_TEXT_MESSAGE_CONTENT": "ag_ui",
    "response.function_call_arguments.delta": "openai_responses",
    "response.reasoning_summary_text.delta": "openai_responses",
    "response.reasoning_text.delta": "openai_responses",
}
"""Types of events whose pieces look like those of the answer."""


def misread_in(event: Any, has_text: bool, has_call: bool) -> str:
    """What an event says although the paths found no call in it, or a text; empty if they read it well."""
    if not isinstance(event, dict):
        return ""
    kind = event.get("type")
    kind = kind if isinstance(kind, str) else ""
    if has_text and kind in _NO_TEXT:
        return f"{kind} is no text of the answer; stream_format: {_NO_TEXT[kind]} reads it"
    form = "" if has_call else _CALLS.get(kind) or _inner(kind, event)
    return f"nothing reads a tool call{f' of {kind}' if kind else ''}; stream_format: {form} reads it" if form else ""


def reported_error(event: Any) -> str | None:
    """The text of an event of a known protocol that says that the answer failed; None for other events."""
    kind = event.get("type") if isinstance(event, dict) else None
    if kind == "response.failed":
        event = object_at(object_at(event, "response"), "error")
    elif kind not in ("error", "RUN_ERROR"):
        return None
    texts = (event.get(key) for key in ("errorText", "message"))
    return next((text for text in texts if isinstance(text, str) and text), str(kind))


def _inner(kind: str, event: dict[str, Any]) -> str:
    """The protocol of an event in whose inner part a call is; empty if there is none."""
    if kind.startswith("content_block_"):
        inner = str((object_at(event, "content_block") or object_at(event, "delta")).get("type"))
        return "anthropic_messages" if inner == "input_json_delta" or inner.endswith("tool_use") else ""
    if kind == "response.output_item.done":
        return "openai_responses" if str(object_at(event, "item").get("type")).endswith("_call") else ""
    called = any(object_at(choice, "delta").get("tool_calls") for choice in objects_at(event, "choices"))
    return "openai_chat" if called else ""
