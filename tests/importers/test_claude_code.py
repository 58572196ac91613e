"""Sessions of Claude Code: turns, calls, tokens, requests that were taken back, and what ends a session."""

from __future__ import annotations

import json

import pytest

from evalwright.errors import InputError
from importers.transcripts import claude_session, imported, session_line, spoken, tool_result, used, written
from warm import run

CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}}


OTHER = {"type": "tool_use", "id": "t2", "name": "Grep", "input": {"pattern": "b"}}


def test_lines_of_one_message_are_one_turn_wherever_results_stand(tmp_path):
    lines = [
        session_line(0, "user", "why?"),
        session_line(1, "assistant", [{"type": "thinking", "thinking": "hm"}], "m1", message=used(10, 1)),
        session_line(2, "assistant", [{"type": "text", "text": "I look."}, CALL], "m1", message=used(10, 5)),
        session_line(3, "user", tool_result("t1", [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}])),
        session_line(4, "assistant", [OTHER], "m1", message=used(10, 9)),
        session_line(5, "user", tool_result("t2", '{"hits": 2}', is_error=True)),
        session_line(6, "assistant", [{"type": "text", "text": "Because."}], "m2", message=used(3, 2)),
    ]
    _, trace, case = claude_session(tmp_path, lines)
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
    _, trace, _ = claude_session(tmp_path, [session_line(0, "assistant", "hi", "m", message=usage)])
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
    done, trace, _ = claude_session(tmp_path, lines)
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
    _, trace, _ = claude_session(tmp_path, lines)
    assert [content for _, content, _ in spoken(trace)] == ["hello", "Hello.", "fix it", "Fixed."]


def test_attachments_are_counted_except_the_output_of_hooks(tmp_path):
    kinds = ("queued_command", "hook_success", "queued_command", "hook_additional_context")
    attached = [{"type": "attachment", "sessionId": "s", "attachment": {"type": kind}} for kind in kinds]
    done, _, _ = claude_session(tmp_path, [session_line(0, "user", "hello"), *attached])
    assert done.notes == ["lost: attachments of type 'queued_command': 2"]


def test_requests_without_an_id_take_nothing_back(tmp_path):
    lines = [
        session_line(0, "user", "hello"),
        session_line(1, "assistant", "Hello.", "m1"),
        {**session_line(2, "user", "and"), "uuid": None},
        {**session_line(2, "user", "then"), "uuid": None},
    ]
    _, trace, _ = claude_session(tmp_path, lines)
    assert [content for _, content, _ in spoken(trace)] == ["hello", "Hello.", "and", "then"]


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
    _, trace, _ = claude_session(tmp_path, stream)
    assert (trace["error"] and trace["error"]["type"], trace["extra"].get("stopped")) == (error, stopped)
    assert trace["output"]["final_answer"] == ("All." if "result" in end else "So.")
    assert (trace["latency_ms"], trace["metrics"]["cost_usd"], trace["metrics"]["token_input"]) == (70, 0.5, 9)


@pytest.mark.parametrize(
    ("cost", "by_models", "total"),
    [(0.75, 69, 0.75), (0.75, 12, 1.25), (0.25, 12, 0.75), (0.75, None, 0.75), (0.25, None, 0.75)],
    ids=["one program", "another program", "a cheaper one", "one, without models", "a cheaper one, without models"],
)
def test_the_results_of_several_requests_are_added(tmp_path, cost, by_models, total):
    def end(cost: float, written: int, by_models: int | None, **more: int) -> dict:
        models = {} if by_models is None else {"modelUsage": {"m": {"outputTokens": by_models}}}
        usage = {"input_tokens": 100, "output_tokens": written}
        return {"type": "result", "session_id": "x", "total_cost_usd": cost, "usage": usage, **models, **more}

    def said(id: str) -> dict:
        message = {"id": id, "content": [{"type": "text", "text": "So."}]}
        return {"type": "assistant", "session_id": "x", "message": message}

    first = end(0.5, 57, None if by_models is None else 57, duration_ms=70, num_turns=4)
    _, trace, _ = claude_session(
        tmp_path, [said("m1"), first, said("m2"), end(cost, 12, by_models, duration_ms=30, num_turns=1)]
    )
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["cost_usd"]) == (200, 69, total)
    assert (trace["latency_ms"], trace["extra"]["num_turns"]) == (100, 5)


STOPPED = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]


@pytest.mark.parametrize("stop", ["[Request interrupted by user]", STOPPED])
def test_a_session_that_the_user_stopped_is_an_error_unless_it_goes_on(tmp_path, stop):
    begun = [
        session_line(0, "user", "fix"),
        session_line(1, "assistant", "Looking.", "m1"),
        session_line(2, "user", stop),
        session_line(3, "assistant", "No response requested.", "m2", message={"model": "<synthetic>"}),
    ]
    assert claude_session(tmp_path / "a", begun)[1]["error"]["type"] == "aborted"
    gone_on = [*begun, session_line(4, "user", "go on"), session_line(5, "assistant", "Fixed.", "m3")]
    assert claude_session(tmp_path / "b", gone_on)[1]["error"] is None


@pytest.mark.parametrize("stop", ["[Request interrupted by user]", STOPPED])
def test_a_stop_is_no_request_of_a_stream_which_has_none_of_its_own(tmp_path, stop):
    _, trace, case = claude_session(
        tmp_path, [session_line(0, "assistant", "Looking.", "m1"), session_line(1, "user", stop)]
    )
    assert (case["input"]["user_message"], [message["role"] for message in trace["messages"]]) == (
        "", ["assistant", "user"],
    )  # fmt: skip


COMMAND = "<command-name>/model</command-name>\n<command-message>model</command-message>"


@pytest.mark.parametrize(
    ("before", "sought"),
    [
        ([COMMAND, "<local-command-stdout>Set model</local-command-stdout>", "fix it"], "fix it"),
        ([COMMAND, "fix it"], "fix it"),
        (["<bash-input>ls</bash-input>", "<bash-stdout>a.py</bash-stdout>", "fix it"], "fix it"),
        ([COMMAND], COMMAND),
    ],
)
def test_what_the_user_has_the_tool_do_is_no_request_unless_the_model_replies_to_it(tmp_path, before, sought):
    lines = [session_line(number, "user", text) for number, text in enumerate(before)]
    last = len(lines)
    reply, thanks = session_line(last, "assistant", "Done.", "m1"), session_line(last + 1, "user", "thanks")
    _, trace, case = claude_session(tmp_path, [*lines, reply, thanks])
    assert case["input"]["user_message"] == sought
    assert len(trace["messages"]) == last + 2


def test_an_error_is_that_of_the_conversation_in_which_it_came_last(tmp_path):
    session = [session_line(0, "user", "fix"), session_line(1, "assistant", "Fixed.", "m1")]
    broken = session_line(2, "assistant", "API Error: 529", "m2", isApiErrorMessage=True)
    inner = {"isSidechain": True, "agentId": "a"}
    _, trace, _ = claude_session(tmp_path / "inner", [*session, {**broken, **inner}])
    assert (trace["error"], trace["spans"][-1]["status"], trace["spans"][-1]["error"]) == (
        None, "error", "API Error: 529",
    )  # fmt: skip
    _, trace, _ = claude_session(
        tmp_path / "main", [*session, broken, session_line(3, "assistant", "Found it.", "m3", **inner)]
    )
    assert (trace["error"]["type"], trace["spans"][-1]["status"]) == ("api_error", "unset")


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


def test_a_forked_session_keeps_the_conversation_and_counts_its_own_turns(tmp_path):
    copied = {"forkedFrom": {"sessionId": "other", "messageUuid": "u"}}
    lines = [
        session_line(0, "user", "go", **copied),
        session_line(1, "assistant", "Looking.", "m1", message=used(100, 9), costUSD=1.0, **copied),
        session_line(5, "user", "on"),
        session_line(7, "assistant", "Done.", "m2", message=used(30, 2), costUSD=0.5),
    ]
    _, trace, _ = claude_session(tmp_path, lines)
    assert [content for _, content, _ in spoken(trace)] == ["go", "Looking.", "on", "Done."]
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["cost_usd"], trace["latency_ms"]) == (30, 0.5, 2000)


def test_lines_of_unknown_types_are_counted(tmp_path):
    lines = [session_line(0, "assistant", "hi", "m"), *({"type": "weather", "sessionId": "s"} for _ in range(3))]
    done, _, _ = claude_session(tmp_path, lines)
    assert "lost: lines of type 'weather': 3" in done.notes


def test_parts_of_a_line_with_other_types_are_reported(tmp_path):
    hidden = {"type": "redacted_thinking", "data": "x"}
    line = session_line(1, "assistant", [hidden, {"type": "text", "text": "a"}], "m", message={
        "usage": {"input_tokens": "7", "output_tokens": -3, "cache_read_input_tokens": 4}})  # fmt: skip
    bare = {"type": "assistant", "sessionId": "s"}
    done, trace, _ = claude_session(tmp_path, [session_line(0, "user", "q"), line, bare])
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"]) == (4, None)
    assert {note for note in done.notes if note.startswith("lost")} == {
        "lost: blocks of redacted thinking: 1",
        "lost: token counts that are not whole numbers: 2",
        "lost: lines of type 'assistant' without a message: 1",
    }
    with pytest.raises(InputError, match="expected text or blocks") as caught:
        claude_session(tmp_path / "other", [session_line(0, "user", "q"), {**bare, "message": 3}])
    assert [problem.line for problem in caught.value.problems] == [2]


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
    _, trace, case = claude_session(tmp_path, [end])
    assert (case["id"], trace["output"]["final_answer"], trace["metrics"]["token_input"]) == ("x", "4", 9)


def test_the_result_of_a_call_that_is_not_there_is_kept_with_a_warning(tmp_path):
    """A session that was compacted begins behind its calls: nothing else of it is lost for that."""
    lines = [
        session_line(0, "user", tool_result("gone", "42")),
        session_line(1, "assistant", [{"type": "text", "text": "It is 42."}], "m1"),
    ]
    _, trace, _ = claude_session(tmp_path, lines)
    assert spoken(trace) == [("tool", "42", None), ("assistant", "It is 42.", None)]
    assert trace["extra"]["warnings"] == ["line 1: the result of a missing call: 'gone'"]
