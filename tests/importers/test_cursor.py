"""The output of Cursor's command line."""

from __future__ import annotations

from typing import Any

from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.transcripts import imported, spoken, written


def line(kind: str, at: int | None = None, **more: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": "s", **({} if at is None else {"timestamp_ms": at}), **more}


START = line("system", subtype="init", apiKeySource="login", cwd="/p", model="composer", permissionMode="default")
ASKED = line("user", message={"role": "user", "content": [{"type": "text", "text": "Fix it"}]})


def says(text: str, at: int | None = None, **more: Any) -> dict[str, Any]:
    return line("assistant", at, message={"role": "assistant", "content": [{"type": "text", "text": text}]}, **more)


def call(id: str, tool: str, args: dict[str, Any], at: int | None = None, **more: Any) -> list[dict[str, Any]]:
    """The start and the end of a call."""
    ended = {f"{tool}ToolCall": {"args": args, "result": more.pop("result")}, "toolCallId": id}
    begun = {"toolCallId": id, f"{tool}ToolCall": {"args": args}}
    return [
        line("tool_call", at, subtype="started", call_id=id, tool_call=begun, **more),
        line("tool_call", at, subtype="completed", call_id=id, tool_call=ended, **more),
    ]


def end(text: str, **more: Any) -> dict[str, Any]:
    return line("result", subtype="success", is_error=False, duration_ms=10, result=text, request_id="r", **more)


def test_texts_in_pieces_and_again_as_a_whole_are_there_once_with_the_calls_of_their_turn(tmp_path):
    read, shell = (
        call("c1", "read", {"path": "a"}, 1002, model_call_id="m1", result={"success": {"content": "x"}}),
        call("c2", "shell", {"command": "make"}, 1003, model_call_id="m1", result={"failure": {"stderr": "no"}}),
    )
    usage = {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 90, "cacheWriteTokens": 5}
    path = written(tmp_path / "s.jsonl", [
        START, ASKED, line("thinking", 1, subtype="delta", text="A "),
        line("thinking", 1, subtype="delta", text="plan"), line("thinking", 2, subtype="completed"),
        says("I ", 3), says("look. ", 4), says("I look. ", 5, model_call_id="m1"),
        *read, *shell, says("Do", 2000), says("ne.", 2001), says("I look. Done."),
        end("I look. Done.", usage=usage), line("novelty"),
    ])  # fmt: skip
    assert detected(head_of(path)) == "cursor"
    done, (case,) = imported(tmp_path, "cursor", path)
    trace = case["embedded_trace"]
    assert (case["id"], case["input"]) == ("s", {"user_message": "Fix it"})
    assert spoken(trace) == [
        ("user", "Fix it", None), ("assistant", "I look.", "read"), ("assistant", None, "shell"),
        ("tool", {"content": "x"}, None), ("tool", {"stderr": "no"}, None), ("assistant", "Done.", None),
    ]  # fmt: skip
    assert (trace["messages"][1]["thinking"], trace["output"]["final_answer"]) == ("A plan", "Done.")
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], trace["latency_ms"]) == (100, 2, 10)
    assert metrics["custom"] == {"cache_read_tokens": 90, "cache_write_tokens": 5, "failed_tool_results": 1}
    assert "lost: lines of type 'novelty': 1" in done.notes


def test_older_output_has_pieces_without_times(tmp_path):
    read = call("c1", "read", {"path": "a"}, result={"success": {"content": "x"}})
    lines = [START, ASKED, says("I "), says("look"), *read, says(" Done"), says("."), end("I look Done.")]
    _, (case,) = imported(tmp_path, "cursor", written(tmp_path / "s.jsonl", lines))
    assert spoken(case["embedded_trace"]) == [
        ("user", "Fix it", None), ("assistant", "I look", "read"), ("tool", {"content": "x"}, None),
        ("assistant", "Done.", None),
    ]  # fmt: skip


def test_whole_texts_without_pieces_are_turns_of_their_own(tmp_path):
    lines = [
        START,
        ASKED,
        says("First.", 1, model_call_id="a"),
        says("Then.", 2, model_call_id="b"),
        end("First.Then."),
    ]
    _, (case,) = imported(tmp_path, "cursor", written(tmp_path / "s.jsonl", lines))
    assert [message["content"] for message in case["embedded_trace"]["messages"]] == ["Fix it", "First.", "Then."]


def test_a_result_alone_is_the_answer_or_the_error(tmp_path):
    path = written(tmp_path / "s.jsonl", [end("Done."), {**end("no credits"), "session_id": "t", "is_error": True}])
    assert detected(head_of(path)) == "cursor"
    one = written(tmp_path / "one.json", [end("Done.")])
    _, (case,) = imported(tmp_path / "x", "cursor", one)
    assert case["embedded_trace"]["output"]["final_answer"] == "Done."
    failed = written(tmp_path / "two.json", [{**end("no credits"), "is_error": True}])
    _, (case,) = imported(tmp_path / "y", "cursor", failed)
    assert case["embedded_trace"]["error"]["message"] == "no credits"
