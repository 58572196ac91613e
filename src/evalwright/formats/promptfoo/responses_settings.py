"""Settings of a model in the form of OpenAI's Responses API; configurations have them in that of chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["responses_settings"]

_NAME = "response_schema"
"""What promptfoo calls a schema without a name."""


def responses_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`response_format` and `verbosity` are parts of `text`, and functions have no level of their own."""
    sent = {key: value for key, value in settings.items() if key not in ("response_format", "verbosity")}
    text = {
        **({"format": _format(form)} if isinstance(form := settings.get("response_format"), dict) else {}),
        **({"verbosity": settings["verbosity"]} if settings.get("verbosity") else {}),
    }
    if text:
        sent["text"] = {**text, **(sent.get("text") or {})}
    if isinstance(tools := sent.get("tools"), list):
        sent["tools"] = [_flat_tool(tool) for tool in tools]
    if (choice := _function_in(sent.get("tool_choice"))) is not None:
        sent["tool_choice"] = {"type": "function", "name": choice.get("name")}
    return sent


def _format(form: Mapping[str, Any]) -> dict[str, Any]:
    if form.get("type") != "json_schema":
        return {"type": "json_object" if form.get("type") == "json_object" else "text"}
    inner: Mapping[str, Any] = form.get("json_schema") or {}
    schema, name = form.get("schema") or inner.get("schema"), inner.get("name") or form.get("name") or _NAME
    return {"type": "json_schema", "name": name, "schema": schema, "strict": True}


def _flat_tool(tool: Any) -> Any:
    function = _function_in(tool)
    return tool if function is None else {**{key: tool[key] for key in tool if key != "function"}, **function}


def _function_in(value: Any) -> dict[str, Any] | None:
    """The function of a tool, or of the choice of one, in the form of chat completions."""
    inner = value.get("function") if isinstance(value, dict) and value.get("type") == "function" else None
    return inner if isinstance(inner, dict) else None
