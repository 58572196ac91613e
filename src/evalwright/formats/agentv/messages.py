"""Messages of AgentEvals files, checked, together with the files that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from evalwright.files.images import is_image
from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.message_files import Files, value_of
from evalwright.formats.agentv.notes import Notes

__all__ = ["BLOCKS", "ROLES", "called_name", "checked_messages", "expected_messages"]

ROLES = ("system", "user", "assistant", "tool")
_MARKER = re.compile(r"@\[(?:System|User|Assistant|Tool)\]:", re.IGNORECASE)
"""Separates the messages of a prompt."""
_OF_MESSAGE = (
    "role", "content", "name", "tool_call_id", "tool_calls", "metadata", "start_time", "end_time", "duration_ms", "id",
)  # fmt: skip
_OF_BLOCK = ("type", "value", "text", "path", "media_type", "resolvedPath")
BLOCKS = ("text", "file", "image", "json")


def checked_messages(raw: Any, place: str, files: Files, report: Notes) -> list[dict[str, Any]]:
    """The messages, with every mistake reported; a string, or an object without a role, is one user message."""
    if isinstance(raw, str):
        _warn_of_marker(raw, place, report)
        return [{"role": "user", "content": raw}]
    if isinstance(raw, dict):
        raw = [raw if "role" in raw else {"role": "user", "content": raw}]
    if not isinstance(raw, list):
        report(place, f"expected text or a list of messages, found {as_written(raw, nothing='nothing')}")
        return []
    if not raw:
        report(place, "expected at least one message, found an empty list")
    return [_message(message, f"{place}[{i}]", files, report) for i, message in enumerate(raw)]


def expected_messages(raw: Any, place: str, files: Files, report: Notes) -> list[dict[str, Any]]:
    """The expected messages: a string, an object or a list of plain values is one assistant message.

    So is an empty list in `expected_output`, which may be any value; in `expected_messages` it is no message.
    """
    if raw is None or (raw == [] and place == "expected_messages"):
        return []
    if isinstance(raw, dict):
        raw = [raw] if "role" in raw else [{"role": "assistant", "content": raw}]
    elif not isinstance(raw, list):
        return [{"role": "assistant", "content": raw if isinstance(raw, str) else json.dumps(raw)}]
    elif not (raw and isinstance(raw[0], dict) and "role" in raw[0]):
        return [{"role": "assistant", "content": raw}]
    checked = [_message(message, f"{place}[{i}]", files, report) for i, message in enumerate(raw)]
    return checked if report.errors else [_with_files(message, files) for message in checked]


def _with_files(message: dict[str, Any], files: Files) -> dict[str, Any]:
    """An expected message with the content of its files, so that judges can see it."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_with_text(block, files) if isinstance(block, dict) else block for block in content]}


def _with_text(block: dict[str, Any], files: Files) -> dict[str, Any]:
    path = files.find(value_of(block)) if block.get("type") == "file" else None
    if path is None or is_image(path):
        return block
    return {"type": "file", "path": value_of(block), "text": files.text(path), "resolvedPath": str(path)}


def _message(raw: Any, place: str, files: Files, report: Notes) -> dict[str, Any]:
    if not isinstance(raw, dict):
        report(place, f"expected a mapping, found {as_written(raw, nothing='nothing')}")
        return {"role": "user", "content": ""}
    if raw.get("role") not in ROLES:
        report(f"{place}.role", f"unknown role {raw.get('role')!r}, expected one of {', '.join(ROLES)}")
    content, calls = raw.get("content"), raw.get("tool_calls")
    report.unknown_keys(place, raw, _OF_MESSAGE)
    if calls is not None:
        _check_calls(calls, f"{place}.tool_calls", report)
    if isinstance(content, list):
        for i, block in enumerate(content):
            _check_block(block, f"{place}.content[{i}]", files, report)
            if isinstance(block, dict) and block.get("type") == "text":
                _warn_of_marker(value_of(block), f"{place}.content[{i}]", report)
    elif not isinstance(content, (str, dict)) and not (isinstance(calls, list) and calls):
        report(
            f"{place}.content",
            f"content: expected text, a list of blocks or an object, found {as_written(content, nothing='nothing')}",
        )
    if isinstance(content, str):
        _warn_of_marker(content, f"{place}.content", report)
    return dict(raw)


def _check_calls(calls: Any, place: str, report: Notes) -> None:
    if not isinstance(calls, list):
        report(place, f"tool_calls: expected a list of calls, found {as_written(calls, nothing='nothing')}")
        return
    for i, call in enumerate(calls):
        if not isinstance(call, dict) or not called_name(call):
            expected = "{tool, input} or {function: {name, arguments}}"
            report(
                f"{place}[{i}]",
                f"tool_calls: expected a call as {expected}, found {as_written(call, nothing='nothing')}",
            )


def called_name(call: Mapping[str, Any]) -> Any:
    """The tool of a call in either form: `{tool, input}` or `{function: {name, arguments}}`."""
    function = call.get("function")
    return function.get("name") if isinstance(function, dict) else call.get("tool")


def _warn_of_marker(text: str, place: str, report: Notes) -> None:
    if match := _MARKER.search(text):
        report.warn(
            place, f"content: {match[0]!r} looks like a role marker: systems may read it as a message of its own"
        )


def _check_block(block: Any, place: str, files: Files, report: Notes) -> None:
    if not isinstance(block, dict):
        report(
            place, f"content: expected a block with 'type' and 'value', found {as_written(block, nothing='nothing')}"
        )
        return
    if "type" not in block and "role" not in block:
        report(f"{place}.type", "content: a block needs a 'type'")
        return
    kind, value = block.get("type"), block.get("value", block.get("text"))
    report.unknown_keys(place, block, _OF_BLOCK)
    if kind == "json" and isinstance(value, str):
        report.warn(f"{place}.value", "content: a block of type 'json' holds text, which is sent as a JSON string")
    if kind not in BLOCKS:
        report(f"{place}.type", f"unknown type {kind!r} of a content block, expected one of {', '.join(BLOCKS)}")
    elif kind == "json" and value is None:
        report(f"{place}.value", "content: a block of type 'json' needs a 'value'")
    elif kind != "json" and not isinstance(value, str):
        report(f"{place}.value", f"content: a block of type {kind!r} needs a text as 'value'")
    elif kind in ("file", "image"):
        try:
            files.image(block)
        except (ValueError, OSError) as error:
            report(f"{place}.value", str(error))
