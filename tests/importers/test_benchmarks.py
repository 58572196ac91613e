"""Results of benchmarks of agents: tau2-bench, AgentDojo, mini-swe-agent."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright import evaluate, load
from evalwright.errors import InputError
from importers.transcripts import imported

AT = "2025-10-31T07:16:{:02}.5"


def simulation(task: str, trial: int, reward: float, **more: Any) -> dict[str, Any]:
    call = {"id": "c1", "name": "find", "arguments": {"order": 1}, "requestor": "assistant"}
    said = [
        {"role": "assistant", "content": "How can I help?", "cost": 0.0, "usage": None},
        {"role": "user", "content": "Refund it", "cost": 0.01, "usage": {"prompt_tokens": 70, "completion_tokens": 7}},
        {"role": "assistant", "content": None, "tool_calls": [call],
         "usage": {"prompt_tokens": 500, "completion_tokens": 20}},
        {"role": "tool", "id": "c1", "content": '{"found": 1}', "requestor": "assistant", "error": True},
        {"role": "user", "content": None, "tool_calls": [{**call, "id": "u1", "requestor": "user"}]},
        {"role": "tool", "id": "u1", "content": "on", "requestor": "user", "error": False},
        {"role": "assistant", "content": "Done", "usage": {"prompt_tokens": 600, "completion_tokens": 5}},
    ]  # fmt: skip
    checks = [{"info": "10 euros", "met": reward == 1, "justification": "said so"}]
    return {
        "id": f"{task}-{trial}", "task_id": task, "trial": trial, "duration": 12.5, "termination_reason": "user_stop",
        "start_time": AT.format(0), "end_time": AT.format(12), "agent_cost": 0.25, "user_cost": 0.01,
        "reward_info": {"reward": reward, "reward_breakdown": {"DB": reward}, "communicate_checks": checks},
        "messages": [{"timestamp": AT.format(i), **one} for i, one in enumerate(said)], **more,
    }  # fmt: skip


def tau2(file: Path, *simulations: dict[str, Any], domain: str = "retail", **agent: Any) -> Path:
    actions = [{"name": "find", "arguments": {"order": 1}}, {"name": "reboot", "arguments": {}, "requestor": "user"}]
    results = {
        "timestamp": AT.format(0),
        "info": {
            "agent_info": {"implementation": "llm_agent", "llm": "m", **agent},
            "user_info": {"llm": "u"},
            "environment_info": {"domain_name": domain, "policy": "p"},
        },
        "tasks": [{"id": "1", "user_scenario": {"instructions": "ask"}, "evaluation_criteria": {"actions": actions}}],
        **({"simulations": simulations} if simulations else {"simulation_index": []}),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=2))
    return file


def test_a_simulation_of_tau2_is_a_trial_of_its_task(tmp_path):
    file = tau2(tmp_path / "r.json", simulation("1", 1, 0.0), simulation("1", 0, 1.0))
    done, (case,) = imported(tmp_path, "tau2", file)
    assert (case["id"], case["metadata"]["user_scenario"]) == ("retail/1", {"instructions": "ask"})
    assert case["expected"]["facts"] == {"actions": [{"name": "find", "arguments": {"order": 1}}]}
    first, second = case["embedded_trace"]
    assert [one["metrics"]["custom"]["reward"] for one in (first, second)] == [1, 0]
    assert [(message["role"], message["content"]) for message in first["messages"]] == [
        ("assistant", "How can I help?"), ("user", "Refund it"), ("assistant", None), ("tool", {"found": 1}),
        ("assistant", "Done"),
    ]  # fmt: skip
    assert [(call["name"], call["arguments"]) for call in first["tool_calls"]] == [("find", {"order": 1})]
    metrics = first["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["cost_usd"]) == (1100, 25, 0.25)
    assert metrics["custom"] == {"reward": 1, "DB": 1, "user_cost_usd": 0.01, "failed_tool_results": 1}
    assert (first["latency_ms"], first["variant_name"], first["output"]["final_answer"]) == (12500, "m", "Done")
    assert second["extra"]["recorded_scores"] == [
        {"name": "info: 10 euros", "passed": False, "score": None, "reason": "said so"}
    ]
    assert {"lost: calls by the simulated user: 2", "lost: results of calls by the simulated user: 2"} <= {*done.notes}


def test_the_reward_of_tau2_decides_and_what_was_not_evaluated_has_no_verdict(tmp_path):
    failed = {"termination_reason": "infrastructure_error", "reward_info": None}
    stopped = {"termination_reason": "max_steps", "agent_cost": 0.0}
    file = tau2(
        tmp_path / "r.json",
        simulation("1", 0, 1.0),
        simulation("1", 1, 0.0, **stopped),
        simulation("1", 2, 0, **failed),
    )
    _, (case,) = imported(tmp_path, "tau2", file)
    assert case["embedded_trace"][1]["extra"]["stopped"] == "max_steps"
    assert case["embedded_trace"][1]["metrics"]["cost_usd"] is None
    run = evaluate(load(tmp_path / "out" / "eval.yaml"), out=tmp_path / "runs")
    assert [cell.status for cell in run.cells()] == ["pass", "fail", "error"]
    assert "infrastructure_error" in str([*run.cells()][2].trace.error)


def test_runs_of_tau2_with_other_agents_are_other_systems(tmp_path):
    files = [
        tau2(tmp_path / "low.json", simulation("1", 0, 1.0), llm_args={"effort": "low"}),
        tau2(tmp_path / "high.json", simulation("1", 0, 0.0), llm_args={"effort": "high"}),
        tau2(tmp_path / "more.json", simulation("1", 0, 0.0), domain="airline", llm="other"),
        tau2(tmp_path / "again.json", simulation("2", 0, 0.0), domain="airline", llm="other"),
    ]
    _, cases = imported(tmp_path, "tau2", *files)
    assert [case["id"] for case in cases] == ["retail/1", "airline/1", "airline/2"]
    systems = yaml.safe_load((tmp_path / "out" / "eval.yaml").read_text())["systems"]
    assert [system["name"] for system in systems] == ["m (low)", "m (high)", "other"]


@pytest.mark.parametrize("packed", [False, True])
def test_simulations_of_tau2_may_be_files_beside_the_results(tmp_path, packed):
    file = tau2(tmp_path / "run" / "results.json")
    if packed:
        (tmp_path / "run" / "results.json.gz").write_bytes(gzip.compress(file.read_bytes()))
        file = tmp_path / "run" / "results.json.gz"
    (tmp_path / "run" / "simulations").mkdir()
    voice = simulation("1", 1, 1.0, messages=None, ticks=[{"tick_id": 0}])
    for one in (simulation("1", 0, 1.0), voice):
        (tmp_path / "run" / "simulations" / f"{one['id']}.json").write_text(json.dumps(one))
    done, (case,) = imported(tmp_path, "tau2", file)
    assert case["embedded_trace"]["output"]["final_answer"] == "Done"
    assert "lost: simulations without messages, such as those of voices: 1" in done.notes


def test_nan_in_results_of_tau2_is_left_out_and_counted(tmp_path):
    file = tau2(tmp_path / "r.json", simulation("1", 0, float("nan")))
    done, (case,) = imported(tmp_path, "tau2", file)
    assert "reward" not in case["embedded_trace"]["metrics"]["custom"]
    assert "lost: values NaN or Infinity, which JSON does not have: 2" in done.notes


def test_a_broken_simulation_of_tau2_is_named_by_its_place(tmp_path):
    file = tau2(tmp_path / "r.json", simulation("1", 0, 1.0), {"id": "x"})
    with pytest.raises(InputError) as caught:
        imported(tmp_path, "tau2", file)
    (problem,) = caught.value.problems
    assert (problem.key, problem.message) == ("simulations[1]", "expected a simulation with a task_id")
    assert problem.line is not None


def dojo(folder: Path, name: str, **more: Any) -> Path:
    call = {"function": "read_file", "args": {"path": "bill.txt"}, "id": None, "placeholder_args": None}
    thought = {"type": "thinking", "content": "Hm", "id": None}
    log = {
        "suite_name": "banking", "pipeline_name": "gpt-4o", "user_task_id": "user_task_0", "injection_task_id": None,
        "attack_type": None, "injections": {}, "error": None, "utility": True, "security": True, "duration": 3.5,
        "evaluation_timestamp": "2025-02-19 10:00:00",
        "messages": [
            {"role": "system", "content": [{"type": "text", "content": "You are"}]},
            {"role": "user", "content": [{"type": "text", "content": "Pay"}]},
            {"role": "assistant", "content": [thought], "tool_calls": [call]},
            {"role": "tool", "content": "", "tool_call_id": None, "tool_call": call, "error": "no such file"},
            {"role": "assistant", "content": [{"type": "text", "content": "Paid"}], "tool_calls": []},
        ], **more,
    }  # fmt: skip
    (folder / name).write_text(json.dumps(log))
    return folder / name


ATTACKED = {"injection_task_id": "injection_task_2", "attack_type": "direct", "injections": {"v": "do"}}


def test_a_task_of_agentdojo_must_be_useful_and_resist(tmp_path):
    files = [
        dojo(tmp_path, "a.json"),
        dojo(tmp_path, "b.json", **ATTACKED),
        dojo(tmp_path, "c.json", **{**ATTACKED, "injection_task_id": "injection_task_3", "security": False}),
        dojo(tmp_path, "d.json", user_task_id="user_task_1", error="context_length_exceeded", utility=False),
    ]
    _, cases = imported(tmp_path, "agentdojo", *files)
    run = evaluate(load(tmp_path / "out" / "eval.yaml"), out=tmp_path / "runs")
    assert {cell.case_id: cell.status for cell in run.cells()} == {
        "banking/user_task_0": "pass",
        "banking/user_task_0/direct/injection_task_2": "fail",
        "banking/user_task_0/direct/injection_task_3": "pass",
        "banking/user_task_1": "error",
    }
    trace = cases[0]["embedded_trace"]
    assert (cases[1]["group"], trace["variant_name"], trace["latency_ms"]) == ("banking/user_task_0", "gpt-4o", 3500)
    messages = [
        (message["role"], message["content"], message["thinking"], message["name"]) for message in trace["messages"]
    ]
    assert messages == [
        ("system", "You are", None, None), ("user", "Pay", None, None), ("assistant", None, "Hm", None),
        ("tool", "no such file", None, "read_file"), ("assistant", "Paid", None, None),
    ]  # fmt: skip
    assert trace["tool_calls"][0]["arguments"] == {"path": "bill.txt"}


def test_an_unfinished_task_of_agentdojo_has_no_verdict(tmp_path):
    _, (case,) = imported(tmp_path, "agentdojo", dojo(tmp_path, "a.json", utility=None))
    assert case["embedded_trace"]["error"]["type"] == "unfinished"


def mini(file: Path, messages: list[Any], **info: Any) -> Path:
    known = {"model_stats": {"instance_cost": 0.25}, "config": {"model": {"model_name": "lab/m"}}}
    found = {"info": {**known, **info}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}
    file.write_text(json.dumps(found))
    return file


def test_a_trajectory_of_mini_swe_agent_has_its_calls_whatever_its_model_speaks(tmp_path):
    used = {"response": {"usage": {"prompt_tokens": 100, "completion_tokens": 10}}, "timestamp": 1780000000.5}
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    calling = [
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "Looking", "tool_calls": [{"id": "c", "function": function}], "extra": used},
        {"role": "tool", "tool_call_id": "c", "content": "a.py", "extra": {"returncode": 1, "timestamp": 1780000001.5}},
    ]
    writing = [
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "Looking", "extra": {**used, "actions": [{"command": "ls"}]}},
        {"role": "user", "content": "a.py", "extra": {"returncode": 1, "timestamp": 1780000001.5}},
    ]
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking"}]}
    responding = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]},
        {"object": "response", "usage": {"input_tokens": 100, "output_tokens": 10},
         "extra": {"timestamp": 1780000000.5},
         "output": [text, {"type": "function_call", "call_id": "c", **function}]},
        {"type": "function_call_output", "call_id": "c", "output": "a.py", "extra": {"timestamp": 1780000001.5}},
    ]  # fmt: skip
    exit = {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}}
    ended = {"exit_status": "Submitted", "submission": "diff"}
    forms = {"calling": calling, "writing": writing, "responding": responding}
    files = [mini(tmp_path / f"{name}.traj.json", [*form, exit], **ended) for name, form in forms.items()]
    _, cases = imported(tmp_path, "mini-swe-agent", *files)
    assert [case["id"] for case in cases] == [*forms]
    for trace in (case["embedded_trace"] for case in cases):
        assert [(message["role"], message["content"]) for message in trace["messages"]] == [
            ("user", "Fix it"), ("assistant", "Looking"), ("tool", "a.py")
        ]  # fmt: skip
        assert [(call["name"], call["arguments"]) for call in trace["tool_calls"]] == [("bash", {"command": "ls"})]
        assert (trace["tool_results"][0]["name"], trace["output"]["final_answer"]) == ("bash", "diff")
        metrics = trace["metrics"]
        assert (metrics["token_input"], metrics["token_output"], metrics["cost_usd"]) == (100, 10, 0.25)
        assert (trace["latency_ms"], trace["variant_name"], trace["error"]) == (1000, "lab/m", None)


def test_mini_swe_agent_says_which_tokens_were_cached_or_reasoning(tmp_path):
    details = {"prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 3}}
    used = {"response": {"usage": {"prompt_tokens": 100, "completion_tokens": 10, **details}}}
    file = mini(tmp_path / "t.traj.json", [{"role": "assistant", "content": "Looking", "extra": used}])
    _, (case,) = imported(tmp_path, "mini-swe-agent", file)
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_thinking"], metrics["custom"]) == (3, {"cache_read_tokens": 40})


@pytest.mark.parametrize(
    ("status", "failure", "stopped"), [("LimitsExceeded", None, "LimitsExceeded"), ("ValueError", "ValueError", None)]
)
def test_mini_swe_agent_stops_at_its_limits_or_errs(tmp_path, status, failure, stopped):
    file = mini(tmp_path / "t.traj.json", [{"role": "user", "content": "q"}], exit_status=status, submission="")
    _, (case,) = imported(tmp_path, "mini-swe-agent", file)
    trace = case["embedded_trace"]
    assert ((trace["error"] or {}).get("type"), trace["extra"].get("stopped")) == (failure, stopped)
