"""Exported traces for the tests of steps."""

from __future__ import annotations

from typing import Any


def at(second: int) -> str:
    return f"2026-03-01T09:00:{second:02}+00:00"


def span(span_id: str, second: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": span_id, "run_id": "r", "kind": "tool", "name": span_id, "started_at": at(second), **more}


def event(event_id: str, second: int, kind: str = "custom", **more: Any) -> dict[str, Any]:
    return {"id": event_id, "run_id": "r", "type": kind, "created_at": at(second), **more}


def payload(*records: dict[str, Any], **run: Any) -> dict[str, Any]:
    return {
        "sessions": [{"id": "s"}],
        "runs": [{"id": "r", "session_id": "s", "name": "agent", **run}],
        "spans": [record for record in records if "kind" in record],
        "events": [record for record in records if "type" in record],
    }
