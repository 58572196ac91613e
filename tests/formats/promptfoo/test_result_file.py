"""promptfoo's own result file, written and read."""

from __future__ import annotations

import json
import sys

from evalwright.formats.promptfoo.result_file import ResultsReport
from evalwright.importers.promptfoo_results import PromptfooResults
from evalwright.model.plan import Variant
from evalwright.testing import MemoryStore, a_case, a_plan, a_result, a_summary, a_trace, a_verdict
from formats.promptfoo.runs import ECHO, SCENARIOS, run, run_at


def test_the_result_file_of_promptfoo_is_written(tmp_path):
    config = {**ECHO, "tests": [{"vars": {"q": x}, "assert": [{"type": "equals", "value": "a"}]} for x in "ab"]}
    run(tmp_path, config, options={"output": tmp_path / "out.json"})
    document = json.loads((tmp_path / "out.json").read_text())["results"]
    assert document["stats"] == {"successes": 1, "failures": 1, "errors": 0}
    first, second = document["results"]
    assert (first["success"], first["failureReason"], first["testCase"]["vars"]) == (True, 0, {"q": "a"})
    assert (second["failureReason"], second["response"]) == (1, {"output": "b", "cost": 0})
    [part] = second["gradingResult"]["componentResults"]
    assert (part["pass"], part["assertion"]) == (False, {"type": "equals", "value": "a"})


def test_a_result_has_the_metadata_of_its_test_and_of_its_provider(tmp_path):
    provider = "def call_api(prompt, options, context):\n    return {'output': prompt, 'metadata': {'b': 2, 'c': 3}}\n"
    config = {**ECHO, "providers": ["file://p.py"], "tests": [{"vars": {"q": "x"}, "metadata": {"a": 1, "b": 1}}]}
    run(tmp_path, config, options={"output": tmp_path / "out.json"}, p__py=provider)
    [result] = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    assert result["metadata"] == {"a": 1, "b": 2, "c": 3}


def test_the_result_file_keeps_what_is_unknown_and_one_name_for_each_prompt(tmp_path):
    prompts = ["A first long prompt that asks for {{q}}", "Another prompt, as long as that, asks for {{q}}"]
    provider = "def call_api(prompt, options, context):\n    return {'output': prompt, **context['vars']['more']}\n"
    limit = {"type": "cost", "threshold": 1}
    tests = [{"vars": {"q": str(i), "more": more}, "assert": [limit]} for i, more in enumerate([{}, {"cost": 0}])]
    config = {"prompts": prompts, "providers": ["echo", {"id": "file://own.py", "label": "own"}], "tests": tests}
    out = tmp_path / "out.json"
    first = run(tmp_path, config, options={"output": out}, own__py=provider)
    document = json.loads(out.read_text())["results"]
    labels = {(one["provider"], one["label"]) for one in document["prompts"]}
    assert labels == {(name, prompt) for name in ("echo", "own") for prompt in prompts}
    rows = {(row["promptIdx"], row["testIdx"]): row for row in document["results"]}
    named = [(row["provider"]["label"] or row["provider"]["id"], row["prompt"]["label"]) for row in rows.values()]
    assert {*named} == labels
    assert [rows[2, 0]["cost"], rows[2, 1]["cost"], rows[0, 0]["cost"]] == [None, 0, 0]
    again = run_at(tmp_path / "promptfooconfig.yaml", tmp_path, {"cached": out})
    assert again.statuses == first.statuses == ["pass", "pass", "error", "error", *["pass"] * 4]
    files = PromptfooResults.import_files([out], tmp_path / "imported")
    assert (files.cases, files.traces) == (4, 8)
    recorded = [json.loads(line) for line in (tmp_path / "imported/cases.jsonl").read_text().splitlines()]
    own = [one for case in recorded for one in case["embedded_trace"] if one["variant_name"] == "own"]
    assert sorted((row["input"]["q"], row["metrics"]["cost_usd"]) for row in own) == [
        *[("0", None)] * 2,
        *[("1", 0)] * 2,
    ]


def test_the_result_file_says_what_each_column_took(tmp_path):
    """promptfoo's viewer shows costs and tokens of a column from these sums."""
    code = (
        "def call_api(prompt, options, context):\n"
        "    known = {'cost': 0.25, 'tokenUsage': {'prompt': 3, 'completion': 4}} if prompt == 'a' else {}\n"
        "    return {'output': prompt, **known}\n"
    )
    config = {**ECHO, "providers": ["echo", "file://own.py"], "tests": [{"vars": {"q": x}} for x in "aab"]}
    run(tmp_path, config, options={"output": tmp_path / "out.json"}, own__py=code)
    document = json.loads((tmp_path / "out.json").read_text())["results"]
    echoed, own = (prompt["metrics"] for prompt in document["prompts"])
    assert (echoed["cost"], echoed["tokenUsage"]) == (0, {"numRequests": 3})
    assert (own["cost"], own["tokenUsage"]) == (0.5, {"numRequests": 3, "prompt": 6, "completion": 8, "total": 14})
    assert own["totalLatencyMs"] == sum(row["latencyMs"] for row in document["results"] if row["promptIdx"] == 1)


def test_what_promptfoo_recorded_is_judged_in_place_of_calls(tmp_path):
    tests = [{"vars": {"q": x}, "assert": [{"type": "contains", "value": "x"}]} for x in "abc"]
    rows = [
        {"testIdx": 0, "promptIdx": 0, "testCase": {"vars": {"q": "a"}}, "response": {"output": "ax"}, "latencyMs": 7},
        {"testIdx": 1, "promptIdx": 0, "testCase": {"vars": {"q": "b"}}, "failureReason": 2, "error": "was down"},
    ]
    (tmp_path / "out.json").write_text(json.dumps({"results": {"results": rows}}))
    (tmp_path / "out.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config = {**ECHO, "tests": tests}
    assert run(tmp_path, config, options={"cached": tmp_path / "out.jsonl"}).statuses == ["pass", "error", "error"]
    result = run(tmp_path, config, options={"cached": tmp_path / "out.json"})
    assert result.statuses == ["pass", "error", "error"]
    first, second, third = result.traces.values()
    assert (first.output.final_answer, first.latency_ms) == ("ax", 7)
    assert [second.error.message, third.error.type] == ["was down", "not_recorded"]


def test_a_set_is_followed_by_its_members_and_a_scoring_function_is_no_assertion(tmp_path):
    members = [{"type": "contains", "value": "a"}, {"type": "contains", "value": "z"}]
    asserts = [{"type": "assert-set", "threshold": 0.5, "assert": members}, {"type": "equals", "value": "a"}]
    test = {"vars": {"q": "a"}, "assert": asserts, "assertScoringFunction": "file://s.py:grade"}
    code = "def grade(scores, context):\n    return {'pass': True, 'score': 1, 'reason': 'own'}\n"
    run(tmp_path, {**ECHO, "tests": [test]}, options={"output": tmp_path / "out.json"}, s__py=code)
    [row] = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    listed = [
        (componentResult["assertion"]["type"], componentResult["pass"])
        for componentResult in row["gradingResult"]["componentResults"]
    ]
    assert listed == [("assert-set", True), ("contains", True), ("contains", False), ("equals", True)]


def test_results_are_numbered_and_ordered_as_those_of_promptfoo(tmp_path):
    """A test is repeated as a whole, and as often as it says; the numbers are the original's."""
    run(tmp_path, {**SCENARIOS, "prompts": ["A {{n}}", "B {{n}}"]}, options={"output": tmp_path / "out.json"})
    rows = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    shown = [f"{row['vars']['n']}{row['vars']['k']}{row['vars']['s']}" for row in rows]
    once = ["ax", "bx", "ay", "by"] * 3 + ["z"] * 2
    for s in (1, 2):
        once += [f"p{s}", f"q{s}"] * 2 + [f"r{s}"] * 2
    assert shown == [row for row in once for _ in range(2)]
    assert [(row["testIdx"], row["promptIdx"]) for row in rows] == [(i, j) for i in range(len(once)) for j in range(2)]
    assert [len(row["gradingResult"]["componentResults"]) for row in rows] == [1] * 28 + [0] * 24


class Watched:
    """A run that notes how many blocks of memory are held at the end of its traces, beyond those at the start."""

    def __init__(self, run):
        self._run, self.held = run, 0

    def __getattr__(self, name):
        return getattr(self._run, name)

    def traces(self, kind):
        before = sys.getallocatedblocks()
        yield from self._run.traces(kind)
        self.held = sys.getallocatedblocks() - before


def test_a_run_of_another_format_has_its_outputs_results_and_columns():
    """promptfoo's viewer shows nothing of a run without columns."""
    plan = a_plan(variants=[Variant("v1", "http"), Variant("v2", "http")])
    run = MemoryStore().create(plan, [a_case()], {})
    for name, passed in (("v1", True), ("v2", False)):
        run.append_trace(a_trace(variant_name=name, case_index=0))
        run.append_results([a_result(variant_name=name, passed=passed, score=float(passed))])
        run.append_verdict(a_verdict(variant_name=name, status="pass" if passed else "fail", score=float(passed)))
    results = json.loads(ResultsReport().render(run, a_summary()))["results"]
    assert results["stats"] == {"successes": 1, "failures": 1, "errors": 0}
    shown = [(prompt["provider"], prompt["metrics"]["testPassCount"]) for prompt in results["prompts"]]
    assert shown == [("v1", 1), ("v2", 0)]
    first, second = results["results"]
    assert (first["vars"], first["response"]) == ({"user_message": "Hello"}, {"output": "Hello!"})
    [part] = second["gradingResult"]["componentResults"]
    assert (part["pass"], part["assertion"]) == (False, {"type": "contains_text", "metric": "says_hello"})


def test_results_wait_outside_of_memory_for_those_that_come_before_them():
    plan = a_plan(cases_total=300)
    run = MemoryStore().create(plan, [a_case(id=f"c{number}") for number in range(300)], {})
    for number in reversed(range(300)):
        cell = {"case_id": f"c{number}", "variant_name": plan.variants[0].name}
        run.append_trace(a_trace(**cell, case_index=number))
        run.append_results([a_result(**cell)])
        run.append_verdict(a_verdict(**cell))
    watched = Watched(run)
    document = json.loads(ResultsReport().render(watched, a_summary()))
    assert [row["testIdx"] for row in document["results"]["results"]] == [*range(300)]
    assert watched.held < 300


def test_a_cell_without_a_verdict_is_no_result():
    plan = a_plan(cases_total=2)
    run = MemoryStore().create(plan, [a_case(id=name) for name in "ab"], {})
    for number, name in enumerate("ab"):
        cell = {"case_id": name, "variant_name": plan.variants[0].name}
        run.append_trace(a_trace(**cell, case_index=number))
        run.append_results([a_result(**cell)])
    run.append_verdict(a_verdict(**cell))
    document = json.loads(ResultsReport().render(run, a_summary()))
    assert [row["testIdx"] for row in document["results"]["results"]] == [1]
