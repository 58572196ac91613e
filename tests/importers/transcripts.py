"""Transcripts of agents for the tests of importing: the smallest records that say something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalwright.registry import load

AT = "2026-03-04T09:00:{:02}.000Z"


def written(path: Path, records: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def imported(folder: Path, format: str, *files: Path, mapping: dict[str, str] | None = None) -> Any:
    """What the importer says, and the cases that it wrote."""
    result = load("importers", format).import_files(files, folder / "out", mapping)
    return result, [json.loads(line) for line in (folder / "out" / "cases.jsonl").read_text().splitlines()]


def session_line(number: int, kind: str, content: Any, id: str | None = None, **more: Any) -> dict[str, Any]:
    """A line of a session of Claude Code, below the one before."""
    message = {"role": kind, "content": content, **({"id": id} if id else {}), **more.pop("message", {})}
    parent = f"u{number - 1}" if number else None
    return {
        "type": kind, "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s", "isSidechain": False,
        "timestamp": AT.format(number), "message": message, **more,
    }  # fmt: skip


def tool_result(id: str, content: object, **more: object) -> list[dict[str, object]]:
    """The content of a line of the user with which a tool of Claude Code answers."""
    return [{"type": "tool_result", "tool_use_id": id, "content": content, **more}]


def claude_session(folder: Path, lines: list[Any]) -> tuple[Any, Any, Any]:
    """What the importer says of one session of Claude Code, the trace that it wrote, and its case."""
    done, cases = imported(folder, "claude-code", written(folder / "session.jsonl", lines))
    return done, cases[0]["embedded_trace"], cases[0]


def used(read: int, written: int, **more: int) -> dict[str, Any]:
    return {"usage": {"input_tokens": read, "output_tokens": written, **more}}


def rollout_line(second: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": AT.format(second), "type": kind, "payload": payload}


def said(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def spoken(trace: dict) -> list[tuple]:
    shown = []
    for message in trace["messages"]:
        call = message["tool_call"]
        shown.append((message["role"], message["content"], call and call["name"]))
    return shown
