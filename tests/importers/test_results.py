"""Results and datasets of other tools: lm-evaluation-harness, deepeval, pydantic_evals, SWE-agent."""

from __future__ import annotations

import json

import pytest
import yaml

from evalwright import evaluate, load
from evalwright.errors import InputError
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from evalwright.importers.sources import expanded
from importers.transcripts import imported, written

ANSWER = "output.final_answer"


def sample(doc: int, **more: object) -> dict:
    return {
        "doc_id": doc, "target": "5", "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {}}}, "resps": [["raw"]],
        "filtered_resps": ["5"], "filter": "none", "metrics": ["exact_match"], "exact_match": 1.0, **more,
    }  # fmt: skip


def test_samples_of_the_harness_are_named_by_task_and_document(tmp_path):
    choices = {f"gen_args_{i}": {"arg_0": "Q", "arg_1": text} for i, text in enumerate((" a", " b"))}
    chosen = sample(
        4, arguments=choices, filtered_resps=[["-3.0", "False"], ["-1.0", "True"]], metrics=["acc"], acc=0.0
    )
    file = written(tmp_path / "samples_gsm8k_2026-03-04T10-00-00.0.jsonl", [sample(0), chosen])
    _, cases = imported(tmp_path, "lm-eval", file)
    answers = {case["id"]: case["embedded_trace"]["output"]["final_answer"] for case in cases}
    assert answers == {"gsm8k/0": "5", "gsm8k/4": " b"}
    assert [case["embedded_trace"]["metrics"]["custom"]["reward"] for case in cases] == [1.0, 0.0]
    assert {case["group"] for case in cases} == {"gsm8k"}


def test_answers_under_several_filters_are_several_systems(tmp_path):
    file = written(tmp_path / "samples_t_2026-03-04T10-00-00.0.jsonl", [sample(0), sample(0, filter="strict")])
    done, (case,) = imported(tmp_path, "lm-eval", file)
    assert [trace["variant_name"] for trace in case["embedded_trace"]] == ["recorded (none)", "recorded (strict)"]
    names = [system["name"] for system in yaml.safe_load(done.files[1].read_text())["systems"]]
    assert names == ["recorded (none)", "recorded (strict)"]


def test_files_of_one_task_under_one_filter_each_are_trials(tmp_path):
    files = [
        written(tmp_path / f"samples_t_2026-03-0{day}T10-00-00.0.jsonl", [sample(0, filter=name)])
        for day, name in enumerate(("strict", "none"), start=4)
    ]
    done, (case,) = imported(tmp_path, "lm-eval", *files)
    listed = [(trace["variant_name"], trace["trial"]) for trace in case["embedded_trace"]]
    assert (listed, done.trials) == ([("recorded", 0), ("recorded", 1)], 2)


def test_a_golden_without_an_answer_is_a_case_alone(tmp_path):
    goldens = [
        {
            "input": "q",
            "actualOutput": "a",
            "expectedOutput": "b",
            "expectedTools": [{"name": "look"}],
            "name": "first",
        },
        {"input": "other", "comments": "hm", "context": ["c"], "toolsCalled": [{"name": "t"}], "tokenCost": "much"},
        {"scenario": "refund", "turns": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]},
    ]
    (tmp_path / "goldens.json").write_text(json.dumps(goldens))
    done, cases = imported(tmp_path, "deepeval", tmp_path / "goldens.json")
    assert [case["id"] for case in cases] == ["first", "golden-2", "golden-3"]
    assert cases[0]["expected"] == {"facts": {"expected_output": "b"}, "must_call_tools": ["look"]}
    assert ("embedded_trace" in cases[1], cases[1]["metadata"]) == (False, {"context": ["c"], "comments": "hm"})
    assert done.notes == [
        "1 case without a recording: name your system in eval.yaml before a run",
        "lost: costs that are negative or not numbers: 1",
        "lost: tools called of goldens without an actual_output: 1",
    ]


def test_parts_of_a_golden_of_the_wrong_shape_and_misspelt_keys_are_told(tmp_path):
    goldens = [{"input": "q", "toolsCalled": "t", "expectedTools": ["t"]}, {"scenario": "s", "turns": {}}]
    (tmp_path / "wrong.json").write_text(json.dumps(goldens))
    with pytest.raises(InputError) as caught:
        imported(tmp_path, "deepeval", tmp_path / "wrong.json")
    keys = ["[0].toolsCalled", "[0].expectedTools[0]", "[1].turns"]
    assert [problem.key for problem in caught.value.problems] == keys
    (tmp_path / "goldens.json").write_text(json.dumps([{"input": "q", "actualOuput": "a", "completionTime": 1}]))
    done, _ = imported(tmp_path, "deepeval", tmp_path / "goldens.json")
    assert done.notes[1:] == ["lost: keys 'actual_ouput' of goldens (did you mean \"actual_output\"?): 1"]


def test_calls_of_a_golden_stand_before_its_answer_with_what_they_gave(tmp_path):
    calls = [{"name": "t", "inputParameters": {"a": 1}, "reasoning": "why", "output": {"r": 1}}, {"name": "u"}]
    turn = {"role": "assistant", "content": "yes", "toolsCalled": [{"name": "v", "output": [1]}]}
    goldens = [{"input": "q", "actualOutput": "a", "toolsCalled": calls}, {"scenario": "s", "turns": [turn, turn]}]
    (tmp_path / "goldens.json").write_text(json.dumps(goldens))
    _, cases = imported(tmp_path, "deepeval", tmp_path / "goldens.json")
    first, second = (case["embedded_trace"] for case in cases)
    told = [
        (message["role"], message["content"], (message["tool_call"] or message)["name"])
        for message in first["messages"]
    ]
    called = [("assistant", None, "t"), ("assistant", None, "u"), ("tool", {"r": 1}, "t")]
    assert told == [("user", "q", None), *called, ("assistant", "a", None)]
    assert first["tool_results"] == [{"name": "t", "content": {"r": 1}, "tool_call_id": "call-1"}]
    assert (first["messages"][1]["thinking"], first["tool_calls"][0]["arguments"]) == ("why", {"a": 1})
    assert [result["tool_call_id"] for result in second["tool_results"]] == ["call-1", "call-2"]


def test_goldens_in_a_table_have_lists_as_json(tmp_path):
    table = tmp_path / "goldens.txt"  # told by what is in it
    table.write_text('input,actual_output,retrieval_context\nq,a,"[""one""]"\n')
    assert detected(head_of(table)) == "deepeval"
    _, (case,) = imported(tmp_path, "deepeval", table)
    assert case["embedded_trace"]["extra"]["retrieval_context"] == ["one"]
    table.write_text('input,actual_output\nq,"a\nb"\nq,a,b\nq,"a\n')
    with pytest.raises(InputError) as caught:
        imported(tmp_path / "again", "deepeval", table)
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (4, "expected 2 cells as in the first line, found 3 cells"),
        (5, "is not CSV: a quote is never closed"),
    ]


CAPITALS = """\
name: capitals
cases:
- {name: fr, inputs: Capital?, expected_output: Paris}
- inputs: {a: 1}
  evaluators: [{Contains: x}, {LLMJudge: {rubric: Is it kind?, model: "openai:m", include_input: true}}]
- {inputs: {b: 1}, expected_output: {v: 1}, evaluators: [Other]}
evaluators: [EqualsExpected, {Contains: {value: ar, case_sensitive: false}}, {MaxDuration: 2.3}, Custom]
"""


def test_cases_of_pydantic_evals_bring_the_evaluators_that_ours_can_stand_for(tmp_path):
    file = tmp_path / "capitals"  # told by what is in it
    file.write_text(CAPITALS)
    assert detected(head_of(file)) == "pydantic-evals"
    done, cases = imported(tmp_path, "pydantic-evals", file)
    assert [case["input"] for case in cases] == [{"inputs": "Capital?"}, {"a": 1}, {"b": 1}]
    suite = yaml.safe_load((tmp_path / "out" / "eval.yaml").read_text())
    shared = [evaluator["name"] for evaluator in suite["evaluators"]]
    assert shared == ["EqualsExpected", "Contains", "MaxDuration"]
    assert [one["config"].get("case_sensitive") for one in suite["evaluators"]] == [None, False, None]
    assert suite["evaluators"][2]["config"] == {"max_ms": 2300}
    first, second, third = (case["evaluators"] for case in cases)
    assert first == shared
    assert [one["name"] for one in second[3:]] == ["Contains-2", "LLMJudge"]
    assert second[3]["config"] == {"all_of": ["x"], "none_of": [], "case_sensitive": True}
    asked = {"model": "openai/m", "nl_assertions": ["Is it kind?"], "include_in_prompt": ["input", ANSWER]}
    assert (second[4]["type"], second[4]["config"]) == ("llm_judge", asked)
    assert third == [{"name": "EqualsExpected", "config": {"field": "output.structured"}}, *shared[1:]]
    assert {"lost: evaluators 'Custom': 1", "lost: evaluators 'Other': 1"} <= {*done.notes}


def test_keys_of_a_dataset_of_pydantic_evals_that_nothing_reads_are_counted(tmp_path):
    (tmp_path / "d.yaml").write_text("cases: [{inputs: q, expectd_output: a}]\nreport_evaluators: 5\nowner: me\n")
    done, _ = imported(tmp_path, "pydantic-evals", tmp_path / "d.yaml")
    assert done.notes[-2:] == [
        "lost: keys 'expectd_output' of cases (did you mean \"expected_output\"?): 1",
        "lost: keys 'owner' of the dataset: 1",
    ]


def test_what_an_import_lost_is_told_by_every_run_and_what_a_case_lacks_is_skipped(tmp_path):
    (tmp_path / "capitals.yaml").write_text(CAPITALS.replace("{LLMJudge", "{Custom"))
    imported(tmp_path, "pydantic-evals", tmp_path / "capitals.yaml")
    suite = tmp_path / "out" / "eval.yaml"
    answer = 'def answer(case):\n    n = case["input"]\n'
    answer += (
        '    return {"structured": {"v": 1}, "final_answer": "Bar"} if "b" in n else "xar" if "a" in n else "Paris"\n'
    )
    (tmp_path / "out" / "said.py").write_text(answer)
    system = {"name": "s", "adapter": "python_function", "target": "said:answer"}
    suite.write_text(yaml.safe_dump({**yaml.safe_load(suite.read_text()), "systems": [system]}))
    result = evaluate(load(suite), out=tmp_path / "runs")
    assert result.passed
    skipped = [(cell.case.id, item.reason) for cell in result for item in cell.results.values() if item.skipped]
    assert skipped == [("case-2", "the case has no fact 'expected_output'")]
    told = " ".join(result.summary.warnings)
    assert "lost in the import: evaluators 'Custom'" in told
    assert "lost in the import: evaluators 'Other'" in told


def test_the_cases_of_a_dataset_are_judged_by_its_own_evaluators_alone(tmp_path):
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("cases: [{inputs: a}]\nevaluators: [EqualsExpected, {Contains: x}]\n")
    two.write_text("cases: [{inputs: b}]\nevaluators: [EqualsExpected, {Contains: y}]\n")
    _, cases = imported(tmp_path, "pydantic-evals", one, two)
    assert [case["evaluators"] for case in cases] == [["EqualsExpected", "Contains"], ["EqualsExpected", "Contains-2"]]
    told = evaluate(
        [{"input": "a", "expected": {"answer_should_include": [""]}}], lambda asked: "z", out=tmp_path / "r"
    )
    assert "every answer contains the empty text" in str(told.summary.warnings)


def test_wrong_evaluators_of_pydantic_evals_are_mistakes_with_their_places(tmp_path):
    (tmp_path / "f.yaml").write_text(
        "cases:\n- {inputs: a, evaluators: {Contains: y}}\n"
        "- {inputs: a, evaluators: [{Contains: {valu: y}}, {A: 1, B: 2}, {Equals: {}}, {MaxDuration: soon}]}\n"
    )
    with pytest.raises(InputError) as caught:
        imported(tmp_path, "pydantic-evals", tmp_path / "f.yaml")
    places = [(problem.line, problem.key) for problem in caught.value.problems]
    assert places == [(2, "cases[0].evaluators"), *((3, f"cases[1].evaluators[{i}]") for i in range(4))]


@pytest.mark.parametrize(
    ("format", "first", "second", "said"),
    [
        ("pydantic-evals", {"inputs": "x"}, {"inputs": "z"}, "asks or expects something else"),
        ("pydantic-evals", {"inputs": "x"}, {"inputs": "x"}, "duplicate case"),
        ("deepeval", {"input": "x"}, {"input": "z"}, "asks or expects something else"),
        ("deepeval", {"input": "x", "actual_output": "a"}, {"input": "x"}, "duplicate case"),
        ("deepeval", {"input": "x", "actual_output": "a"}, {"input": "z", "actual_output": "a"}, "something else"),
        ("deepeval", {"input": "x", "actual_output": "a", "expected_output": "a"},
         {"input": "x", "actual_output": "a", "expected_output": "X"}, "asks or expects something else"),
    ],
)  # fmt: skip
def test_two_cases_of_one_name_are_a_mistake_with_both_places(tmp_path, format, first, second, said):
    of_one_name = [{"name": "c", **first}, {"name": "c", **second}]
    whole = {"cases": of_one_name} if format == "pydantic-evals" else of_one_name
    (tmp_path / "f.json").write_text(json.dumps(whole, indent=1))
    with pytest.raises(InputError) as caught:
        imported(tmp_path, format, tmp_path / "f.json")
    (problem,) = caught.value.problems
    assert said in problem.message
    assert problem.key.endswith("[1]")
    assert (problem.line or 0) > 2
    assert "[0]" in problem.message
    assert not (tmp_path / "out" / "cases.jsonl").exists()


def test_goldens_that_ask_and_expect_the_same_are_trials(tmp_path):
    goldens = [{"name": "c", "input": "x", "actual_output": answer, "expected_output": "b"} for answer in "ab"]
    (tmp_path / "f.json").write_text(json.dumps(goldens))
    _, (case,) = imported(tmp_path, "deepeval", tmp_path / "f.json")
    assert [one["output"]["final_answer"] for one in case["embedded_trace"]] == ["a", "b"]


def test_a_command_in_the_text_of_swe_agent_is_a_call_with_its_observation(tmp_path):
    history = [
        {"role": "user", "content": "fix it", "message_type": "observation"},
        {
            "role": "assistant", "content": "I look.\n```\nls\n```", "thought": "I look.", "action": "ls",
            "tool_calls": None, "thinking_blocks": [{"type": "thinking", "thinking": "Where?"}],
        },
        {"role": "user", "content": "a.py", "message_type": "observation"},
        {"role": "user", "content": "Go on."},
    ]  # fmt: skip
    info = {"exit_status": "submitted", "model_stats": {}}
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.traj").write_text(json.dumps({"trajectory": [], "history": history, "info": info}))
    files, _ = expanded([tmp_path / "runs"])
    _, (case,) = imported(tmp_path, "swe-agent", *files)
    trace = case["embedded_trace"]
    assert [(call["name"], call["arguments"]) for call in trace["tool_calls"]] == [("bash", {"command": "ls"})]
    assert [message["role"] for message in trace["messages"]] == ["user", "assistant", "tool", "user"]
    assert trace["messages"][1]["thinking"] == "Where?"


def test_a_trajectory_of_swe_agent_leaves_its_demonstrations_out(tmp_path):
    call = {"id": "c", "function": {"name": "bash", "arguments": '{"x": 1}'}}
    history = [
        {"role": "user", "content": "example", "is_demo": True},
        {"role": "user", "content": "fix it"},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "content": "seen", "tool_call_ids": ["c"]},
    ]
    stats = {"instance_cost": 0.5, "tokens_sent": 9, "tokens_received": 2}
    info = {"exit_status": "exit_cost", "submission": "patch", "model_stats": stats}
    (tmp_path / "bug-1.traj").write_text(json.dumps({"trajectory": [], "history": history, "info": info}))
    _, (case,) = imported(tmp_path, "swe-agent", tmp_path / "bug-1.traj")
    trace = case["embedded_trace"]
    assert (case["id"], case["input"]["user_message"], trace["output"]["final_answer"]) == ("bug-1", "fix it", "patch")
    assert [(m["content"], m["name"]) for m in trace["messages"][1:]] == [("I look.", None), ("seen", "bash")]
    assert (trace["metrics"]["cost_usd"], trace["extra"]["stopped"]) == (0.5, "exit_cost")
