"""Calls and results in the records of Codex."""

from __future__ import annotations

import re
from typing import Any

from evalwright.importers.blocks import texts_of
from evalwright.importers.sources import ImportNotes
from evalwright.importers.transcript import arguments_of, object_or_text

__all__ = ["exec_call", "exec_output", "output_of"]

_EXIT_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,9})$", re.MULTILINE)
"""What the tools that run commands write above their output."""
_HEAD = 2_000
"""Characters in which it ends."""


def exec_call(item: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The name and arguments of an item that is a call; None for other items."""
    match item.get("type") or item.get("item_type"):
        case "command_execution":
            return "command_execution", {"command": item.get("command")}
        case "file_change":
            return "file_change", {"changes": item.get("changes")}
        case "mcp_tool_call":
            return f"{item.get('server')}.{item.get('tool')}", arguments_of(item.get("arguments"))
        case "collab_tool_call":
            keys = ("prompt", "receiver_thread_ids")
            return str(item.get("tool")), {key: item[key] for key in keys if item.get(key)}
        case "web_search":
            return "web_search", {"query": item.get("query")}
        case "todo_list":
            return "todo_list", {"items": item.get("items")}
    return None


def exec_output(item: dict[str, Any], notes: ImportNotes) -> Any:
    if "aggregated_output" in item:
        return str(item["aggregated_output"] or "")
    if item.get("agents_states"):
        return {"agents_states": item["agents_states"]}
    error = item.get("error")
    if error:
        return str(error.get("message", error)) if isinstance(error, dict) else str(error)
    result = item.get("result")
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        return texts_of(result["content"], notes)
    return result if isinstance(result, dict | str | None) else str(result)


def output_of(value: Any, notes: ImportNotes) -> tuple[Any, bool]:
    """A result: text, an object, or text of an object that wraps the text; and whether its command failed."""
    read = object_or_text(value) if isinstance(value, str) else value
    if isinstance(read, dict) and "metadata" in read and isinstance(read.get("output"), str):
        about = read["metadata"]
        return read["output"], isinstance(about, dict) and about.get("exit_code") not in (0, None)
    if isinstance(read, str):
        code = _EXIT_CODE.search(read, 0, read.find("\nOutput:\n", 0, _HEAD) + 1)
        return read, code is not None and int(code[1]) != 0
    return (read if isinstance(read, dict) else texts_of(read, notes)), False
