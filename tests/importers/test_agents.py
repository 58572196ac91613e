"""Transcripts of coding agents: turns, calls, tokens, subagents and what ends a session."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from unittest.mock import ANY

import pytest

from evalwright.errors import InputError
from evalwright.importers.pricing import ListPricing
from evalwright.registry import load
from importers.transcripts import AT, imported, session_line, spoken, used, written
from warm import run

CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}}
OTHER = {"type": "tool_use", "id": "t2", "name": "Grep", "input": {"pattern": "b"}}


def result(id: str, content: object, **more: object) -> list[dict[str, object]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": content, **more}]


# ---------------------------------------------------------------- Claude Code


def claude(folder: Path, lines: list, **more: object):
    done, cases = imported(folder, "claude-code", written(folder / "session.jsonl", lines), **more)
    return done, cases[0]["embedded_trace"], cases[0]


@pytest.mark.parametrize(("sessions", "name"), [(["first"], "first"), (["first", "second"], "out")])
def test_a_suite_is_named_after_its_only_file_or_its_folder(tmp_path: Path, sessions: list[str], name: str) -> None:
    lines = [session_line(0, "user", "why?"), session_line(1, "assistant", "Because.", "m1")]
    imported(tmp_path, "claude-code", *(written(tmp_path / f"{session}.jsonl", lines) for session in sessions))
    assert f"name: {name}\n" in (tmp_path / "out" / "eval.yaml").read_text()


def test_lines_of_one_message_are_one_turn_wherever_results_stand(tmp_path):
    lines = [
        session_line(0, "user", "why?"),
        session_line(1, "assistant", [{"type": "thinking", "thinking": "hm"}], "m1", message=used(10, 1)),
        session_line(2, "assistant", [{"type": "text", "text": "I look."}, CALL], "m1", message=used(10, 5)),
        session_line(3, "user", result("t1", [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}])),
        session_line(4, "assistant", [OTHER], "m1", message=used(10, 9)),
        session_line(5, "user", result("t2", '{"hits": 2}', is_error=True)),
        session_line(6, "assistant", [{"type": "text", "text": "Because."}], "m2", message=used(3, 2)),
    ]
    _, trace, case = claude(tmp_path, lines)
    assert spoken(trace) == [
        ("user", "why?", None),
        ("assistant", "I look.", "Read"),
        ("assistant", None, "Grep"),
        ("tool", "A\nB", None),
        ("tool", {"hits": 2}, None),
        ("assistant", "Because.", None),
    ]
    assert trace["messages"][1]["thinking"] == "hm"
    assert (trace["metrics"]["token_input"], trace["metrics"]["token_output"]) == (13, 11)
    assert trace["metrics"]["cost_usd"] is None
    assert (case["id"], case["input"], trace["output"]["final_answer"]) == ("s", {"user_message": "why?"}, "Because.")
    assert trace["latency_ms"] == 6000
    tools = {span["name"]: span["status"] for span in trace["spans"] if span["kind"] == "tool"}
    assert tools == {"Read": "ok", "Grep": "error"}


def test_what_a_cache_read_or_wrote_was_read_by_the_model(tmp_path):
    usage = used(5, 1, cache_read_input_tokens=100, cache_creation_input_tokens=20)
    _, trace, _ = claude(tmp_path, [session_line(0, "assistant", "hi", "m", message=usage)])
    assert trace["metrics"]["token_input"] == 125
    assert trace["metrics"]["custom"] == {"cache_read_tokens": 100, "cache_write_tokens": 20}


def test_a_request_that_was_taken_back_is_left_out_with_all_below_it(tmp_path):
    lines = [
        session_line(0, "user", "hello"),
        session_line(1, "assistant", "Hello.", "m1", message=used(1, 1)),
        session_line(2, "user", "rewrite it"),
        session_line(3, "assistant", "Rewriting.", "m2", message=used(500, 50)),
        {**session_line(4, "user", "fix it"), "parentUuid": "u1"},
        session_line(5, "assistant", "Fixed.", "m3", message=used(2, 2)),
    ]
    done, trace, _ = claude(tmp_path, lines)
    assert [content for _, content, _ in spoken(trace)] == ["hello", "Hello.", "fix it", "Fixed."]
    assert trace["metrics"]["token_input"] == 3
    assert any("2 abandoned" in note for note in done.notes)


LEFT_OUT = {
    "an attachment": {"type": "attachment"},
    "the progress of a hook": {"type": "progress"},
    "a line of the tool itself": {"type": "user", "isMeta": True, "message": {"content": "Caveat"}},
}


@pytest.mark.parametrize("between", LEFT_OUT)
def test_what_was_taken_back_is_linked_through_lines_that_are_left_out(tmp_path, between):
    lines = [
        session_line(0, "user", "hello"),
        session_line(1, "assistant", "Hello.", "m1"),
        session_line(2, "user", "rewrite it"),
        {**session_line(3, "user", ""), **LEFT_OUT[between]},
        {**session_line(4, "user", ""), **LEFT_OUT[between]},
        session_line(5, "assistant", "Rewriting.", "m2"),
        {**session_line(6, "user", "fix it"), "parentUuid": "u1"},
        session_line(7, "assistant", "Fixed.", "m3"),
    ]
    _, trace, _ = claude(tmp_path, lines)
    assert [content for _, content, _ in spoken(trace)] == ["hello", "Hello.", "fix it", "Fixed."]


def test_attachments_are_counted_except_the_output_of_hooks(tmp_path):
    kinds = ("queued_command", "hook_success", "queued_command", "hook_additional_context")
    attached = [{"type": "attachment", "sessionId": "s", "attachment": {"type": kind}} for kind in kinds]
    done, _, _ = claude(tmp_path, [session_line(0, "user", "hello"), *attached])
    assert done.notes == ["lost: attachments of type 'queued_command': 2"]


def test_requests_without_an_id_take_nothing_back(tmp_path):
    lines = [
        session_line(0, "user", "hello"),
        session_line(1, "assistant", "Hello.", "m1"),
        {**session_line(2, "user", "and"), "uuid": None},
        {**session_line(2, "user", "then"), "uuid": None},
    ]
    _, trace, _ = claude(tmp_path, lines)
    assert [content for _, content, _ in spoken(trace)] == ["hello", "Hello.", "and", "then"]


@pytest.mark.parametrize("linked", [True, False])
def test_each_subagent_without_a_name_begins_with_its_request(tmp_path, linked):
    def below(number: int, kind: str, text: str, parent: int | None) -> dict:
        parent_id = f"u{parent}" if linked and parent is not None else None
        return {**session_line(number, kind, text), "isSidechain": True, "parentUuid": parent_id}

    lines = [
        session_line(0, "user", "go"),
        below(1, "user", "look", None), below(2, "assistant", "Seen.", 1), below(3, "user", "seek", None),
        below(4, "assistant", "Found.", 3), below(5, "assistant", "And that.", 4),
    ]  # fmt: skip
    if linked:
        lines.insert(4, lines.pop(2))  # the two run at the same time
    _, trace, _ = claude(tmp_path, lines)
    agents = {span["name"]: span["output"]["messages"] for span in trace["spans"] if span["kind"] == "agent"}
    assert {name: [said["content"] for said in its] for name, its in agents.items()} == {
        "subagent": ["look", "Seen."],
        "subagent 2": ["seek", "Found.", "And that."],
    }


SUBAGENTS = {
    "in a file beside it": "subagents/agent-a7.jsonl",
    "of its own folder": "session/subagents/agent-a7.jsonl",
    "of a workflow": "session/subagents/workflows/wf/agent-a7.jsonl",
    "of older versions": "agent-a7.jsonl",
}


@pytest.mark.parametrize("where", ["in the session", *SUBAGENTS])
def test_a_subagent_is_a_span_and_its_tokens_count(tmp_path, where):
    main = [session_line(0, "user", "go"), session_line(1, "assistant", "Done.", "m1", message=used(1, 1))]
    below = [
        {**session_line(2, "user", "look"), "isSidechain": True, "agentId": "a7", "parentUuid": None},
        {**session_line(3, "assistant", "Seen.", "s1", message=used(40, 4)), "isSidechain": True, "agentId": "a7"},
    ]
    if where == "in the session":
        main += below
    else:
        written(tmp_path / SUBAGENTS[where], below)
    _, trace, _ = claude(tmp_path, main)
    assert [content for _, content, _ in spoken(trace)] == ["go", "Done."]
    (agent,) = [span for span in trace["spans"] if span["kind"] == "agent"]
    assert agent["name"] == "a7"
    assert [message["content"] for message in agent["output"]["messages"]] == ["look", "Seen."]
    assert trace["metrics"]["token_input"] == 41


@pytest.mark.parametrize(
    ("end", "error", "stopped"),
    [
        ({"subtype": "success", "is_error": False, "result": "All."}, None, None),
        ({"subtype": "error_max_turns", "is_error": True}, None, "max_turns"),
        ({"subtype": "error_during_execution", "is_error": True, "errors": ["boom"]}, "agent_error", None),
    ],
)
def test_the_last_line_of_a_stream_says_how_it_ended(tmp_path, end, error, stopped):
    stream = [
        {"type": "system", "subtype": "init", "session_id": "x", "model": "m"},
        {"type": "assistant", "session_id": "x", "message": {"id": "m1", "content": [{"type": "text", "text": "So."}]}},
        {
            "type": "result", "session_id": "x", "duration_ms": 70, "total_cost_usd": 0.5, "usage": {"input_tokens": 9},
            **end,
        },
    ]  # fmt: skip
    _, trace, _ = claude(tmp_path, stream)
    assert (trace["error"] and trace["error"]["type"], trace["extra"].get("stopped")) == (error, stopped)
    assert trace["output"]["final_answer"] == ("All." if "result" in end else "So.")
    assert (trace["latency_ms"], trace["metrics"]["cost_usd"], trace["metrics"]["token_input"]) == (70, 0.5, 9)


@pytest.mark.parametrize(("broke", "error"), [(True, "api_error"), (False, None)])
def test_what_the_tool_says_in_the_name_of_the_assistant_is_no_answer(tmp_path, broke, error):
    own = {"message": {"model": "<synthetic>", **used(0, 0)}}
    failed = [session_line(2, "assistant", "API Error: 529", "m2", isApiErrorMessage=True, **own)] if broke else []
    lines = [
        session_line(0, "user", "fix"),
        session_line(1, "assistant", "Fixed.", "m1", message={"model": "m", **used(5, 2)}),
        *failed,
        session_line(3, "assistant", [{"type": "text", "text": "No response requested."}], "m3", **own),
    ]
    done, (case,) = imported(tmp_path, "claude-code", written(tmp_path / "s.jsonl", lines))
    trace = case["embedded_trace"]
    assert (trace["output"]["final_answer"], trace["extra"]["models"]) == ("Fixed.", ["m"])
    assert (trace["error"] and trace["error"]["type"]) == error
    assert "lost: messages of the assistant that the tool wrote itself: 1" in done.notes


def test_sessions_whose_lines_are_mixed_are_cases_of_their_own(tmp_path):
    lines = [
        session_line(0, "user", "one"),
        {**session_line(0, "user", "two"), "sessionId": "other", "uuid": "o0"},
        session_line(1, "assistant", "1", "m1"),
        {**session_line(1, "assistant", "2", "m2"), "sessionId": "other", "uuid": "o1"},
    ]
    first = written(tmp_path / "first.jsonl", [{**line, "sessionId": "before"} for line in lines[::2]])
    pricing = ListPricing(lambda *_: 1.0, "a table")
    files = [first, written(tmp_path / "log.jsonl", lines)]
    done = load("importers", "claude-code").import_files(files, tmp_path / "out", None, pricing)
    before, *cases = map(json.loads, (tmp_path / "out" / "cases.jsonl").read_text().splitlines())
    assert (before["id"], done.traces) == ("before", 3)
    assert [note for note in done.notes if "tokens" in note] == ["3 recordings without tokens: the cost is unknown"]
    assert {case["id"]: case["embedded_trace"]["output"]["final_answer"] for case in cases} == {"s": "1", "other": "2"}


def test_a_folder_of_projects_is_read_whatever_else_it_holds(tmp_path):
    """As Claude Code leaves it: indices, journals of workflows, sessions without messages, subagents left behind."""
    folder = tmp_path / "projects"
    session = [session_line(0, "user", "go"), session_line(1, "assistant", "Done.", "m1")]
    below = [{**line, "isSidechain": True, "agentId": "a7", "uuid": f"b{line['uuid']}"} for line in session]
    written(folder / "s.jsonl", session)
    written(folder / "s/subagents/workflows/wf/agent-a7.jsonl", [{**line, "sessionId": "s#agent-a7"} for line in below])
    written(folder / "s/subagents/workflows/wf/journal.jsonl", [{"type": "result", "agentId": "a7", "result": "x"}])
    written(folder / "agent-a8.jsonl", [{**line, "sessionId": "gone"} for line in below])
    written(folder / "idle.jsonl", [{"type": "queue-operation", "sessionId": "idle", "operation": "enqueue"}])
    (folder / "sessions-index.json").write_text('{"version": 1, "entries": []}')
    done = run(["-m", "evalwright", "import", "projects", "--out", "out"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 files of other formats in the folder left out" in done.stdout
    assert "lost: files of subagents without the file of their session: 1" in done.stdout
    assert "lost: files without messages: 1" in done.stdout
    (case,) = map(json.loads, (tmp_path / "out" / "cases.jsonl").read_text().splitlines())
    assert [span["name"] for span in case["embedded_trace"]["spans"] if span["kind"] == "agent"] == ["a7"]


def test_files_without_any_message_are_a_mistake(tmp_path):
    below = {**session_line(0, "user", "look"), "isSidechain": True}
    agent = written(tmp_path / "agent-a7.jsonl", [below])
    idle = written(tmp_path / "idle.jsonl", [{"type": "queue-operation", "sessionId": "idle"}])
    with pytest.raises(InputError, match="is of a subagent: import the file of its session"):
        imported(tmp_path, "claude-code", agent)
    with pytest.raises(InputError, match="has no messages to import"):
        imported(tmp_path, "claude-code", idle)


def test_the_subagents_of_each_session_in_a_file_are_its_own(tmp_path):
    def session(name):
        lines = [session_line(0, "user", "go"), session_line(1, "assistant", "Done.", "m1")]
        return [{**line, "sessionId": name, "uuid": f"{name}{line['uuid']}", "parentUuid": None} for line in lines]

    for name in ("log", "other"):
        about = {"isSidechain": True, "agentId": f"of {name}"}
        below = [{**line, **about, "uuid": f"b{line['uuid']}"} for line in session(name)]
        written(tmp_path / "log" / "subagents" / f"agent-{name}.jsonl", below)
    file = written(tmp_path / "log.jsonl", [*session("log"), *session("other")])
    _, cases = imported(tmp_path, "claude-code", file)
    named = {case["id"]: case["embedded_trace"]["spans"][-1]["name"] for case in cases}
    assert named == {"log": "of log", "other": "of other"}


def test_each_of_several_sessions_has_only_its_own_subagents_of_a_folder_beside_them(tmp_path):
    def session(name: str) -> list:
        lines = [session_line(0, "user", name), session_line(1, "assistant", name, f"m{name}", message=used(1, 1))]
        return [{**line, "sessionId": name} for line in lines]

    files = [written(tmp_path / f"{name}.jsonl", session(name)) for name in "abc"]
    for name in ("a", "b", "gone"):
        about = {"isSidechain": True, "agentId": f"of {name}"}
        below = [{**line, **about, "uuid": f"below {line['uuid']}"} for line in session(name)]
        first = {"type": "queue-operation", "operation": "enqueue", "sessionId": name}
        written(tmp_path / "subagents" / f"agent-{name}.jsonl", [first, *below])
    _, cases = imported(tmp_path, "claude-code", *files)
    read = {case["id"]: case["embedded_trace"]["metrics"]["token_input"] for case in cases}
    assert read == {"a": 2, "b": 2, "c": 1}


def test_a_forked_session_keeps_the_conversation_and_counts_its_own_turns(tmp_path):
    copied = {"forkedFrom": {"sessionId": "other", "messageUuid": "u"}}
    lines = [
        session_line(0, "user", "go", **copied),
        session_line(1, "assistant", "Looking.", "m1", message=used(100, 9), costUSD=1.0, **copied),
        session_line(5, "user", "on"),
        session_line(7, "assistant", "Done.", "m2", message=used(30, 2), costUSD=0.5),
    ]
    _, trace, _ = claude(tmp_path, lines)
    assert [content for _, content, _ in spoken(trace)] == ["go", "Looking.", "on", "Done."]
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["cost_usd"], trace["latency_ms"]) == (30, 0.5, 2000)


def test_two_files_of_one_session_are_its_trials(tmp_path):
    files = [
        written(tmp_path / name, [session_line(0, "user", "q"), session_line(1, "assistant", name, "m")])
        for name in ("a.jsonl", "b.jsonl")
    ]
    done, (case,) = imported(tmp_path, "claude-code", *files)
    assert done.trials == 2
    assert [trace["output"]["final_answer"] for trace in case["embedded_trace"]] == ["a.jsonl", "b.jsonl"]


def test_a_line_that_breaks_off_at_the_end_is_dropped_with_a_warning_and_only_there(tmp_path):
    whole = json.dumps(session_line(0, "assistant", "hi", "m"))
    cut = tmp_path / "cut.jsonl"
    cut.write_text(whole + '\n{"type": "assis')
    _, (case,) = imported(tmp_path, "claude-code", cut)
    assert case["embedded_trace"]["extra"]["warnings"]
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"type": "assis\n' + whole + "\n[]\n")
    with pytest.raises(InputError) as caught:
        imported(tmp_path / "other", "claude-code", broken)
    assert [(problem.line, "JSON" in problem.message) for problem in caught.value.problems] == [(1, True), (3, True)]
    assert not (tmp_path / "other" / "out").exists()


def test_packed_files_are_read(tmp_path):
    packed = tmp_path / "session.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(session_line(0, "assistant", "hi", "m")).encode()))
    _, (case,) = imported(tmp_path, "claude-code", packed)
    assert case["embedded_trace"]["output"]["final_answer"] == "hi"


def test_lines_of_unknown_types_are_counted(tmp_path):
    lines = [session_line(0, "assistant", "hi", "m"), *({"type": "weather", "sessionId": "s"} for _ in range(3))]
    done, _, _ = claude(tmp_path, lines)
    assert any("'weather'" in note and "3" in note for note in done.notes)


# ---------------------------------------------------------------- Codex


def test_parts_of_a_line_with_other_types_are_told(tmp_path):
    hidden = {"type": "redacted_thinking", "data": "x"}
    said = session_line(1, "assistant", [hidden, {"type": "text", "text": "a"}], "m", message={
        "usage": {"input_tokens": "7", "output_tokens": -3, "cache_read_input_tokens": 4}})  # fmt: skip
    bare = {"type": "assistant", "sessionId": "s"}
    done, trace, _ = claude(tmp_path, [session_line(0, "user", "q"), said, bare])
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"]) == (4, None)
    assert {note for note in done.notes if note.startswith("lost")} == {
        "lost: blocks of redacted thinking: 1",
        "lost: token counts that are not whole numbers: 2",
        "lost: lines of type 'assistant' without a message: 1",
    }
    with pytest.raises(InputError, match="expected text or blocks") as caught:
        claude(tmp_path / "other", [session_line(0, "user", "q"), {**bare, "message": 3}])
    assert [problem.line for problem in caught.value.problems] == [2]


# ---------------------------------------------------------------- Gemini CLI, Copilot CLI


def test_pieces_of_a_message_are_one_text(tmp_path):
    lines = [
        {"type": "init", "timestamp": AT.format(0), "session_id": "g", "model": "m"},
        {"type": "message", "timestamp": AT.format(0), "role": "user", "content": "go"},
        *({"type": "message", "role": "assistant", "content": part, "delta": True} for part in ("I ", "look.")),
        {"type": "tool_use", "tool_name": "sh", "tool_id": "c", "parameters": {"x": 1}},
        {"type": "tool_result", "tool_id": "c", "status": "error", "error": {"message": "denied"}},
        {"type": "result", "status": "success", "stats": {"input_tokens": 4, "output_tokens": 2, "duration_ms": 9}},
    ]
    _, (case,) = imported(tmp_path, "gemini", written(tmp_path / "out.jsonl", lines))
    trace = case["embedded_trace"]
    assert spoken(trace) == [("user", "go", None), ("assistant", "I look.", "sh"), ("tool", "denied", None)]
    assert (trace["latency_ms"], trace["metrics"]["token_input"], case["id"]) == (9, 4, "g")


@pytest.mark.parametrize(
    ("document", "answer", "failure"),
    [
        ({"error": {"type": "Quota", "message": "none left"}}, None, ("agent_error", "none left")),
        ({"session_id": "g", "response": "Yes", "stats": {}}, "Yes", None),
    ],
)
def test_a_document_of_gemini_is_none_of_its_streams(tmp_path, document, answer, failure):
    (tmp_path / "out.json").write_text(json.dumps(document))
    _, (case,) = imported(tmp_path, "gemini", tmp_path / "out.json")
    trace = case["embedded_trace"]
    found = trace["error"] and (trace["error"]["type"], trace["error"]["message"])
    assert (trace["output"]["final_answer"], found) == (answer, failure)


def test_a_document_of_gemini_counts_the_tokens_of_each_model(tmp_path):
    def counted(**tokens: int) -> dict:
        return {"api": {"totalRequests": 1}, "tokens": tokens}

    models = {
        "pro": counted(input=30, prompt=100, candidates=20, total=158, cached=70, thoughts=30, tool=8),
        "flash": counted(input=10, prompt=10, candidates=2, total=12, cached=0, thoughts=0, tool=0),
    }
    document = {"session_id": "g", "response": "Yes", "stats": {"models": models}}
    (tmp_path / "out.json").write_text(json.dumps(document))
    _, (case,) = imported(tmp_path, "gemini", tmp_path / "out.json")
    metrics = case["embedded_trace"]["metrics"]
    assert [metrics[f"token_{part}"] for part in ("input", "output", "thinking")] == [118, 52, 30]
    assert metrics["custom"] == {"cache_read_tokens": 70}
    assert case["id"] == "g"


@pytest.mark.parametrize("shape", ["flat", "events"])
def test_both_shapes_of_copilot_say_the_same(tmp_path, shape):
    flat = [
        {"type": "message", "role": "user", "content": "go"},
        {"type": "tool_use", "id": "c", "name": "sh", "input": {"x": 1}},
        {"type": "tool_result", "id": "c", "output": "ok"},
        {"type": "message", "role": "assistant", "content": "Done."},
        {"type": "result", "usage": {"input_tokens": 3, "output_tokens": 1}},
    ]
    events = [
        {"type": "user.message", "data": {"content": "go"}},
        {"type": "tool.execution_start", "data": {"toolCallId": "c", "toolName": "sh", "arguments": {"x": 1}}},
        {"type": "tool.execution_complete", "data": {"toolCallId": "c", "success": True, "result": {"content": "ok"}}},
        {"type": "assistant.message", "data": {"content": "Done."}},
        {"type": "result", "usage": {"inputTokens": 3, "outputTokens": 1}},
    ]
    lines = flat if shape == "flat" else events
    _, (case,) = imported(tmp_path, "copilot", written(tmp_path / "out.jsonl", lines))
    trace = case["embedded_trace"]
    assert [content for _, content, _ in spoken(trace)] == ["go", None, "ok", "Done."]
    assert [call["arguments"] for call in trace["tool_calls"]] == [{"x": 1}]
    assert trace["metrics"]["token_input"] == 3


def kept(second, kind, agent=None, **data):
    """A line of a session that Copilot keeps."""
    return {"type": kind, "data": data, "id": f"e{second}", "timestamp": AT.format(second), **(agent or {})}


def copilot_kept(id, prompt_names_its_agent):
    by = {"agentId": "agent-1"}
    task = {"toolCallId": "t1", "name": "task", "arguments": {"prompt": "Count"}}
    look = {"toolCallId": "t2", "name": "bash", "arguments": '{"command": "ls"}'}
    usage = {"inputTokens": 100, "outputTokens": 20, "cacheReadTokens": 70, "cacheWriteTokens": 5, "reasoningTokens": 3}
    return [
        kept(0, "session.start", sessionId=id, selectedModel="m"),
        kept(1, "system.message", content="Be brief", role="system"), kept(2, "user.message", content="go"),
        kept(3, "assistant.message", content="I look.", reasoningText="Hm", model="m", toolRequests=[task, look],
             outputTokens=9),
        kept(4, "tool.execution_start", toolCallId="t1", toolName="task", arguments=task["arguments"]),
        kept(5, "subagent.started", by, toolCallId="t1", agentName="explore", agentDisplayName="Explorer"),
        kept(6, "user.message", by if prompt_names_its_agent else None, content="Count"),
        kept(7, "assistant.message", *([by] if prompt_names_its_agent else [None]), content="Two.", outputTokens=4,
             **({} if prompt_names_its_agent else {"parentToolCallId": "t1"})),
        kept(8, "tool.execution_complete", toolCallId="t1", success=True, result={"content": "Two."}),
        kept(9, "tool.execution_complete", toolCallId="t2", success=False, error={"message": "denied"}),
        kept(10, "assistant.turn_end", turnId="0"), kept(11, "hologram"),
        kept(12, "assistant.message", content="Done.", outputTokens=2),
        kept(13, "session.shutdown", modelMetrics={"m": {"usage": usage}}),
    ]  # fmt: skip


@pytest.mark.parametrize("prompt_names_its_agent", [True, False])
def test_sessions_that_copilot_keeps_are_named_by_themselves_and_have_their_subagents_apart(
    tmp_path, prompt_names_its_agent
):
    lines = copilot_kept("one", prompt_names_its_agent)
    files = [written(tmp_path / "one" / "events.jsonl", lines),
             written(tmp_path / "two" / "events.jsonl", copilot_kept("two", True)[:-1])]  # fmt: skip
    done, (case, other) = imported(tmp_path, "copilot", *files)
    trace = case["embedded_trace"]
    assert (case["id"], other["id"], case["input"]) == ("one", "two", {"user_message": "go"})
    assert "name: copilot" in (tmp_path / "out" / "eval.yaml").read_text()
    assert spoken(trace) == [
        ("system", "Be brief", None), ("user", "go", None), ("assistant", "I look.", "task"),
        ("assistant", None, "bash"), ("tool", "Two.", None), ("tool", "denied", None), ("assistant", "Done.", None),
    ]  # fmt: skip
    (agent,) = [span for span in trace["spans"] if span["kind"] == "agent"]
    assert (agent["name"], [one["content"] for one in agent["output"]["messages"]]) == ("Explorer", ["Count", "Two."])
    found = trace["metrics"]
    assert (found["token_input"], found["token_output"], found["token_thinking"]) == (100, 20, 3)
    assert found["custom"] == {"cache_read_tokens": 70, "cache_write_tokens": 5, "failed_tool_results": 1}
    assert (trace["messages"][2]["thinking"], trace["extra"]["models"]) == ("Hm", ["m"])
    assert other["embedded_trace"]["metrics"]["token_output"] == 15
    assert [note for note in done.notes if "lines of type" in note] == ["lost: lines of type 'hologram': 2"]


def test_a_session_of_copilot_that_was_stopped_is_an_error_unless_it_went_on(tmp_path):
    lines = [*copilot_kept("one", True)[:4], kept(20, "abort", reason="user initiated")]
    _, (case,) = imported(tmp_path, "copilot", written(tmp_path / "a.jsonl", lines))
    assert case["embedded_trace"]["error"]["type"] == "aborted"
    lines.append(kept(21, "assistant.message", content="Again."))
    _, (case,) = imported(tmp_path / "b", "copilot", written(tmp_path / "b.jsonl", lines))
    assert case["embedded_trace"]["error"] is None


# ---------------------------------------------------------------- What all of them share


def test_sessions_one_after_another_in_one_file_are_cases_of_their_own(tmp_path):
    def codex_session(name):
        item = {"id": "item_0", "type": "agent_message", "text": f"Done {name}."}
        return [{"type": "thread.started", "thread_id": name}, {"type": "item.completed", "item": item}]

    def gemini_session(name):
        said = {"type": "message", "role": "assistant", "content": f"Done {name}."}
        return [{"type": "init", "session_id": name}, said, {"type": "result", "status": "success", "stats": {}}]

    def copilot_session(name):
        said = {"type": "assistant.message", "data": {"content": f"Done {name}."}}
        return [said, {"type": "result", "sessionId": name, "exitCode": 0}]

    for format, session in {"codex": codex_session, "gemini": gemini_session, "copilot": copilot_session}.items():
        file = written(tmp_path / format / "log.jsonl", [*session("a"), *session("b")])
        _, cases = imported(tmp_path / format, format, file)
        answers = {case["id"]: case["embedded_trace"]["output"]["final_answer"] for case in cases}
        assert answers == {"a": "Done a.", "b": "Done b."}, format


def test_what_a_session_of_gemini_counted_before_it_went_on_is_added(tmp_path):
    def part(status):
        stats = {"input_tokens": 4, "output_tokens": 2, "duration_ms": 9}
        said = {"type": "message", "role": "assistant", "content": status}
        return [{"type": "init", "session_id": "g"}, said, {"type": "result", "status": status, "stats": stats}]

    _, (case,) = imported(tmp_path, "gemini", written(tmp_path / "g.jsonl", [*part("error"), *part("success")]))
    trace = case["embedded_trace"]
    assert (trace["metrics"]["token_input"], trace["latency_ms"], trace["error"]) == (8, 18, None)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_stream_may_be_the_list_of_a_document(tmp_path, indent):
    """What `claude -p --output-format json --verbose` prints, and actions in CI keep."""
    end = {"type": "result", "subtype": "success", "session_id": "x", "result": "4", "total_cost_usd": 0.5}
    said = {"type": "assistant", "session_id": "x", "message": {"id": "m", "content": [CALL]}}
    file = tmp_path / "execution.json"
    for stream in ([said, end], end):
        file.write_text(json.dumps(stream, indent=indent))
        done = run(["-m", "evalwright", "import", file.name, "--out", f"out{type(stream).__name__}"], cwd=tmp_path)
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "format: claude-code (detected)")
        (case,) = map(json.loads, (tmp_path / f"out{type(stream).__name__}/cases.jsonl").read_text().splitlines())
        trace = case["embedded_trace"]
        assert (trace["output"]["final_answer"], trace["metrics"]["cost_usd"]) == ("4", 0.5)
        assert [call["name"] for call in trace["tool_calls"]] == (["Read"] if isinstance(stream, list) else [])
    file.write_text(json.dumps([said, 7, {**said, "message": 5}], indent=1))
    with pytest.raises(InputError) as raised:
        imported(tmp_path / "bad", "claude-code", file)
    at = file.read_text().splitlines().index(" 7,") + 1
    assert (raised.value.problems[0].line, raised.value.problems[0].message) == (at, "expected a JSON object")


def test_a_result_without_messages_is_an_answer(tmp_path):
    """What `claude -p --output-format json` prints."""
    end = {"type": "result", "subtype": "success", "session_id": "x", "result": "4", "usage": {"input_tokens": 9}}
    _, trace, case = claude(tmp_path, [end])
    assert (case["id"], trace["output"]["final_answer"], trace["metrics"]["token_input"]) == ("x", "4", 9)


def test_the_result_of_a_call_that_is_not_there_is_kept_with_a_warning(tmp_path):
    """A session that was compacted begins behind its calls: nothing else of it is lost for that."""
    lines = [
        session_line(0, "user", result("gone", "42")),
        session_line(1, "assistant", [{"type": "text", "text": "It is 42."}], "m1"),
    ]
    _, trace, _ = claude(tmp_path, lines)
    assert spoken(trace) == [("tool", "42", None), ("assistant", "It is 42.", None)]
    assert trace["extra"]["warnings"] == ["line 1: the result of a missing call: 'gone'"]


def test_costs_are_worked_out_only_where_asked_and_of_one_model_with_a_price(tmp_path):
    def priced(name: str, *models: str) -> tuple[object, object]:
        lines = [
            session_line(i, "assistant", str(i), f"m{i}", message={"model": model, **used(1_000_000, 100_000)})
            for i, model in enumerate(models)
        ]
        place = written(tmp_path / name / "s.jsonl", lines)
        pricing = ListPricing(lambda model, *tokens: 3.0 * tokens[0] / 1e6 if model == "known" else None, "a table")
        done = load("importers", "claude-code").import_files([place], tmp_path / name / "out", None, pricing)
        [case] = map(json.loads, (tmp_path / name / "out" / "cases.jsonl").read_text().splitlines())
        trace = case["embedded_trace"]
        return trace["metrics"]["cost_usd"], trace["extra"].get("cost_from"), done.notes[-1]

    assert priced("one", "known", "known")[:2] == (6.0, "a table: known")
    assert priced("two", "known", "other") == (None, None, ANY)
    assert (
        priced("none", "nobody's")[2] == '1 recording of the model "nobody\'s", which has no price: the cost is unknown'
    )
