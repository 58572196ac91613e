"""Trajectories, responses and conversations with blocks: what other programs keep of agents."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from evalwright.errors import InputError
from importers.transcripts import AT, imported, session_line, spoken, written


def step(number: int, source: str, message: object, **more: object) -> dict:
    return {"step_id": number, "source": source, "message": message, "timestamp": AT.format(number), **more}


def trajectory(*steps: dict, **more: object) -> dict:
    agent = {"name": "a", "version": "1"}
    return {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": agent, "steps": [*steps], **more}


def atif(folder: Path, document: dict, name: str = "trajectory.json"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(document))
    done, cases = imported(folder, "atif", folder / name)
    return done, cases[0]["embedded_trace"], cases[0]


CALL = {"tool_call_id": "c", "function_name": "sh", "arguments": {"x": 1}}


def test_results_follow_the_calls_of_their_step_and_metrics_add_up(tmp_path):
    results = {"results": [{"source_call_id": "c", "content": "ok"}]}
    document = trajectory(
        step(1, "user", "go"),
        step(2, "agent", "", tool_calls=[CALL], observation=results, metrics={"prompt_tokens": 5, "cost_usd": 0.1}),
        step(3, "agent", "old", is_copied_context=True, metrics={"prompt_tokens": 900}),
        step(4, "agent", "Done.", observation={"results": [{"content": "seen"}]}, metrics={"prompt_tokens": 2}),
    )
    _, trace, case = atif(tmp_path, document)
    assert [(m["role"], m["content"], m["name"]) for m in trace["messages"]] == [
        ("user", "go", None), ("assistant", None, None), ("tool", "ok", "sh"), ("assistant", "old", None),
        ("assistant", "Done.", None), ("tool", "seen", "observation"),
    ]  # fmt: skip
    assert (trace["metrics"]["token_input"], trace["metrics"]["cost_usd"], case["id"]) == (7, 0.1, "s")


def test_final_metrics_are_those_of_all(tmp_path):
    used = {"total_prompt_tokens": 50, "total_completion_tokens": 5}
    document = trajectory(step(1, "agent", "Done.", metrics={"prompt_tokens": 2}), final_metrics=used)
    assert atif(tmp_path, document)[1]["metrics"]["token_input"] == 50


def test_a_trajectory_goes_on_in_the_file_that_it_names(tmp_path):
    first = trajectory(step(1, "user", "go"), continued_trajectory_ref="second.json")
    (tmp_path / "second.json").write_text(json.dumps(trajectory(step(1, "agent", "Done."))))
    done, trace, _ = atif(tmp_path / "alone", first)
    assert [m["content"] for m in trace["messages"]] == ["go"]
    assert trace["extra"]["warnings"]
    (tmp_path / "first.json").write_text(json.dumps(first))
    done, (case,) = imported(tmp_path, "atif", tmp_path / "first.json", tmp_path / "second.json")
    assert [m["content"] for m in case["embedded_trace"]["messages"]] == ["go", "Done."]
    assert done.cases == 1


def test_the_final_metrics_of_a_continuation_are_those_of_everything_before_it_too(tmp_path):
    first = trajectory(
        step(1, "user", "go"), continued_trajectory_ref="second.json", final_metrics={"total_prompt_tokens": 50}
    )
    second = trajectory(
        step(1, "agent", "Done."), continued_trajectory_ref="first.json", final_metrics={"total_prompt_tokens": 80}
    )
    outer = trajectory(step(1, "user", "hm"), continued_trajectory_ref="second.json")
    files = [tmp_path / f"{name}.json" for name in ("first", "outer", "second")]
    for file, document in zip(files, (first, outer, second), strict=True):
        file.write_text(json.dumps(document))
    _, (case,) = imported(tmp_path, "atif", *files)  # first and second name each other
    assert [m["content"] for m in case["embedded_trace"]["messages"]] == ["hm", "Done.", "go"]
    _, (case,) = imported(tmp_path / "pair", "atif", *_pair(tmp_path / "pair", first, second))
    assert case["embedded_trace"]["metrics"]["token_input"] == 80


def _pair(folder: Path, first: dict, second: dict) -> list[Path]:
    folder.mkdir()
    (folder / "first.json").write_text(json.dumps(first))
    (folder / "second.json").write_text(json.dumps({**second, "continued_trajectory_ref": None}))
    return [folder / "first.json", folder / "second.json"]


def test_trajectories_may_be_the_lines_of_a_file(tmp_path):
    documents = [trajectory(step(1, "user", f"go {n}"), trajectory_id=f"t{n}") for n in range(2)]
    _, cases = imported(tmp_path, "atif", written(tmp_path / "all.jsonl", documents))
    assert [(case["id"], case["input"]["user_message"]) for case in cases] == [("t0", "go 0"), ("t1", "go 1")]
    wrong = written(tmp_path / "wrong.jsonl", [*documents, trajectory(step(2, "user", "go"))])
    with pytest.raises(InputError) as caught:
        imported(tmp_path / "no", "atif", wrong)
    assert [(problem.line, problem.key) for problem in caught.value.problems] == [(3, "steps[0].step_id")]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (trajectory(step(1, "user", "a")) | {"schema_version": "ATIF-v2.0"}, "schema_version"),
        (trajectory(), "steps"),
        (trajectory(step(1, "user", "a"), step(3, "agent", "b")), "steps[1].step_id"),
        (trajectory({**step(1, "user", "a"), "step_id": True}), "steps[0].step_id"),
        (trajectory(step(1, "user", "a", tool_calls=[CALL])), "steps[0]"),
        (
            trajectory(step(1, "agent", "a", observation={"results": [{"source_call_id": "z", "content": ""}]})),
            "steps[0].observation.results[0].source_call_id",
        ),
    ],
)
def test_what_is_no_trajectory_is_refused_with_its_place(tmp_path, document, place):
    with pytest.raises(InputError) as caught:
        atif(tmp_path, document)
    assert [problem.key for problem in caught.value.problems] == [place]
    assert not (tmp_path / "out").exists()


def test_trial_folders_of_harbor_are_trials_of_their_tasks(tmp_path):
    for number, reward in enumerate((1.0, 0.0)):
        folder = tmp_path / f"trial-{number}"
        (folder / "agent").mkdir(parents=True)
        (folder / "agent" / "trajectory.json").write_text(json.dumps(trajectory(step(1, "agent", f"answer {number}"))))
        result = {"task_name": "build", "verifier_result": {"rewards": {"reward": reward}}}
        (folder / "result.json").write_text(json.dumps(result))
    files = sorted(tmp_path.rglob("*.json"))
    done, (case,) = imported(tmp_path, "atif", *files)
    assert (case["id"], done.trials) == ("build", 2)
    assert [trace["metrics"]["custom"]["reward"] for trace in case["embedded_trace"]] == [1.0, 0.0]
    assert "reward" in (tmp_path / "out" / "eval.yaml").read_text()


# ---------------------------------------------------------------- OpenAI's Responses, Anthropic's messages

CALLED = {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"k": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "seen"}


def test_a_response_with_its_input_is_one_conversation(tmp_path):
    response = {
        "id": "r1", "object": "response", "created_at": 1_767_225_600, "status": "incomplete", "model": "m",
        "instructions": "Be brief.", "incomplete_details": {"reason": "max_output_tokens"},
        "input": [{"role": "user", "content": "go"}, CALLED, OUTPUT],
        "output": [
            {"type": "reasoning", "summary": [{"text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 2}},
    }  # fmt: skip
    _, (case,) = imported(tmp_path, "openai-responses", written(tmp_path / "r.jsonl", [response]))
    trace = case["embedded_trace"]
    assert [(m["role"], m["content"], m["thinking"]) for m in trace["messages"]] == [
        ("system", "Be brief.", None), ("user", "go", None), ("assistant", None, None), ("tool", "seen", None),
        ("assistant", "Done.", "hm"),
    ]  # fmt: skip
    assert trace["extra"]["stopped"] == "max_output_tokens"
    assert (trace["metrics"]["token_thinking"], trace["error"], case["id"]) == (2, None, "r1")


def test_a_response_took_the_time_from_its_creation_to_its_completion(tmp_path):
    said = {"type": "message", "role": "assistant", "content": "Done."}
    times = {"created_at": 1_767_225_600, "completed_at": 1_767_225_607}
    response = {"id": "r1", "object": "response", "output": [said], **times}
    _, (case,) = imported(tmp_path, "openai-responses", written(tmp_path / "r.jsonl", [response]))
    assert case["embedded_trace"]["latency_ms"] == 7000


@pytest.mark.parametrize(
    ("status", "error"),
    [("completed", None), ("cancelled", "aborted"), ("in_progress", "unfinished"), ("queued", "unfinished")],
)
def test_a_response_that_did_not_end_is_an_error(tmp_path, status, error):
    said = {"type": "message", "role": "assistant", "content": "Do"}
    response = {"id": "r1", "object": "response", "output": [said], "status": status}
    _, (case,) = imported(tmp_path, "openai-responses", written(tmp_path / "r.jsonl", [response]))
    assert (case["embedded_trace"]["error"] or {}).get("type") == error


def test_a_tool_of_a_server_has_its_own_name(tmp_path):
    call = {
        "type": "mcp_call",
        "id": "m",
        "name": "delete",
        "arguments": '{"a": 1}',
        "server_label": "s",
        "output": "ok",
    }
    response = {"object": "response", "input": "q", "output": [call]}
    _, (case,) = imported(tmp_path, "openai-responses", written(tmp_path / "r.jsonl", [response]))
    trace = case["embedded_trace"]
    assert [(tool_call["name"], tool_call["arguments"]) for tool_call in trace["tool_calls"]] == [("delete", {"a": 1})]
    assert [(result["name"], result["content"]) for result in trace["tool_results"]] == [("delete", "ok")]


@pytest.mark.parametrize(("error", "content"), [({"message": "no"}, {"message": "no"}), ("no", "no")])
def test_the_error_of_a_tool_of_a_server_is_its_result(tmp_path, error, content):
    call = {"type": "mcp_call", "id": "m", "name": "delete", "arguments": "{}", "output": None, "error": error}
    response = {"object": "response", "input": "q", "output": [call]}
    _, (case,) = imported(tmp_path, "openai-responses", written(tmp_path / "r.jsonl", [response]))
    trace = case["embedded_trace"]
    assert trace["messages"][-1]["content"] == content
    assert trace["metrics"]["custom"] == {"failed_tool_results": 1}


def test_a_response_that_failed_is_an_error_of_its_code(tmp_path):
    error = {"code": "server_error", "message": "no"}
    failed = {"id": "r", "object": "response", "status": "failed", "error": error, "output": [], "input": "go"}
    _, (case,) = imported(tmp_path, "openai-responses", written(tmp_path / "r.jsonl", [failed]))
    assert case["embedded_trace"]["error"] == {"type": "server_error", "message": "no", "stack": None}


def test_a_list_of_items_is_one_record_named_by_its_file(tmp_path):
    (tmp_path / "talk.json").write_text(json.dumps([{"role": "user", "content": "go"}, CALLED, OUTPUT]))
    _, (case,) = imported(tmp_path, "openai-responses", tmp_path / "talk.json")
    assert (case["id"], len(case["embedded_trace"]["messages"])) == ("talk", 3)


USE = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
SEEN = {"type": "tool_result", "tool_use_id": "t", "content": "seen"}


def test_messages_with_blocks_and_their_response_are_one_conversation(tmp_path):
    record = {
        "id": "a1", "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [USE]},
            {"role": "user", "content": [SEEN, {"type": "text", "text": "and?"}]},
        ],
        "response": {
            "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Done."}],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        },
    }  # fmt: skip
    _, (case,) = imported(tmp_path, "anthropic-messages", written(tmp_path / "a.jsonl", [record]))
    contents = [m["content"] for m in case["embedded_trace"]["messages"]]
    assert contents == ["Be brief.", "go", None, "seen", "and?", "Done."]
    assert case["embedded_trace"]["metrics"]["token_output"] == 2


def test_a_broken_line_of_a_packed_file_has_its_number(tmp_path):
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(b'{"object": "response", odd\n{"object": "response"}\n'))
    with pytest.raises(InputError, match=r"r\.jsonl\.gz:1 "):
        imported(tmp_path, "openai-responses", tmp_path / "r.jsonl.gz")


@pytest.mark.parametrize("before", [{"previous_response_id": "r0"}, {"conversation": {"id": "conv"}}])
def test_a_response_that_continues_others_may_answer_their_calls(tmp_path, before):
    response = {"object": "response", "id": "r", **before, "input": [OUTPUT], "output": []}
    _, (case,) = imported(tmp_path, "openai-responses", written(tmp_path / "r.jsonl", [response]))
    assert spoken(case["embedded_trace"]) == [("tool", "seen", None)]


def test_an_item_with_an_empty_text_has_no_content(tmp_path):
    items = [{"role": "user", "content": "go"}, {"role": "assistant", "content": []}, CALLED]
    (tmp_path / "talk.json").write_text(json.dumps(items))
    _, (case,) = imported(tmp_path, "openai-responses", tmp_path / "talk.json")
    assert spoken(case["embedded_trace"])[1][:2] == ("assistant", None)


@pytest.mark.parametrize(
    ("format", "records"),
    [
        ("anthropic-messages", [{"messages": [{"role": "user", "content": [{**SEEN, "tool_use_id": "lost"}]}]}]),
        ("openai-responses", [{"input": [{"role": "user", "content": "q"}, {**OUTPUT, "call_id": "lost"}]}]),
        ("openai-responses", [{"input": [{**OUTPUT, "call_id": "lost"}]}]),
    ],
)  # fmt: skip
def test_a_result_whose_call_is_not_there_is_a_mistake_told_once(tmp_path, format, records):
    with pytest.raises(InputError, match="lost") as caught:
        imported(tmp_path, format, written(tmp_path / "a.jsonl", records))
    assert len(caught.value.problems) == 1


def test_a_mapping_goes_before_what_a_format_finds(tmp_path):
    record = {"id": "a1", "task": 7, "ok": True, "messages": [{"role": "assistant", "content": "hi"}]}
    mapping = {"id": "task", "reward": "ok", "metadata.team": "id"}
    _, (case,) = imported(tmp_path, "anthropic-messages", written(tmp_path / "a.jsonl", [record]), mapping=mapping)
    assert (case["id"], case["metadata"]) == ("7", {"team": "a1"})
    assert case["embedded_trace"]["metrics"]["custom"]["reward"] == 1.0


_BAD = {"input_tokens": "7", "output_tokens": -3}
_TEXT = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("format", "lines"),
    [
        ("codex", [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"},
                   {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "a"}},
                   {"type": "turn.completed", "usage": _BAD}]),
        ("codex", [{"type": "event_msg", "payload": {"type": "agent_message", "message": "a"}},
                   {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": _BAD}}}]),
        ("gemini", [{"type": "init", "session_id": "s"}, {"type": "message", **_TEXT},
                    {"type": "result", "status": "success", "stats": _BAD}]),
        ("copilot", [{"type": "message", **_TEXT}, {"type": "usage", **_BAD}, {"type": "result", "status": "success"}]),
        ("openai-responses", [{"object": "response", "id": "r", "usage": _BAD,
                               "output": [{"type": "message", **_TEXT}]}]),
        ("atif", [{"schema_version": "ATIF-v1.0", "session_id": "s", "agent": {"name": "n", "version": "1"},
                   "steps": [{"step_id": 1, "source": "agent", "message": "a"}],
                   "final_metrics": {"total_prompt_tokens": "7", "total_completion_tokens": -3}}]),
        ("swe-agent", [{"trajectory": [], "history": [_TEXT],
                        "info": {"model_stats": {"tokens_sent": "7", "tokens_received": -3}}}]),
    ],
)  # fmt: skip
def test_counts_that_are_none_are_unknown_and_told(tmp_path, format, lines):
    done, (case,) = imported(tmp_path, format, written(tmp_path / "f.jsonl", lines))
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_input"], metrics["token_output"]) == (None, None)
    assert "lost: token counts that are not whole numbers: 2" in done.notes


@pytest.mark.parametrize(
    ("format", "lines"),
    [
        ("claude-code", [session_line(0, "user", "q"), {"type": "result", "session_id": "s", "duration_ms": -5}]),
        ("gemini", [{"type": "init", "session_id": "s"}, {"type": "message", **_TEXT},
                    {"type": "result", "status": "success", "stats": {"duration_ms": "4"}}]),
        ("cursor", [{"type": "result", "session_id": "s", "request_id": "r", "result": "a", "duration_ms": True}]),
        ("promptfoo-results", [{"promptIdx": 0, "testIdx": 0, "latencyMs": 1e300, "response": {"output": "a"}}]),
    ],
)  # fmt: skip
def test_durations_that_are_none_are_unknown_and_told(tmp_path, format, lines):
    done, (case,) = imported(tmp_path, format, written(tmp_path / "f.jsonl", lines))
    assert case["embedded_trace"]["latency_ms"] is None
    assert "lost: durations that are negative or not numbers: 1" in done.notes


def test_calls_of_codex_that_failed_are_told_in_both_of_its_forms(tmp_path):
    output = json.dumps({"output": "no", "metadata": {"exit_code": 1}})
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    rollout = [call, {"type": "function_call_output", "call_id": "c", "output": output}]
    items = {"id": "m", "type": "mcp_tool_call", "server": "s", "tool": "t", "error": {"message": "no"}}
    exec_lines = [{"type": "thread.started", "thread_id": "t"}, {"type": "item.completed", "item": items}]
    at = "2026-03-04T09:00:00Z"
    lines = [{"timestamp": at, "type": "response_item", "payload": one} for one in rollout]
    for number, recorded in enumerate((lines, exec_lines)):
        _, (case,) = imported(tmp_path / str(number), "codex", written(tmp_path / f"{number}.jsonl", recorded))
        trace = case["embedded_trace"]
        assert (trace["metrics"]["custom"]["failed_tool_results"], trace["tool_results"][0]["content"]) == (1, "no")
