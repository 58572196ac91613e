"""Sessions that Gemini CLI keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalwright.cli.import_ import command
from evalwright.errors import InputError
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.transcripts import AT, imported, spoken, written

ABOUT = {"sessionId": "s", "projectHash": "h", "startTime": AT.format(0), "lastUpdated": AT.format(9), "kind": "main"}


def user(id: str, second: int, text: str) -> dict[str, Any]:
    return {"id": id, "timestamp": AT.format(second), "type": "user", "content": [{"text": text}]}


def says(id: str, second: int, text: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": AT.format(second), "type": "gemini", "content": text, "model": "m", **more}


def call(id: str, name: str, status: str, **response: Any) -> dict[str, Any]:
    answer = [{"functionResponse": {"id": id, "name": name, "response": response}}] if response else None
    return {"id": id, "name": name, "args": {"path": "a"}, "status": status, "timestamp": AT.format(5),
            "result": answer}  # fmt: skip


CALLS = [call("c1", "read", "success", output="x"), call("c2", "edit", "error", error="denied"),
         call("c3", "shell", "executing")]  # fmt: skip
USED = {"input": 100, "output": 20, "cached": 80, "thoughts": 5, "tool": 2, "total": 127}
LOOK = says("g1", 2, "I look.", thoughts=[{"subject": "Plan", "description": "read it"}], toolCalls=CALLS, tokens=USED)
SPOKEN = [
    ("user", "Fix it", None), ("assistant", "I look.", "read"), ("assistant", None, "edit"),
    ("assistant", None, "shell"), ("tool", "x", None), ("tool", "denied", None), ("assistant", "Done.", None),
]  # fmt: skip


def check(case: dict[str, Any]) -> None:
    trace = case["embedded_trace"]
    assert (case["id"], case["input"], spoken(trace)) == ("s", {"user_message": "Fix it"}, SPOKEN)
    assert trace["messages"][1]["thinking"] == "Plan: read it"
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (102, 25, 5)
    assert metrics["custom"] == {"cache_read_tokens": 80, "failed_tool_results": 1}
    assert (trace["extra"]["models"], trace["latency_ms"]) == (["m"], 6000)


def test_a_session_is_one_document_in_older_releases(tmp_path):
    file = tmp_path / "session-x.json"
    messages = [user("u1", 1, "Fix it"), LOOK, says("g2", 7, "Done.")]
    file.write_text(json.dumps({**ABOUT, "messages": messages}, indent=2))
    assert detected(head_of(file)) == "gemini"
    _, (case,) = imported(tmp_path, "gemini", file)
    check(case)


def test_a_message_of_the_lines_counts_as_it_was_written_last(tmp_path):
    answer = {"id": "u2", "timestamp": AT.format(6), "type": "user", "content": [{"functionResponse": {"id": "c1"}}]}
    info = {"id": "i", "timestamp": AT.format(3), "type": "info", "content": "hint"}
    path = written(tmp_path / "session-x.jsonl", [
        ABOUT, user("u1", 1, "Fix it"), {**LOOK, "toolCalls": []}, {"$set": {"lastUpdated": AT.format(3)}}, info, LOOK,
        answer, says("g8", 7, "Wrong."), {"$rewindTo": "g8"}, says("g2", 7, "Done."),
        {"id": "w", "type": "hologram"},
    ])  # fmt: skip
    assert detected(head_of(path)) == "gemini"
    done, (case,) = imported(tmp_path, "gemini", path)
    check(case)
    assert {"lost: messages that were rewound: 1", "lost: messages of type 'hologram': 1"} <= {*done.notes}


def test_a_session_that_was_compressed_is_what_is_left_of_it(tmp_path):
    left = {"$set": {"messages": [user("u9", 1, "A summary"), says("g9", 2, "Go on.")]}}
    path = written(tmp_path / "x.jsonl", [ABOUT, user("u1", 1, "Fix it"), LOOK, left])
    _, (case,) = imported(tmp_path, "gemini", path)
    assert [message["content"] for message in case["embedded_trace"]["messages"]] == ["A summary", "Go on."]


def test_an_error_at_the_end_is_one_and_a_broken_last_line_is_a_warning(tmp_path):
    failed = {"id": "e", "timestamp": AT.format(3), "type": "error", "content": [{"text": "[API Error: 429]"}]}
    path = written(tmp_path / "x.jsonl", [ABOUT, user("u1", 1, "q"), failed])
    path.write_text(path.read_text() + '{"id": "g')
    _, (case,) = imported(tmp_path, "gemini", path)
    trace = case["embedded_trace"]
    assert trace["error"]["message"] == "[API Error: 429]"
    assert trace["extra"]["warnings"] == ["the last line breaks off and was left out"]
    went_on = written(tmp_path / "y.jsonl", [ABOUT, user("u1", 1, "q"), failed, says("g1", 4, "a")])
    _, (case,) = imported(tmp_path / "b", "gemini", went_on)
    assert case["embedded_trace"]["error"] is None


def test_arguments_that_are_too_deep_are_a_mistake(tmp_path):
    deep: Any = 1
    for _ in range(150):
        deep = {"a": deep}
    path = written(tmp_path / "x.jsonl", [ABOUT, says("g", 1, "", toolCalls=[{**CALLS[0], "args": deep}])])
    with pytest.raises(InputError, match="is nested too deeply"):
        imported(tmp_path, "gemini", path)


def test_the_list_of_prompts_beside_the_sessions_is_left_out(tmp_path: Path):
    project = tmp_path / "tmp" / "hash"
    written(project / "chats" / "session-x.jsonl", [ABOUT, user("u1", 1, "Fix it"), says("g1", 2, "Done.")])
    prompt = {"sessionId": "s", "messageId": 0, "type": "user", "message": "Fix it", "timestamp": AT.format(1)}
    (project / "logs.json").write_text(json.dumps([prompt], indent=2))
    done = CliRunner().invoke(command, [str(project), "--out", str(tmp_path / "out")], standalone_mode=False)
    assert done.exception is None, done.exception
    assert done.output.splitlines()[:3] == [
        "format: gemini (detected)", "1 file of other formats in the folder left out", "1 case, 1 recording",
    ]  # fmt: skip


def test_sessions_of_subagents_are_part_of_the_one_that_started_them(tmp_path: Path):
    chats = tmp_path / "chats"
    written(chats / "session-x.jsonl", [ABOUT, user("u1", 1, "Fix it"), says("g1", 2, "Done.", tokens=USED)])
    part = {**ABOUT, "sessionId": "agent-1", "kind": "subagent"}
    written(chats / "s" / "agent-1.jsonl", [part, user("u1", 1, "Look"), says("g1", 2, "Seen.", tokens=USED)])
    written(chats / "gone" / "agent-2.jsonl", [{**part, "sessionId": "agent-2"}, user("u1", 1, "Alone")])
    done = CliRunner().invoke(command, [str(chats), "--out", str(tmp_path / "out")], standalone_mode=False)
    assert done.exception is None, done.exception
    first, second = map(json.loads, (tmp_path / "out" / "cases.jsonl").read_text().splitlines())
    assert (first["id"], second["id"]) == ("s", "agent-2")
    trace = first["embedded_trace"]
    (agent,) = [span for span in trace["spans"] if span["kind"] == "agent"]
    assert (agent["name"], [message["content"] for message in agent["output"]["messages"]]) == (
        "agent-1",
        ["Look", "Seen."],
    )
    assert trace["metrics"]["token_input"] == 204


def test_the_context_that_the_tool_writes_is_no_request_of_the_user(tmp_path):
    context = user("u0", 0, "<session_context>\nMy operating system is linux\n</session_context>")
    lines = [ABOUT, context, user("u1", 1, "Fix it"), says("g1", 2, "Done.")]
    _, (case,) = imported(tmp_path, "gemini", written(tmp_path / "s.jsonl", lines))
    assert case["input"] == {"user_message": "Fix it"}
    assert [role for role, _, _ in spoken(case["embedded_trace"])] == ["user", "user", "assistant"]
