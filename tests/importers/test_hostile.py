"""Transcripts from anywhere: whatever stands in a record, it is imported or refused, and never ends the command."""

from __future__ import annotations

import copy
import json
import math
import shutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from evalwright.registry import load
from importers.transcripts import AT, imported, rollout_line, said, session_line, used, written

USE = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}}
BACK = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "A"}], "is_error": False}
RECORDS: dict[str, Any] = {
    "claude-code": [
        session_line(0, "user", "why?"),
        session_line(1, "assistant", [{"type": "text", "text": "I look."}, USE], "m1", message=used(10, 5)),
        session_line(2, "user", [BACK], isSidechain=True, agentId="a"),
        {"type": "result", "subtype": "success", "sessionId": "s", "result": "So.", "usage": {"input_tokens": 1}},
    ],
    "codex": [
        rollout_line(0, "session_meta", {"id": "r1"}),
        rollout_line(1, "response_item", said("user", "fix")),
        rollout_line(2, "response_item", {"type": "function_call", "name": "sh", "arguments": "{}", "call_id": "c"}),
        rollout_line(3, "response_item", {"type": "function_call_output", "call_id": "c", "output": "ok"}),
        rollout_line(4, "event_msg", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 1}}}),
    ],
    "gemini": [
        {"type": "init", "session_id": "g", "model": "x"},
        {"type": "tool_use", "tool_name": "ls", "tool_id": "t", "parameters": {}},
        {"type": "tool_result", "tool_id": "t", "status": "success", "output": "a"},
        {"type": "message", "role": "assistant", "content": "Done", "delta": True},
        {"type": "result", "status": "success", "stats": {"input_tokens": 1}},
    ],
    "gemini (kept)": [
        {"sessionId": "s", "projectHash": "h", "kind": "main", "messages": []},
        {"id": "u", "timestamp": AT.format(0), "type": "user", "content": [{"text": "q"}]},
        {"id": "g", "timestamp": AT.format(1), "type": "gemini", "content": "a", "model": "m",
         "thoughts": [{"subject": "t"}], "tokens": {"input": 1, "cached": 1}, "toolCalls": [
             {"id": "c", "name": "n", "args": {}, "status": "success", "timestamp": AT.format(1),
              "result": [{"functionResponse": {"response": {"output": "o"}}}]}]},
        {"$set": {"lastUpdated": AT.format(2)}},
        {"id": "r", "type": "user", "content": "x"},
        {"$rewindTo": "r"},
    ],
    "anthropic-messages": [
        {"id": "x", "messages": [{"role": "assistant", "content": [USE]}, {"role": "user", "content": [BACK]}]}
    ],
    "openai-responses": [
        {"object": "response", "id": "r", "output": [{"type": "function_call", "call_id": "c", "name": "n",
         "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": "o"}], "usage": {}}
    ],
    "lm-eval": [{"doc_id": 1, "target": "t", "arguments": {"gen_args_0": {"arg_0": "q"}}, "resps": [["a"]],
                 "filtered_resps": ["a"], "filter": "none", "metrics": ["acc"], "acc": 1.0}],
    "langfuse": [{"id": "o", "traceId": "t", "type": "GENERATION", "startTime": AT.format(0), "endTime": AT.format(1),
                  "input": [{"role": "user", "content": "q"}], "usageDetails": {"input": 1}, "level": "ERROR"}],
    "langsmith": [{"id": "o", "trace_id": "t", "run_type": "llm", "start_time": AT.format(0), "error": None,
                   "inputs": {"messages": [[{"id": ["x"], "kwargs": {"content": "q"}}]]},
                   "outputs": {"generations": [[{"text": "a"}]]}}],
    "braintrust": [
        {"id": "a", "span_id": "a", "root_span_id": "r", "span_parents": None, "created": AT.format(0), "input": "q",
         "span_attributes": {"type": "eval"}, "expected": "a", "metrics": {"start": 1.5, "end": 2.5}},
        {"id": "b", "span_id": "b", "root_span_id": "r", "span_parents": ["a"], "error": None,
         "span_attributes": {"type": "llm"}, "input": [{"role": "user", "content": "q"}], "metadata": {"model": "m"},
         "output": [{"message": {"role": "assistant", "content": "a"}}], "metrics": {"start": 1, "prompt_tokens": 1}},
        {"id": "c", "span_id": "c", "root_span_id": "r", "span_parents": ["a"], "scores": {"s": 1},
         "span_attributes": {"purpose": "scorer"}}],
    "openai-agents": [
        {"object": "trace", "id": "t", "workflow_name": "w", "group_id": "g", "metadata": {"k": "1"}},
        {"object": "trace.span", "id": "a", "trace_id": "t", "parent_id": None, "started_at": AT.format(0),
         "ended_at": AT.format(2), "span_data": {"type": "custom", "name": "task", "data": {"usage": {}}},
         "error": {"message": "m", "data": {"error": "e"}}},
        {"object": "trace.span", "id": "b", "trace_id": "t", "parent_id": "a", "started_at": AT.format(1),
         "ended_at": AT.format(2), "error": None, "span_data": {
             "type": "generation", "input": [{"role": "user", "content": "q"}], "output": [
                 {"role": "assistant", "content": "a"}], "model": "m", "usage": {
                 "input_tokens": 1, "input_tokens_details": {"cached_tokens": 1}}}},
        {"object": "trace.span", "id": "c", "trace_id": "t", "started_at": AT.format(1), "ended_at": AT.format(2),
         "span_data": {"type": "response", "input": "q", "response": {
             "instructions": "i", "output": [{"type": "reasoning", "summary": [{"text": "t"}]}]}}}],
    "mlflow": [{"info": {"assessments": [{"assessment_name": "n", "feedback": {"value": 1}, "span_id": "s"}]},
                "data": {"spans": [{"trace_id": "t", "span_id": "s", "name": "n", "start_time_unix_nano": 1,
                                    "status": {"code": "STATUS_CODE_OK"}, "attributes": {
                                        "mlflow.spanType": '"LLM"', "mlflow.spanInputs": '{"messages": []}'}}]}}],
    "cursor": [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "permissionMode": "default"},
        {"type": "thinking", "subtype": "delta", "text": "t", "session_id": "s", "timestamp_ms": 1},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "a"}]}, "session_id": "s",
         "model_call_id": "m", "timestamp_ms": 2},
        {"type": "tool_call", "subtype": "completed", "call_id": "c", "model_call_id": "m", "session_id": "s",
         "tool_call": {"shellToolCall": {"args": {"command": "ls"}, "result": {"success": {"exitCode": 0}}}}},
        {"type": "result", "is_error": False, "duration_ms": 1, "result": "a", "session_id": "s",
         "usage": {"inputTokens": 1, "totalCost": 0.5}},
    ],
    "opencode": [
        {"type": "user", "sessionID": "s", "timestamp": 1, "parts": [{"type": "text", "text": "q"}]},
        {"type": "tool_use", "sessionID": "s", "timestamp": 2, "part": {
            "type": "tool", "tool": "bash", "callID": "c", "state": {
                "status": "completed", "input": {"command": "ls"}, "output": "o", "metadata": {"exit": 0},
                "time": {"start": 2, "end": 3}}}},
        {"type": "step_finish", "sessionID": "s", "timestamp": 4, "part": {
            "type": "step-finish", "cost": 0.5, "tokens": {"input": 1, "output": 1, "cache": {"read": 1}}}},
        {"type": "error", "sessionID": "s", "error": {"name": "n", "data": {"message": "m"}}},
    ],
    "copilot": [
        {"type": "message", "role": "user", "content": "q", "session_id": "c"},
        {"type": "tool_use", "id": "t", "name": "ls", "input": {}},
        {"type": "tool_result", "tool_use_id": "t", "content": "a"},
        {"type": "message", "role": "assistant", "content": "Done"},
        {"type": "result", "usage": {"input_tokens": 1}},
    ],
    "copilot (kept)": [
        {"type": "session.start", "data": {"sessionId": "c", "selectedModel": "m"}, "timestamp": AT.format(0)},
        {"type": "user.message", "data": {"content": "q"}},
        {"type": "assistant.message", "data": {
            "content": "a", "reasoningText": "t", "outputTokens": 1,
            "toolRequests": [{"toolCallId": "t", "name": "task", "arguments": {"prompt": "p"}}]}},
        {"type": "subagent.started", "data": {"toolCallId": "t", "agentName": "n"}, "agentId": "t"},
        {"type": "user.message", "data": {"content": "p"}},
        {"type": "tool.execution_complete", "data": {"toolCallId": "t", "success": False, "error": {"message": "m"}}},
        {"type": "session.shutdown", "data": {"modelMetrics": {"m": {"usage": {"inputTokens": 1}}}}},
    ],
    "deepeval": [{"input": "q", "actual_output": "a", "expected_output": "a", "name": "g", "context": ["c"],
                  "tools_called": [{"name": "n", "input_parameters": {}, "output": 1}], "token_cost": 0.1}],
    "promptfoo-results": [{"evalId": "e", "results": {"version": 3, "prompts": [{"label": "p"}], "results": [
        {"promptIdx": 0, "testIdx": 0, "testCase": {"vars": {"a": 1}}, "vars": {"a": 1}, "prompt": {"raw": "q"},
         "provider": {"id": "x"}, "response": {"output": "a", "tokenUsage": {"prompt": 1}}, "success": True,
         "gradingResult": {"componentResults": [{"pass": True}]}, "latencyMs": 1}]}}],
    "atif": [{"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a"}, "final_metrics": {},
              "steps": [{"step_id": 1, "source": "user", "message": "q", "timestamp": AT.format(0)},
                        {"step_id": 2, "source": "agent", "message": "a", "metrics": {"prompt_tokens": 1}}]}],
    "swe-agent": [{"trajectory": [{"action": "ls"}], "history": [{"role": "user", "content": "q", "agent": "a"}],
                   "info": {"exit_status": "submitted", "submission": "s", "model_stats": {"tokens_sent": 1}}}],
    "mini-swe-agent": [{"trajectory_format": "mini-swe-agent-1.1", "instance_id": "i", "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", "extra": {"response": {"usage": {"prompt_tokens": 1}}, "timestamp": 9.5},
         "tool_calls": [{"id": "t", "function": {"name": "n", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "t", "content": "o", "extra": {"returncode": 0}}],
        "info": {"exit_status": "Submitted", "submission": "s", "model_stats": {"instance_cost": 0.5}}}],
    "tau2": [{"info": {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "d"}},
              "tasks": [{"id": "1", "evaluation_criteria": {"actions": [{"name": "n", "arguments": {}}]}}],
              "simulations": [{"task_id": "1", "trial": 0, "duration": 1.5, "reward_info": {"reward": 1.0,
              "action_checks": [{"action": {"name": "n"}, "action_match": True}]}, "messages": [
              {"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "usage": {"prompt_tokens": 1},
               "tool_calls": [{"id": "t", "name": "n", "arguments": {}}]}, {"role": "tool", "id": "t"}]}]}],
    "agentdojo": [{"suite_name": "s", "pipeline_name": "p", "user_task_id": "u", "injection_task_id": "i",
                   "duration": 1.5, "utility": True, "security": False, "evaluation_timestamp": AT.format(0),
                   "messages": [{"role": "user", "content": [{"type": "text", "content": "q"}]},
                                {"role": "assistant", "content": None, "tool_calls": [{"function": "f", "args": {}}]},
                                {"role": "tool", "content": "o", "tool_call": {"function": "f"}}]}],
    "openhands": [{"instance_id": "i", "instruction": "q", "metadata": {"llm": {"model": "m"}}, "error": None,
                   "test_result": {"git_patch": "d", "report": {"resolved": True}},
                   "metrics": {"accumulated_cost": 0.5, "accumulated_token_usage": {"prompt_tokens": 1}}, "history": [
        {"kind": "MessageEvent", "id": "a", "source": "user", "timestamp": AT.format(0),
         "llm_message": {"role": "user", "content": [{"type": "text", "text": "q"}]}},
        {"kind": "ActionEvent", "id": "b", "parent_id": "a", "source": "agent", "thought": [{"text": "t"}],
         "tool_name": "n", "tool_call_id": "t", "tool_call": {"arguments": "{}"}, "llm_response_id": "r"},
        {"kind": "ObservationEvent", "id": "c", "parent_id": "b", "tool_name": "n", "tool_call_id": "t",
         "observation": {"content": [{"type": "text", "text": "o"}], "metadata": {"exit_code": 1}}}]},
        {"instance_id": "j", "history": [[
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "t"}, "tool_call_metadata": {
         "function_name": "n", "tool_call_id": "t", "model_response": {"id": "r", "choices": [{"message": {
          "tool_calls": [{"id": "t", "function": {"arguments": "{}"}}]}}]}}},
        {"id": 2, "cause": 1, "observation": "run", "content": "o", "extras": {"metadata": {"exit_code": 0}}}]]}],
    "pydantic-ai": [{"id": "i", "messages": [
        {"kind": "request", "instructions": "s", "timestamp": AT.format(0), "parts": [
         {"part_kind": "user-prompt", "content": ["q", {"kind": "image-url"}], "timestamp": AT.format(0)}]},
        {"kind": "response", "model_name": "m", "timestamp": AT.format(1), "finish_reason": "stop", "state": "complete",
         "usage": {"input_tokens": 1, "cost": "0.5", "details": {"reasoning_tokens": 1}}, "parts": [
          {"part_kind": "text", "content": "a"}, {"part_kind": "thinking", "content": "t"},
          {"part_kind": "tool-call", "tool_name": "final_result", "tool_call_id": "t", "args": "{}"}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "final_result", "tool_call_id": "t",
         "content": "o", "outcome": "success"}]}]}],
    "pydantic-evals": [{"name": "d", "cases": [{"name": "c", "inputs": "q", "expected_output": "a",
                        "evaluators": [{"Contains": "a"}]}], "evaluators": ["EqualsExpected"]}],
    "pydantic-evals (report)": [{
        "name": "r", "dataset_name": "d", "analyses": [{}], "cases": [
         {"name": "c", "inputs": "q", "metadata": {"k": 1}, "expected_output": "a", "output": {"a": 1},
          "metrics": {"input_tokens": 1, "cost": 0.5, "requests": 1}, "scores": {"s": {"value": 0.5, "reason": None}},
          "labels": {"l": {"value": "x"}}, "assertions": {"b": {"value": True}}, "task_duration": 0.5,
          "evaluator_failures": [{"name": "e", "error_message": "m"}]}],
        "failures": [{"name": "f", "inputs": "q", "error_message": "m", "error_stacktrace": "s"}]}],
    "openai-messages (of ShareGPT)": [{"id": "s", "score": 1, "conversations": [
        {"from": "human", "value": "q"}, {"from": "function_call", "value": '{"name": "n", "arguments": {"a": 1}}'},
        {"from": "observation", "value": "o"}, {"from": "gpt", "value": "a"}]}],
    "openai-messages": [{"id": "m", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a",
                         "tool_calls": [{"id": "t", "function": {"name": "n", "arguments": "{}"}}]},
                         {"role": "tool", "tool_call_id": "t", "content": "o"}]}],
}  # fmt: skip
ODD = (None, 7, [], {}, [None], {"a": [1]}, 10**400, "0001-01-01T00:00:00+14:00",
       "9999-12-31T23:59:59-14:00")  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*at, key))


def replaced(value: Any, at: tuple[Any, ...], by: Any) -> Any:
    if not at:
        return by
    value = copy.copy(value)
    value[at[0]] = replaced(value[at[0]], at[1:], by)
    return value


@pytest.mark.parametrize(
    "ninth", [0, *(pytest.param(n, marks=pytest.mark.slow("imports thousands of files")) for n in range(1, 9))]
)
@pytest.mark.parametrize("format", RECORDS)
def test_whatever_stands_in_a_record_it_is_read_or_refused(tmp_path, format, ninth):
    """Each ninth has all values and all places, and the nine have every value at every place."""
    importer = load("importers", format.partition(" ")[0])
    path = tmp_path / "x.jsonl"
    read = 0
    for number, at in enumerate(places(RECORDS[format])):
        written(path, replaced(RECORDS[format], at, ODD[(number + ninth) % len(ODD)]))
        with suppress(InputError):
            importer.import_files([path], tmp_path / "out", None)
            read += 1
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert read > 0


def test_halves_of_characters_are_replaced_and_told(tmp_path):
    """Programs in JavaScript cut texts between the two halves of a character, and write them so."""
    path = tmp_path / "cut.jsonl"
    lines = [
        session_line(0, "user", "q"),
        session_line(1, "assistant", "cut \ud83d", "m"),
        session_line(2, "user", "😀"),
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done, [case] = imported(tmp_path, "claude-code", path)
    trace = case["embedded_trace"]
    assert trace["output"]["final_answer"] == "cut \ufffd"
    assert trace["messages"][2]["content"] == "😀"
    assert "1 record with half characters" in str(done.notes)
    path.write_text(path.read_text() + '{"sessionId": "\\ud83d", NaN}\n')
    with pytest.raises(InputError, match="not valid JSON"):
        imported(tmp_path / "other", "claude-code", path)


def test_numbers_that_json_does_not_have_are_left_out_and_counted(tmp_path):
    """Python writes NaN and Infinity into its JSON."""
    path = tmp_path / "samples_t_2026-03-04T10-00-00.0.jsonl"
    shared = {"arguments": [["Q 😀", {}]], "resps": [["5"]], "filtered_resps": ["5"], "metrics": ["acc", "norm"]}
    samples = [
        {"doc_id": 0, **shared, "acc": 1.0, "norm": math.nan},
        {"doc_id": 1, **shared, "acc": -math.inf, "norm": 1.0},
    ]
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    assert detected(head_of(path)) == "lm-eval"
    done, cases = imported(tmp_path, "lm-eval", path)
    listed = [case["embedded_trace"]["metrics"]["custom"] for case in cases]
    assert listed == [{"acc": 1.0, "reward": 1.0}, {"norm": 1.0}]
    assert [note for note in done.notes if "NaN" in note or "halves" in note] == [
        "lost: values NaN or Infinity, which JSON does not have: 2"
    ]
    log = {"version": 2, "status": "success", "eval": {}, "plan": {}, "score": math.nan}
    path.write_text(json.dumps(log, indent=1))
    assert detected(head_of(path)) == "inspect"


@pytest.mark.parametrize("depth", [90, 150, 50_000])
def test_what_is_imported_can_be_run_and_what_is_too_deep_names_its_line(tmp_path, depth):
    deep = '{"a":' * depth + "1" + "}" * depth
    line = json.dumps(session_line(1, "assistant", [{**USE, "input": "DEEP"}], "m")).replace('"DEEP"', deep)
    path = tmp_path / "deep.jsonl"
    path.write_text(json.dumps(session_line(0, "user", "q")) + "\n" + line + "\n")
    if depth > 100:
        with pytest.raises(InputError, match="2  is nested too deeply"):
            imported(tmp_path, "claude-code", path)
        back = json.dumps(session_line(1, "user", [{**BACK, "content": "DEEP"}])).replace('"DEEP"', deep)
        path.write_text(f"\n{back}\n")
        with pytest.raises(InputError, match="2  is nested too deeply"):
            imported(tmp_path, "claude-code", path)
        return
    imported(tmp_path, "claude-code", path)
    assert len(list(load_suite(tmp_path / "out" / "eval.yaml").cases)) == 1


def test_paths_and_control_characters_in_a_session_stay_text(tmp_path):
    """The id of a session names no file, and nothing of it reaches the terminal as it is."""
    id = "/etc/\x1b[2Jpass\nwd/../.."
    lines = [{**session_line(0, "user", "q\x00\u202e"), "sessionId": id}]
    lines += [{**session_line(1, "assistant", [{**USE, "name": "\x1b]0;evil\x07"}], "m"), "sessionId": id}]
    _, [case] = imported(tmp_path, "claude-code", written(tmp_path / "x.jsonl", lines))
    assert (case["id"], case["input"]["user_message"]) == (id, "q\x00\u202e")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "cases.jsonl",
        "eval.yaml",
        "x.jsonl",
    ]


WITH_SECRETS = {
    "claude-code": [
        session_line(0, "user", "key SECRET"),
        session_line(1, "assistant", [{**USE, "input": {"k": "SECRET"}}]),
    ],
    "openai-messages": [{"id": "a", "messages": [{"role": "user", "content": "SECRET"}], "score": 1}],
    "langfuse": [{**RECORDS["langfuse"][0], "input": [{"role": "user", "content": "SECRET"}]}],
}


@pytest.mark.parametrize("format", WITH_SECRETS)
def test_secrets_of_the_environment_are_in_nothing_that_is_written(tmp_path, monkeypatch, format):
    secret = "sk-of-a-user-4711"
    monkeypatch.setenv("SOME_API_KEY", secret)
    monkeypatch.setenv("OTHER_TOKEN", "assistant")
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in WITH_SECRETS[format]).replace("SECRET", secret))
    importer = load("importers", format)
    importer.import_files([path], tmp_path / "out", None)
    text = (tmp_path / "out" / "cases.jsonl").read_text()
    assert (secret in text, "***MASKED***" in text) == (False, True)
    assert list(load_suite(tmp_path / "out" / "eval.yaml").cases)  # keys and roles stay what they are


def test_a_large_session_is_written_in_pieces_and_trials_in_their_order(tmp_path):
    """Recordings that name their trials may come in another order than that in which they are counted."""
    long = "x" * 700_000
    lines = [
        {"doc_id": 1, "resps": [[f"{long}{n}"]], "arguments": [[f"{long}q", ""]], "metrics": [], "trial": 1 - n}
        for n in (0, 1)
    ]
    _, [case] = imported(tmp_path, "lm-eval", written(tmp_path / "x.jsonl", lines), mapping={"trial": "trial"})
    traces = case["embedded_trace"]
    assert [trace["trial"] for trace in traces] == [0, 1]
    assert [trace["output"]["final_answer"][-1] for trace in traces] == ["1", "0"]
    assert [message["role"] for message in traces[0]["messages"]] == ["user", "assistant"]
    assert len(traces[0]["messages"][0]["content"]) == len(long) + 1


def test_lines_of_other_systems_are_read_and_none_that_is_no_text(tmp_path):
    path = tmp_path / "x.jsonl"
    lines = [json.dumps(session_line(0, "user", "q")), "", json.dumps(session_line(1, "assistant", "a", "m"))]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, ""]).encode())
    _, [case] = imported(tmp_path, "claude-code", path)
    assert [message["content"] for message in case["embedded_trace"]["messages"]] == ["q", "a"]
    path.write_bytes(path.read_bytes() + b'{"type": "user", "sessionId": "s", "nobody reads this": "\xff"}\n')
    with pytest.raises(InputError, match="4  is not UTF-8 text"):
        imported(tmp_path / "other", "claude-code", path)


def test_lines_of_two_sessions_that_are_mixed_may_have_parts_of_other_types(tmp_path):
    """Such lines are set aside on disk, which must not be stricter than their first reading."""
    lines = [session_line(n, "user", f"q{n}") | {"sessionId": f"s{n % 2}"} for n in range(4)]
    for odd, message in ((5.5, "expected text or blocks"), (None, None)):
        lines[2]["message"]["content"] = odd
        lines[3]["usage"] = {"input_tokens": 2**70}
        path = written(tmp_path / "mixed.jsonl", lines)
        if message is None:
            _, cases = imported(tmp_path / "suite", "claude-code", path)
            assert [case["id"] for case in cases] == ["s0", "s1"]
        else:
            with pytest.raises(InputError, match=message):
                imported(tmp_path / "none", "claude-code", path)
