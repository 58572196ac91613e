"""Sessions of OpenCode: its printed events and its exports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.transcripts import imported, spoken, written

AT = 1_776_342_610_000


def tokens(given: int, said: int, thought: int, read: int, written: int) -> dict[str, Any]:
    return {"input": given, "output": said, "reasoning": thought, "cache": {"read": read, "write": written}}


def tool(id: str, name: str, status: str, at: int, **state: Any) -> dict[str, Any]:
    times = {"start": AT + at, "end": AT + at + 5}
    return {"type": "tool", "tool": name, "callID": id,
            "state": {"status": status, "input": {"command": "ls"}, "time": times, **state}}  # fmt: skip


def step(at: int, *parts: dict[str, Any], **finish: Any) -> list[dict[str, Any]]:
    """The events of a step."""
    listed = [{"type": "step-start"}, *parts, {"type": "step-finish", "reason": "stop", **finish}]
    names = {"step-start": "step_start", "step-finish": "step_finish", "tool": "tool_use"}
    return [
        {
            "type": names.get(part["type"], part["type"]),
            "timestamp": AT + at + number,
            "sessionID": "ses_1",
            "part": part,
        }
        for number, part in enumerate(listed)
    ]


LOOK = [
    {"type": "reasoning", "text": "Hm"}, {"type": "text", "text": "\n\nI look."},
    tool("c1", "bash", "completed", 1, output="a\n", metadata={"exit": 0}),
    tool("c2", "bash", "completed", 2, output="no", metadata={"exit": 2}),
    tool("c3", "read", "error", 3, error="not found"), tool("c4", "read", "running", 4),
]  # fmt: skip
SPOKEN = [
    ("user", "List it", None), ("assistant", "I look.", "bash"), ("assistant", None, "bash"),
    ("assistant", None, "read"), ("assistant", None, "read"), ("tool", "a\n", None), ("tool", "no", None),
    ("tool", "not found", None), ("assistant", "Done.", None),
]  # fmt: skip


def test_the_events_of_a_step_are_a_turn_and_the_tokens_of_steps_are_added(tmp_path):
    events = [
        {"type": "user", "sessionID": "ses_1", "timestamp": AT, "parts": [{"type": "text", "text": "List it"}]},
        *step(0, *LOOK, cost=0.25, tokens=tokens(60, 10, 5, 30, 10)),
        *step(1000, {"type": "text", "text": "Done."}, cost=0.5, tokens=tokens(100, 2, 0, 0, 0)),
        *step(2000, {"type": "hologram"}),
    ]
    path = written(tmp_path / "x.jsonl", events)
    assert detected(head_of(path)) == "opencode"
    done, (case,) = imported(tmp_path, "opencode", path)
    trace = case["embedded_trace"]
    assert (case["id"], case["input"], spoken(trace)) == ("ses_1", {"user_message": "List it"}, SPOKEN)
    assert trace["messages"][1]["thinking"] == "Hm"
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (200, 17, 5)
    assert (metrics["cost_usd"], metrics["custom"]["failed_tool_results"]) == (0.75, 2)
    assert (trace["latency_ms"], trace["output"]["final_answer"]) == (2002, "Done.")
    assert "lost: parts of type 'hologram': 1" in done.notes


def test_an_exported_session_has_the_same_conversation_and_counts_messages_once(tmp_path):
    def said(role: str, at: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        info = {"id": f"m{at}", "role": role, "time": {"created": AT + at, "completed": AT + at + 9}, **more}
        return {"info": info, "parts": list(parts)}

    finish = {"type": "step-finish", "cost": 0.25, "tokens": tokens(60, 10, 5, 30, 10)}
    used = {"cost": 0.25, "tokens": tokens(60, 10, 5, 30, 10), "modelID": "m", "providerID": "p"}
    document = {"info": {"id": "ses_1", "title": "t"}, "messages": [
        said("user", 0, {"type": "text", "text": "List it"}, {"type": "file", "mime": "text/plain"}),
        said("assistant", 10, {"type": "step-start"}, *LOOK, finish, **used),
        said("assistant", 100, {"type": "step-start"}, {"type": "text", "text": "Done."}, **used),
    ]}  # fmt: skip
    file = tmp_path / "export.json"
    file.write_text(json.dumps(document, indent=2))
    assert detected(head_of(file)) == "opencode"
    done, (case,) = imported(tmp_path, "opencode", file)
    trace = case["embedded_trace"]
    assert (case["id"], spoken(trace)) == ("ses_1", SPOKEN)
    assert (trace["metrics"]["token_input"], trace["metrics"]["cost_usd"]) == (200, 0.5)
    assert trace["extra"]["models"] == ["m"]
    assert "lost: files: 1" in done.notes


def test_a_session_that_ends_with_an_error_has_no_verdict(tmp_path):
    failed = {"type": "error", "sessionID": "ses_1", "timestamp": AT,
              "error": {"name": "APIError", "data": {"message": "no credits"}}}  # fmt: skip
    _, (case,) = imported(tmp_path, "opencode", written(tmp_path / "x.jsonl", [*step(0, LOOK[1]), failed]))
    assert (case["embedded_trace"]["error"]["type"], case["embedded_trace"]["error"]["message"]) == (
        "APIError", "no credits",
    )  # fmt: skip
    recovered = [failed, *step(0, LOOK[1])]
    _, (case,) = imported(tmp_path / "b", "opencode", written(tmp_path / "y.jsonl", recovered))
    assert case["embedded_trace"]["error"] is None


def test_an_export_without_messages_is_reported_with_its_place(tmp_path):
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"info": {"id": "s"}, "messages": 7}, indent=2))
    with pytest.raises(InputError, match="expected the messages of a session, found the number 7"):
        imported(tmp_path, "opencode", file)
