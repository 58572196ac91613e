"""Transcripts of Codex: rollouts and streams, subagents and forks of a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.errors import InputError
from importers.transcripts import AT, imported, rollout_line, said, spoken, written

PARENT, CHILD = "019a0000-0000-7000-8000-000000000001", "019a0000-9000-7000-8000-000000000002"
"""Ids of Codex begin with the time of their creation."""
OWN_TURN, COPIED_TURN = "019a0000-9001-7000-8000-000000000003", "019a0000-0001-7000-8000-000000000004"


def codex(folder: Path, lines: list):
    done, cases = imported(folder, "codex", written(folder / "rollout.jsonl", lines))
    return done, cases[0]["embedded_trace"], cases[0]


def counted_tokens(second: int, read: int, written: int) -> dict:
    usage = {"input_tokens": read, "cached_input_tokens": 1, "output_tokens": written, "reasoning_output_tokens": 2}
    return rollout_line(second, "event_msg", {"type": "token_count", "info": {"total_token_usage": usage}})


def test_a_rollout_is_its_items_and_its_last_total_of_tokens(tmp_path):
    output = json.dumps({"output": "ok", "metadata": {"exit_code": 0}})
    lines = [
        rollout_line(0, "session_meta", {"id": "r1", "cwd": "/p"}),
        rollout_line(1, "response_item", said("user", "<environment_context>x</environment_context>")),
        rollout_line(2, "response_item", said("user", "fix")),
        rollout_line(3, "event_msg", {"type": "user_message", "message": "fix"}),
        rollout_line(4, "response_item", {"type": "reasoning", "summary": [{"text": "hm"}]}),
        rollout_line(5, "response_item", {"type": "function_call", "name": "sh", "arguments": "{no", "call_id": "c"}),
        counted_tokens(6, 10, 5),
        rollout_line(7, "response_item", {"type": "function_call_output", "call_id": "c", "output": output}),
        rollout_line(8, "response_item", said("assistant", "Fixed.")),
        counted_tokens(9, 30, 8),
    ]
    _, trace, case = codex(tmp_path, lines)
    assert (case["id"], case["input"]["user_message"]) == ("r1", "fix")
    assert spoken(trace)[2:] == [("assistant", None, "sh"), ("tool", "ok", None), ("assistant", "Fixed.", None)]
    assert trace["messages"][2]["thinking"] == "hm"
    assert trace["tool_calls"][0]["arguments"] == {"_raw": "{no"}
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (30, 8, 2)


def test_reasoning_without_a_summary_is_kept_itself(tmp_path):
    said_so = [{"type": "reasoning_text", "text": "hm"}]
    lines = [
        rollout_line(0, "response_item", said("user", "fix")),
        rollout_line(1, "response_item", {"type": "reasoning", "summary": [], "content": said_so}),
        rollout_line(2, "response_item", said("assistant", "Fixed.")),
    ]
    assert codex(tmp_path, lines)[1]["output"] == {"final_answer": "Fixed.", "thinking": "hm", "structured": None}


def test_an_old_rollout_without_items_is_what_its_events_say(tmp_path):
    lines = [
        rollout_line(0, "event_msg", {"type": "user_message", "message": "fix"}),
        rollout_line(1, "event_msg", {"type": "agent_message", "message": "Fixed."}),
    ]
    _, trace, _ = codex(tmp_path, lines)
    assert spoken(trace) == [("user", "fix", None), ("assistant", "Fixed.", None)]


@pytest.mark.parametrize(
    ("event", "error"), [({"type": "turn_aborted"}, "aborted"), ({"type": "error", "message": "x"}, "agent_error")]
)
def test_a_rollout_that_ends_badly_is_an_error_unless_it_goes_on(tmp_path, event, error):
    begun = [rollout_line(0, "response_item", said("user", "fix")), rollout_line(1, "event_msg", event)]
    assert codex(tmp_path / "a", begun)[1]["error"]["type"] == error
    gone_on = [*begun, rollout_line(2, "response_item", said("assistant", "Fixed."))]
    assert codex(tmp_path / "b", gone_on)[1]["error"] is None


def test_a_stream_of_codex_has_calls_that_never_ended(tmp_path):
    command = {"id": "i", "type": "command_execution", "command": "make"}
    lines = [
        {"type": "thread.started", "thread_id": "th"},
        {"type": "item.started", "item": command},
        {"type": "item.completed", "item": {**command, "aggregated_output": "no", "exit_code": 2}},
        {"type": "item.started", "item": {**command, "id": "j"}},
        {"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": 1}},
        {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 1}},
        {"type": "turn.failed", "error": {"message": "gone"}},
    ]
    _, trace, case = codex(tmp_path, lines)
    assert case["id"] == "th"
    assert [(call["id"], call["name"]) for call in trace["tool_calls"]] == [(id, "command_execution") for id in "ij"]
    assert [result["content"] for result in trace["tool_results"]] == ["no"]
    assert (trace["error"]["message"], trace["metrics"]["token_input"]) == ("gone", 12)


def test_searches_for_tools_and_calls_of_other_agents_are_calls(tmp_path):
    searched = {"type": "tool_search_call", "id": "x", "call_id": "c", "arguments": {"query": "calendar"}}
    found = {"type": "tool_search_output", "id": "y", "call_id": "c", "tools": [{"name": "list_events"}]}
    lines = [rollout_line(1, "response_item", searched), rollout_line(2, "response_item", found)]
    _, trace, _ = codex(tmp_path / "a", lines)
    assert [(call["name"], call["arguments"]) for call in trace["tool_calls"]] == [
        ("tool_search", {"query": "calendar"})
    ]
    assert [result["content"] for result in trace["tool_results"]] == [{"tools": [{"name": "list_events"}]}]
    spawned = {"id": "i", "type": "collab_tool_call", "tool": "spawn_agent", "prompt": "look", "agents_states": {}}
    waited = {"id": "j", "type": "collab_tool_call", "tool": "wait", "agents_states": {"t": {"status": "completed"}}}
    lines = [{"type": "thread.started", "thread_id": "th"}]
    lines += [{"type": "item.completed", "item": item} for item in (spawned, waited)]
    done, trace, _ = codex(tmp_path / "b", lines)
    assert [(tool_call["name"], tool_call["arguments"]) for tool_call in trace["tool_calls"]] == [
        ("spawn_agent", {"prompt": "look"}),
        ("wait", {}),
    ]
    assert [tool_result["content"] for tool_result in trace["tool_results"]] == [
        {"agents_states": waited["agents_states"]}
    ]
    assert done.notes == []


def test_a_session_that_is_continued_in_its_file_stays_one_case(tmp_path):
    begun = {"type": "item.started", "item": {"id": "item_0", "type": "command_execution", "command": "make"}}
    ended = {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "Stopped."}}
    started = {"type": "thread.started", "thread_id": "th"}
    _, trace, _ = codex(tmp_path, [started, begun, started, ended])
    assert [call["arguments"] for call in trace["tool_calls"]] == [{"command": "make"}], "numbered anew"


@pytest.mark.parametrize(
    ("continued", "total"),
    [((650, 69), (650, 69)), ((200, 12), (650, 69))],
    ids=["total of the thread", "of the new turn alone"],
)
def test_tokens_of_a_continued_stream_are_counted_once(tmp_path, continued, total):
    def turn(read: int, written: int) -> list:
        usage = {"input_tokens": read, "output_tokens": written}
        spoken_item = {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "Done."}}
        return [{"type": "thread.started", "thread_id": "th"}, spoken_item, {"type": "turn.completed", "usage": usage}]

    _, trace, _ = codex(tmp_path, [*turn(450, 57), *turn(*continued)])
    assert (trace["metrics"]["token_input"], trace["metrics"]["token_output"]) == total


def test_parallel_calls_are_of_one_turn(tmp_path):
    def called(second: int, call_id: str) -> dict:
        call = {"type": "function_call", "name": "sh", "arguments": "{}", "call_id": call_id}
        return rollout_line(second, "response_item", call)

    def result(second: int, call_id: str) -> dict:
        output = {"type": "function_call_output", "call_id": call_id, "output": "ok"}
        return rollout_line(second, "response_item", output)

    lines = [
        rollout_line(0, "response_item", said("user", "fix")),
        rollout_line(1, "response_item", said("assistant", "Both.")),
        *(called(2, "a"), called(2, "b"), result(3, "a"), result(3, "b")),
        *(called(4, "c"), result(5, "c")),
    ]
    _, trace, _ = codex(tmp_path, lines)
    spans = {span["id"]: span["parent_id"] for span in trace["spans"]}
    assert spans == {"turn-1": None, "a": "turn-1", "b": "turn-1", "turn-2": None, "c": "turn-2"}
    assert [(message["role"], message["content"]) for message in trace["messages"]][1:4] == [
        ("assistant", "Both."),
        ("assistant", None),
        ("tool", "ok"),
    ]


def test_lines_and_events_that_repeat_items_are_not_lost(tmp_path):
    lines = [
        rollout_line(0, "response_item", said("user", "fix")),
        rollout_line(0, "event_msg", {"type": "item_completed", "item": {"type": "UserMessage"}}),
        rollout_line(1, "response_item", said("assistant", "Fixed.")),
        rollout_line(1, "token_usage_record", {"usage": {"input_tokens": 3}}),
    ]
    assert codex(tmp_path, lines)[0].notes == []


def call_of(total: int, last: int) -> dict:
    usage = {"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": last}}
    return rollout_line(9, "event_msg", {"type": "token_count", "info": usage})


def turn_of_codex(id: str, asked: str, answered: str, total: int, last: int) -> list:
    return [
        rollout_line(9, "event_msg", {"type": "task_started", "turn_id": id}),
        rollout_line(9, "response_item", said("user", asked)),
        rollout_line(9, "response_item", said("assistant", answered)),
        call_of(total, last),
    ]


def thread_of_codex(copied: bool, **meta: object) -> list:
    """A session with one turn of its own, which read 30 tokens, below a copy of another that read 100."""
    copy = turn_of_codex(COPIED_TURN, "go", "Looking.", 100, 100)
    return [
        rollout_line(8, "session_meta", {"id": CHILD, "timestamp": AT.format(8), **meta}),
        rollout_line(8, "session_meta", {"id": PARENT, "cwd": "/parent"}),
        *(copy if copied else []),
        *turn_of_codex(OWN_TURN, "look", "Seen.", 130 if copied else 30, 30),
    ]


def spawned_by(parent: str) -> dict:
    return {"subagent": {"thread_spawn": {"parent_thread_id": parent, "agent_nickname": "Gibbs"}}}


@pytest.mark.parametrize("copied", [True, False], ids=["with a copy", "without"])
@pytest.mark.parametrize("given", ["both", "only the session"])
def test_a_subagent_of_codex_is_a_span_with_its_own_turns_and_tokens(tmp_path, copied, given):
    main = [rollout_line(0, "session_meta", {"id": PARENT}), *turn_of_codex(COPIED_TURN, "go", "Done.", 100, 100)]
    files = [written(tmp_path / "rollout-a.jsonl", main)]
    beside = written(tmp_path / "rollout-b.jsonl", thread_of_codex(copied, source=spawned_by(PARENT)))
    _, cases = imported(tmp_path, "codex", *files, *([beside] if given == "both" else []))
    (case,) = cases
    trace = case["embedded_trace"]
    assert [content for _, content, _ in spoken(trace)] == ["go", "Done."]
    (agent,) = [span for span in trace["spans"] if span["kind"] == "agent"]
    assert agent["name"] == "Gibbs"
    assert [message["content"] for message in agent["output"]["messages"]] == ["look", "Seen."]
    assert trace["metrics"]["token_input"] == 130


@pytest.mark.parametrize(
    ("spawn", "name"),
    [({"agent_nickname": "Gibbs", "agent_role": "explorer"}, "Gibbs"), ({"agent_role": "explorer"}, "explorer"),
     ({}, CHILD)],
)  # fmt: skip
def test_a_subagent_of_codex_is_called_as_it_was_or_by_its_session(tmp_path, spawn, name):
    main = [rollout_line(0, "session_meta", {"id": PARENT}), *turn_of_codex(COPIED_TURN, "go", "Done.", 100, 100)]
    source = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, **spawn}}}
    written(tmp_path / "rollout-b.jsonl", thread_of_codex(False, source=source))
    _, (case,) = imported(tmp_path, "codex", written(tmp_path / "rollout-a.jsonl", main))
    assert [span["name"] for span in case["embedded_trace"]["spans"] if span["kind"] == "agent"] == [name]


def test_a_subagent_of_codex_that_says_it_started_itself_is_read_once(tmp_path):
    main = [rollout_line(0, "session_meta", {"id": PARENT}), *turn_of_codex(COPIED_TURN, "go", "Done.", 100, 100)]
    again = [rollout_line(8, "session_meta", {"id": PARENT, "source": spawned_by(PARENT)})]
    written(tmp_path / "rollout-b.jsonl", again + turn_of_codex(OWN_TURN, "look", "Seen.", 30, 30))
    _, (case,) = imported(tmp_path, "codex", written(tmp_path / "rollout-a.jsonl", main))
    assert [span["name"] for span in case["embedded_trace"]["spans"] if span["kind"] == "agent"] == ["Gibbs"]


def test_a_file_that_no_session_of_codex_is_called_like_has_no_subagents_beside_it(tmp_path):
    main = [rollout_line(0, "session_meta", {"id": PARENT}), *turn_of_codex(COPIED_TURN, "go", "Done.", 100, 100)]
    written(tmp_path / "rollout-b.jsonl", thread_of_codex(False, source=spawned_by(PARENT)))
    _, (case,) = imported(tmp_path, "codex", written(tmp_path / "kept.jsonl", main))
    assert [span for span in case["embedded_trace"]["spans"] if span["kind"] == "agent"] == []


@pytest.mark.parametrize(
    ("session", "turns"), [(CHILD, ("first", "second")), ("session", (COPIED_TURN, OWN_TURN)), (CHILD, (None, None))]
)
def test_where_ids_have_no_times_those_of_the_lines_say_what_a_fork_of_codex_copied(tmp_path, session, turns):
    copied, own = turns
    lines = [
        rollout_line(8, "session_meta", {"id": session, "forked_from_id": "old", "timestamp": AT.format(8)}),
        rollout_line(1, "event_msg", {"type": "task_started", "turn_id": copied}),
        rollout_line(1, "response_item", said("user", "go")),
        {**call_of(100, 100), "timestamp": AT.format(2)},
        {**rollout_line(9, "event_msg", {"type": "task_started", "turn_id": own}), "timestamp": None},
        rollout_line(9, "response_item", said("assistant", "Gone.")),
        call_of(130, 30),
    ]
    _, trace, _ = codex(tmp_path, lines)
    assert (trace["metrics"]["token_input"], trace["started_at"]) == (30, "2026-03-04T09:00:08Z")


def test_a_count_below_that_of_the_copy_in_a_fork_of_codex_began_anew(tmp_path):
    lines = [
        rollout_line(8, "session_meta", {"id": CHILD, "forked_from_id": PARENT, "timestamp": AT.format(8)}),
        *turn_of_codex(COPIED_TURN, "go", "Looking.", 100, 100),
        *turn_of_codex(OWN_TURN, "look", "Seen.", 130, 30),
        call_of(20, 20),
    ]
    _, trace, _ = codex(tmp_path, lines)
    assert trace["metrics"]["token_input"] == 20


def test_subagents_of_subagents_of_codex_belong_to_the_session(tmp_path):
    main = [rollout_line(0, "session_meta", {"id": "a"}), rollout_line(1, "response_item", said("user", "go"))]
    files = [written(tmp_path / "rollout-a.jsonl", main)]
    for id, parent in (("b", "a"), ("c", "b"), ("x", "elsewhere")):
        lines = [
            rollout_line(2, "session_meta", {"id": id, "parent_thread_id": parent}),
            rollout_line(3, "turn_context", {"model": "m"}),
            rollout_line(3, "response_item", said("assistant", id)),
        ]
        files.append(written(tmp_path / f"rollout-{id}.jsonl", lines))
    done, cases = imported(tmp_path, "codex", *files)
    (case,) = cases
    assert [span["name"] for span in case["embedded_trace"]["spans"] if span["kind"] == "agent"] == ["b", "c"]
    assert done.notes == ["lost: files of subagents without the file of their session: 1"]
    with pytest.raises(InputError, match="is of a subagent: import the file of its session"):
        imported(tmp_path / "alone", "codex", files[-1])


def test_a_forked_session_of_codex_keeps_the_conversation_and_counts_its_own_tokens(tmp_path):
    _, trace, case = codex(tmp_path, thread_of_codex(True, forked_from_id=PARENT))
    assert case["id"] == CHILD
    assert [content for _, content, _ in spoken(trace)] == ["go", "Looking.", "look", "Seen."]
    assert (trace["metrics"]["token_input"], trace["extra"].get("cwd")) == (30, None)


def test_the_copy_in_an_older_fork_of_codex_ends_where_its_times_do(tmp_path):
    lines = [
        rollout_line(8, "session_meta", {"id": "new", "forked_from_id": "old", "timestamp": AT.format(8)}),
        rollout_line(1, "turn_context", {"model": "m"}),
        rollout_line(1, "response_item", said("user", "go")),
        {**call_of(100, 100), "timestamp": AT.format(2)},
        rollout_line(9, "turn_context", {"model": "m"}),
        rollout_line(9, "response_item", said("assistant", "Gone.")),
        call_of(130, 30),
    ]
    _, trace, _ = codex(tmp_path, lines)
    assert (trace["metrics"]["token_input"], trace["started_at"]) == (30, "2026-03-04T09:00:08Z")


def asked_and_answered(second: int, name: str) -> list[dict]:
    call = {"type": "function_call", "name": "sh", "arguments": "{}", "call_id": name}
    output = {"type": "function_call_output", "call_id": name, "output": "Exit code: 1\nOutput:\n"}
    return [
        rollout_line(second, "response_item", item)
        for item in (said("user", f"ask {name}"), call, output, said("assistant", f"answer {name}"))
    ]


@pytest.mark.parametrize(("turns", "left"), [(1, "b"), (2, "a"), (9, None)])
def test_turns_that_were_rolled_back_are_left_out_with_their_calls(tmp_path, turns, left):
    lines = [line for second, name in enumerate("abc") for line in asked_and_answered(second, name)]
    lines.append(rollout_line(5, "event_msg", {"type": "thread_rolled_back", "num_turns": turns}))
    last = asked_and_answered(6, "d")
    done, trace, case = codex(tmp_path, [*lines, *last])
    names = {None: "d", "a": "ad", "b": "abd"}[left]
    assert [message["content"] for message in trace["messages"] if message["role"] == "user"] == [
        f"ask {name}" for name in names
    ]
    assert [call["id"] for call in trace["tool_calls"]] == [*names]
    assert [result["tool_call_id"] for result in trace["tool_results"]] == [*names]
    assert trace["metrics"]["custom"]["failed_tool_results"] == len(names)
    assert case["input"]["user_message"] == f"ask {names[0]}"
    assert any(f"turns that were rolled back: {4 - len(names)}" in note for note in done.notes)


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("Exit code: 2\nWall time: 0.1 seconds\nOutput:\nmake: no rule", "error"),
        ("Chunk ID: 1\nProcess exited with code 1\nOriginal token count: 9\nOutput:\n", "error"),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 2", "ok"),
        ("Exit code: 2\nis what it printed", "ok"),
    ],
)
def test_a_command_failed_if_the_head_of_its_output_says_so(tmp_path, output, status):
    call = {"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c"}
    lines = [
        rollout_line(0, "response_item", said("user", "fix")),
        rollout_line(1, "response_item", call),
        rollout_line(2, "response_item", {"type": "function_call_output", "call_id": "c", "output": output}),
    ]
    _, trace, _ = codex(tmp_path, lines)
    assert [span["status"] for span in trace["spans"] if span["kind"] == "tool"] == [status]
    assert trace["tool_results"][0]["content"] == output
