"""Conversations of OpenHands: events of release 1.0 and newer, those of older releases, and results of benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from evalwright.cli.import_ import command
from importers.transcripts import imported, spoken, written

AT = "2026-02-05T11:24:{:02}.500000"


def text(said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": said, "cache_prompt": False}]


def event(second: int, kind: str, source: str = "agent", **more: Any) -> dict[str, Any]:
    return {"id": f"e{second}", "timestamp": AT.format(second), "source": source, **more, "kind": kind}


def message(second: int, source: str, said: str, **more: Any) -> dict[str, Any]:
    role = "assistant" if source == "agent" else "user"
    return event(second, "MessageEvent", source, llm_message={"role": role, "content": text(said)}, **more)


def action(second: int, tool: str, arguments: dict[str, Any], response: str, thought: str = "", **more: Any) -> Any:
    id = f"call-{second}"
    call = {"id": id, "name": tool, "arguments": json.dumps(arguments), "origin": "completion"}
    return event(
        second, "ActionEvent", thought=text(thought) if thought else [], action={"kind": "SomeAction", **arguments},
        tool_name=tool, tool_call_id=id, tool_call=call, llm_response_id=response, **more,
    )  # fmt: skip


def observation(second: int, tool: str, call: int, **seen: Any) -> dict[str, Any]:
    return event(
        second, "ObservationEvent", "environment", tool_name=tool, tool_call_id=f"call-{call}", observation=seen
    )


def metrics(given: int, said: int, cost: float, **more: int) -> dict[str, Any]:
    usage = {"model": "m", "prompt_tokens": given, "completion_tokens": said, **more}
    return {"accumulated_cost": cost, "accumulated_token_usage": usage, "costs": []}


SESSION = [
    event(0, "SystemPromptEvent", system_prompt=text("You are an agent")[0], dynamic_context=text("Today")[0]),
    message(1, "user", "List the files", extended_content=text("A skill")),
    action(2, "terminal", {"command": "ls", "summary": "look"}, "r1", "I look.", reasoning_content="Hm"),
    action(3, "terminal", {"command": "cat x"}, "r1"),
    observation(4, "terminal", 2, content=text("a b"), is_error=False, exit_code=0),
    observation(5, "terminal", 3, output="no such file", error=False, metadata={"exit_code": 1}),
    event(6, "AgentErrorEvent", tool_name="browse", tool_call_id="call-9", error="no such tool"),
    event(7, "Condensation", "environment", forgotten_event_ids=["e4"], summary="s"),
    event(8, "TeleportEvent"),
    action(9, "finish", {"message": "There are a and b."}, "r2"),
    observation(10, "finish", 9, content=text("There are a and b."), is_error=False),
]


def folder(path: Path, events: list[dict[str, Any]], **state: Any) -> Path:
    known = {"id": "conversation", "execution_status": "finished", "persistence_dir": "p", "stats": {}, **state}
    (path / "events").mkdir(parents=True)
    (path / "base_state.json").write_text(json.dumps(known))
    for number, one in enumerate(events):
        (path / "events" / f"event-{number:05}-{one['id']}.json").write_text(json.dumps(one))
    return path


def trace_of(folder: Path, file: Path) -> tuple[Any, dict[str, Any]]:
    done, (case,) = imported(folder, "openhands", file)
    return done, case["embedded_trace"]


def test_a_folder_of_events_is_one_conversation_with_the_totals_beside_it(tmp_path):
    usages = {"agent": metrics(100, 10, 0.5, cache_read_tokens=70), "condenser": metrics(20, 2, 0.25)}
    llm = {"llm": {"model": "openai/m"}}
    folder(tmp_path / "home" / "abc", SESSION, stats={"usage_to_metrics": usages}, agent=llm)
    done = CliRunner().invoke(command, [str(tmp_path / "home"), "--out", str(tmp_path / "out")], standalone_mode=False)
    assert done.exception is None, done.exception
    assert done.output.splitlines()[:2] == ["format: openhands (detected)", "1 case, 1 recording"]
    assert "lost: events of kind 'TeleportEvent': 1" in done.output
    case = json.loads((tmp_path / "out" / "cases.jsonl").read_text())
    trace = case["embedded_trace"]
    assert yaml.safe_load((tmp_path / "out" / "eval.yaml").read_text())["eval"]["name"] == "openhands"
    assert (case["id"], case["input"]) == ("conversation", {"user_message": "List the files"})
    assert spoken(trace) == [
        ("system", "You are an agent\nToday", None), ("user", "List the files", None), ("user", "A skill", None),
        ("assistant", "I look.", "terminal"), ("assistant", None, "terminal"), ("tool", "a b", None),
        ("tool", "no such file", None), ("tool", "no such tool", None), ("assistant", None, "finish"),
        ("tool", "There are a and b.", None),
    ]  # fmt: skip
    assert trace["messages"][3]["thinking"] == "Hm"
    assert trace["tool_calls"][0]["arguments"] == {"command": "ls", "summary": "look"}
    assert (trace["variant_name"], trace["output"]["final_answer"]) == ("openai/m", "There are a and b.")
    found = trace["metrics"]
    assert (found["token_input"], found["token_output"], found["cost_usd"]) == (120, 12, 0.75)
    assert found["custom"] == {"cache_read_tokens": 70, "failed_tool_results": 2}
    assert trace["latency_ms"] == 10000


def test_what_the_agent_says_after_a_finished_task_is_the_answer(tmp_path):
    more = [message(11, "user", "In one word?"), message(12, "agent", "Two.", llm_response_id="r3")]
    _, trace = trace_of(tmp_path, written(tmp_path / "events.jsonl", [*SESSION, *more]))
    assert trace["output"]["final_answer"] == "Two."
    assert (trace["metrics"]["token_input"], trace["metrics"]["cost_usd"]) == (None, None)


def test_only_the_branch_that_was_gone_on_with_is_the_conversation(tmp_path):
    events = [
        message(0, "user", "q"), message(1, "agent", "first", parent_id="e0"),
        message(2, "agent", "second", parent_id="e0"), message(3, "user", "and?", parent_id="e2"),
        message(4, "agent", "done", parent_id="e3"),
    ]  # fmt: skip
    done, trace = trace_of(tmp_path, written(tmp_path / "all.jsonl", events))
    assert [one["content"] for one in trace["messages"]] == ["q", "second", "and?", "done"]
    assert "lost: events of abandoned branches: 1" in done.notes
    one = folder(tmp_path / "c", events, leaf_event_id="e1")
    _, (case,) = imported(tmp_path / "other", "openhands", *sorted(one.rglob("*.json")))
    assert [said["content"] for said in case["embedded_trace"]["messages"]] == ["q", "first"]


def test_parents_in_a_circle_end_where_the_circle_began(tmp_path):
    events = [
        message(0, "user", "q"),
        message(1, "agent", "a", parent_id="e2"),
        message(2, "agent", "b", parent_id="e1"),
    ]
    _, trace = trace_of(tmp_path, written(tmp_path / "x.jsonl", events))
    assert [one["content"] for one in trace["messages"]] == ["a", "b"]


def test_an_event_whose_parent_is_not_there_follows_the_one_before(tmp_path):
    events = [
        message(0, "user", "q"), message(1, "agent", "a"), message(2, "user", "and?", parent_id="gone"),
        message(3, "agent", "b", parent_id="e2"),
    ]  # fmt: skip
    done, trace = trace_of(tmp_path, written(tmp_path / "x.jsonl", events))
    assert ([one["content"] for one in trace["messages"]], done.notes) == (["q", "a", "and?", "b"], [])


def test_totals_count_on_whatever_branch_they_were_written(tmp_path):
    totals = {"usage_to_metrics": {"agent": metrics(10, 5, 0.5)}}
    events = [
        message(0, "user", "q"), message(1, "agent", "first", parent_id="e0"),
        event(2, "ConversationStateUpdateEvent", "environment", key="stats", value=totals, parent_id="e1"),
        message(3, "agent", "second", parent_id="e0"),
    ]  # fmt: skip
    done, trace = trace_of(tmp_path, written(tmp_path / "x.jsonl", events))
    assert (trace["metrics"]["token_input"], trace["metrics"]["cost_usd"]) == (10, 0.5)
    assert done.notes == ["lost: events of abandoned branches: 1"]


def test_a_call_whose_arguments_were_not_kept_has_those_of_its_action(tmp_path):
    bare = event(1, "ActionEvent", action={"kind": "SomeAction", "command": "ls"}, tool_call_id="t")
    _, trace = trace_of(tmp_path, written(tmp_path / "x.jsonl", [message(0, "user", "q"), bare]))
    assert [(call["name"], call["arguments"]) for call in trace["tool_calls"]] == [("tool", {"command": "ls"})]


@pytest.mark.parametrize(
    ("seen", "shown", "failed"),
    [
        ("plain", "plain", 0),
        ({"kind": "Seen", "files": 2}, {"files": 2}, 0),
        ({"message": "m"}, "m", 0),
        ({"content": "c", "exit_code": 0}, "c", 0),
        ({"content": "c", "is_error": True}, "c", 1),
        ({"content": "c", "error": "e"}, "c", 1),
        ({"content": "c", "exit_code": 2}, "c", 1),
        ({"content": "c", "exit_code": -1}, "c", 0),
    ],
)
def test_an_observation_is_the_result_of_its_call_and_says_whether_that_failed(tmp_path, seen, shown, failed):
    back = event(2, "ObservationEvent", "environment", tool_name="n", tool_call_id="call-1", observation=seen)
    events = [message(0, "user", "q"), action(1, "n", {}, "r"), back]
    _, trace = trace_of(tmp_path, written(tmp_path / "x.jsonl", events))
    assert spoken(trace)[2:] == [("tool", shown, None)]
    assert trace["metrics"]["custom"].get("failed_tool_results", 0) == failed


def test_a_call_that_the_user_rejected_has_failed(tmp_path):
    no = event(2, "UserRejectObservation", "user", tool_name="n", tool_call_id="call-1", rejection_reason="not that")
    _, trace = trace_of(tmp_path, written(tmp_path / "x.jsonl", [message(0, "user", "q"), action(1, "n", {}, "r"), no]))
    assert spoken(trace)[2:] == [("tool", "not that", None)]
    assert trace["metrics"]["custom"] == {"failed_tool_results": 1}


def test_an_empty_message_leaves_the_answer_of_a_finished_task(tmp_path):
    _, trace = trace_of(tmp_path, written(tmp_path / "events.jsonl", [*SESSION, message(11, "agent", "")]))
    assert trace["output"]["final_answer"] == "There are a and b."


@pytest.mark.parametrize(
    ("code", "goes_on", "error", "stopped"),
    [
        ("LLMBadRequestError", False, "LLMBadRequestError", None),
        (None, False, "agent_error", None),
        ("LLMBadRequestError", True, None, None),
        ("MaxIterationsReached", False, None, "max_iterations"),
    ],
)
def test_an_error_at_the_end_is_one_unless_it_is_a_limit(tmp_path, code, goes_on, error, stopped):
    events = [message(0, "user", "q"), event(1, "ConversationErrorEvent", "environment", code=code, detail="why")]
    events += [message(2, "agent", "a")] if goes_on else []
    _, trace = trace_of(tmp_path, written(tmp_path / "x.jsonl", events))
    assert (trace["error"] and trace["error"]["type"], trace["extra"].get("stopped")) == (error, stopped)


def test_an_agent_behind_the_client_protocol_has_calls_with_their_last_status(tmp_path):
    def call(second: int, status: str, **more: Any) -> dict[str, Any]:
        return event(second, "ACPToolCallEvent", tool_call_id="t", title="ls", tool_kind="execute", status=status,
                     raw_input={"command": "ls"}, **more)  # fmt: skip

    totals = {"usage_to_metrics": {"agent": metrics(10, 5, 0.0, cache_read_tokens=90)}}
    events = [
        message(0, "user", "q"), call(1, "in_progress"), call(2, "failed", raw_output="denied"),
        event(3, "ConversationStateUpdateEvent", "environment", key="stats", value=totals),
    ]  # fmt: skip
    _, trace = trace_of(tmp_path, written(tmp_path / "x.jsonl", events))
    assert spoken(trace) == [("user", "q", None), ("assistant", None, "execute"), ("tool", "denied", None)]
    assert trace["metrics"]["token_input"] == 100
    assert trace["metrics"]["custom"]["failed_tool_results"] == 1


def record(id: str, history: list[Any], **more: Any) -> dict[str, Any]:
    return {"instance_id": id, "instruction": "Fix it", "history": history, "test_result": {"git_patch": "diff"},
            "metadata": {"llm": {"model": "m"}}, "metrics": metrics(7, 3, 0.5), "error": None, **more}  # fmt: skip


def test_a_record_of_a_benchmark_is_a_case_with_its_patch_and_whether_it_solved_the_task(tmp_path):
    pairs = [[older(1, "run", {"command": "ls", "thought": "Look"}), seen(2, "run", "a", 1)]]
    lines = [
        record("one", SESSION, report={"resolved": True}),
        record("two", pairs, test_result={"git_patch": "", "report": {"resolved": False}}),
        record("three", [], error="Agent reached maximum iteration"),
        record("four", [], error="RuntimeError: no container"),
    ]
    _, cases = imported(tmp_path, "openhands", written(tmp_path / "output.jsonl", lines))
    assert [case["id"] for case in cases] == ["one", "two", "three", "four"]
    one, two, three, four = (case["embedded_trace"] for case in cases)
    assert {case["input"]["user_message"] for case in cases} == {"Fix it"}
    assert (one["output"]["structured"], one["metrics"]["custom"]["reward"]) == ({"git_patch": "diff"}, 1)
    assert (one["variant_name"], one["metrics"]["token_input"], one["metrics"]["cost_usd"]) == ("m", 7, 0.5)
    assert (spoken(two), two["metrics"]["custom"]["reward"]) == ([("assistant", "Look", "run"), ("tool", "a", None)], 0)
    assert (three["error"], three["extra"]["stopped"]) == (None, "max_iterations")
    assert four["error"]["message"] == "RuntimeError: no container"


def older(id: int, kind: str, args: dict[str, Any], source: str = "agent", **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": AT.format(id), "source": source, "action": kind, "args": args, **more}


def seen(id: int, kind: str, content: str, cause: int, extras: dict[str, Any] | None = None, **more: Any) -> Any:
    return {"id": id, "timestamp": AT.format(id), "source": "agent", "observation": kind, "content": content,
            "cause": cause, "extras": extras or {}, **more}  # fmt: skip


def called(tool: str, id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    said = {"role": "assistant", "content": "", "tool_calls": [call]}
    response = {"id": f"r-{id}", "model": "m", "choices": [{"message": said}]}
    return {"tool_call_metadata": {"function_name": tool, "tool_call_id": id, "model_response": response}}


def test_a_trajectory_of_an_older_release_has_its_calls_and_those_of_helpers_apart(tmp_path):
    bash, end = called("execute_bash", "c1", {"command": "ls"}), called("finish", "c2", {"message": "Done."})
    state = {"agent_state": "running", "reason": ""}
    events = [
        older(0, "system", {"content": "You are an agent", "tools": []}),
        older(1, "message", {"content": "List the files", "image_urls": ["x"]}, "user"),
        older(2, "recall", {"query": "List the files"}, "user"),
        seen(3, "recall", "Added workspace context", 2),
        older(4, "run", {"command": "ls", "thought": "I look."}, **bash, llm_metrics=metrics(5, 1, 0.25)),
        seen(5, "run", "bash: ls: not found", 4, {"metadata": {"exit_code": 127}}, **bash),
        seen(6, "agent_state_changed", "", 0, state),
        older(7, "delegate", {"agent": "Browser", "inputs": {"task": "t"}, "thought": ""}),
        older(8, "message", {"content": "I help"}, llm_metrics=metrics(8, 2, 0.5)),
        older(9, "delegate", {"agent": "Reader", "inputs": {}}),
        older(10, "message", {"content": "I read"}),
        seen(11, "delegate", "read", 9),
        seen(12, "delegate", "found", 7),
        older(13, "finish", {"final_thought": "Done.", "outputs": {}}, **end),
        seen(14, "agent_state_changed", "", 0, {"agent_state": "finished", "reason": ""}),
    ]
    file = tmp_path / "trajectory.json"
    file.write_text(json.dumps(events, indent=2))
    done, trace = trace_of(tmp_path, file)
    assert spoken(trace) == [
        ("system", "You are an agent", None), ("user", "List the files", None),
        ("assistant", "I look.", "execute_bash"), ("tool", "bash: ls: not found", None),
        ("assistant", None, "delegate"), ("tool", "found", None), ("assistant", None, "finish"),
    ]  # fmt: skip
    assert [call["arguments"] for call in trace["tool_calls"]] == [
        {"command": "ls"}, {"agent": "Browser", "inputs": {"task": "t"}}, {"message": "Done."}
    ]  # fmt: skip
    (helper,) = [span for span in trace["spans"] if span["kind"] == "agent"]
    assert helper["name"] == "Browser"
    assert [one["content"] for one in helper["output"]["messages"]] == ["I help", None, "read"]
    found = trace["metrics"]
    assert (found["token_input"], found["token_output"], found["cost_usd"]) == (8, 2, 0.5)
    assert found["custom"] == {"failed_tool_results": 1}
    assert (trace["variant_name"], trace["output"]["final_answer"]) == ("m", "Done.")
    assert "lost: images: 1" in done.notes


def test_an_older_agent_that_ends_in_an_error_has_no_verdict(tmp_path):
    failed = seen(2, "agent_state_changed", "", 0, {"agent_state": "error", "reason": "no credits"})
    file = tmp_path / "trajectory.json"
    file.write_text(json.dumps([older(1, "message", {"content": "q"}, "user"), failed]))
    _, trace = trace_of(tmp_path, file)
    assert trace["error"]["message"] == "no credits"
