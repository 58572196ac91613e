"""Which evaluators an audit calls: not those of models unless asked for, and nothing of others' runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from audit.runs import evaluator, mutation, says, stored
from evalwright.audit.audit import audit_run
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.llm.choices import ModelChoices
from evalwright.model.audit import AuditReport
from evalwright.run.start import run_suite

THREE = {"a": "Order 1 is open.", "b": "Order 2 is open.", "c": "Order 3 is open."}
JUDGE = """
import json, os

def judge(request):
    with open(os.environ["AUDITED_CALLS"], "a") as calls:
        calls.write("x")
    said = "refused" if "cannot help" in request.messages[-1].content else "fine"
    passed = said == "fine"
    return json.dumps({"score": float(passed), "assertions": [{"text": "x", "passed": passed, "reason": said}]})
"""
JUDGES = {
    "name": "polite",
    "type": "llm_judge",
    "config": {"model": "python:audited_judge:judge", "nl_assertions": ["It helps."]},
}
ALONE = ModelChoices(no_cache=True)


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where each call of the judge leaves a letter."""
    (tmp_path / "audited_judge.py").write_text(JUDGE)
    monkeypatch.setenv("AUDITED_CALLS", str(tmp_path / "calls"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "calls"


def test_judges_are_named_and_not_called(tmp_path: Path, calls: Path) -> None:
    run = stored(tmp_path, THREE, says("open", "is open"), JUDGES)
    before = calls.read_text()
    report = audit_run(run, limit=100, models=ALONE)
    assert report.left_out == {"polite": "calls a model; --judges audits it, too"}
    assert (calls.read_text(), [one.evaluator for one in report.evaluators]) == (before, ["open"])


def test_judges_are_audited_on_request(tmp_path: Path, calls: Path) -> None:
    run = stored(tmp_path, THREE, says("order", "Order"), JUDGES)
    report = audit_run(run, limit=100, judges=True, models=ALONE)
    assert (report.left_out, evaluator(report, "polite").noticed.value) == ({}, pytest.approx(1 / 5))


def test_what_only_a_judge_requires_is_not_audited_without_it(tmp_path: Path, calls: Path) -> None:
    run = stored(tmp_path, THREE, says("open", "is open"), JUDGES, pass_criteria={"all_required": ["polite"]})
    with pytest.raises(InputError, match="no evaluator that decides is left to be audited: polite calls a model"):
        audit_run(run, limit=100)


def test_criteria_hold_without_the_judge_that_they_name(tmp_path: Path, calls: Path) -> None:
    criteria = {"all_required": ["open", "polite"]}
    run = stored(tmp_path, THREE, says("open", "is open"), says("order", "9"), JUDGES, pass_criteria=criteria)
    assert audit_run(run, limit=100).traces == 3


def promptfoo(folder: Path, *tests: dict[str, object]) -> AuditReport:
    config = {"prompts": ["Where is {{city}}?"], "providers": ["echo"], "tests": [*tests]}
    (folder / "promptfooconfig.yaml").write_text(json.dumps(config))
    suite = load_suite(folder / "promptfooconfig.yaml")
    suite.out = folder / "runs"
    return audit_run(run_suite(suite).run_dir, limit=100)


def test_evaluators_of_single_cases_are_audited(tmp_path: Path) -> None:
    oslo = {"vars": {"city": "Oslo"}, "assert": [{"type": "contains", "value": "Oslo"}]}
    rome = {
        "vars": {"city": "Rome"},
        "assert": [{"type": "regex", "value": "Rome"}, {"type": "contains", "value": "?"}],
    }
    report = promptfoo(tmp_path, oslo, rome)
    assert mutation(report, "answer of another case").caught.value == 1.0
    assert {one.evaluator: bool(one.note) for one in report.evaluators} == {
        "contains#0": False,
        "regex#0": False,
        "contains#1": True,
    }


def test_a_case_that_nothing_judges_has_no_mutants(tmp_path: Path) -> None:
    oslo = {"vars": {"city": "Oslo"}, "assert": [{"type": "contains", "value": "Oslo"}]}
    assert promptfoo(tmp_path, oslo, {"vars": {"city": "Rome"}}).traces == 1


def test_code_of_another_users_run_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    (tmp_path / "audited_code.py").write_text("def check(output):\n    return 'open' in output\n")
    code = {"name": "code", "type": "python_function", "config": {"function": "audited_code:check"}}
    run = stored(tmp_path, THREE, code)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    with pytest.raises(InputError, match="is not known to be a run of your own"):
        audit_run(run, limit=100)
    assert audit_run(run, limit=100, trust_run=True).traces == 3


def test_the_weights_of_a_rule_decide_what_is_caught(tmp_path: Path) -> None:
    contains = [{"name": "open", "type": "contains", "value": "open", "weight": 3}]
    light = [{"name": "order", "type": "contains", "value": "Order", "weight": 0.1}]
    case = {"id": "a", "expected_outcome": "x", "input": "hi", "execution": {"evaluators": contains + light}}
    (tmp_path / "EVAL.yaml").write_text(json.dumps({"name": "w", "evalcases": [case]}))
    target = {"name": "default", "provider": "mock", "response": "Order 1 is open."}
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    suite = load_suite(tmp_path / "EVAL.yaml", "agentv")
    suite.out = tmp_path / "runs"
    report = audit_run(run_suite(suite).run_dir, limit=100)
    assert (evaluator(report, "order").changes, evaluator(report, "open").changes > 0) == (0, True)


def test_cases_may_have_evaluators_of_one_name_of_which_some_call_models(tmp_path: Path) -> None:
    judge = {"name": "good", "type": "llm_judge", "prompt": "Is it good?"}
    check = {"name": "good", "type": "contains", "value": "open"}
    cases = [
        {"id": name, "expected_outcome": "x", "input": "hi", "execution": {"evaluators": evaluators}}
        for name, evaluators in (("a", [judge, {**check, "name": "open"}]), ("b", [check]), ("c", [judge]))
    ]
    (tmp_path / "EVAL.yaml").write_text(json.dumps({"name": "w", "evalcases": cases}))
    targets = [
        {"name": "default", "provider": "mock", "response": "Order 1 is open.", "judge_target": "judge"},
        {"name": "judge", "provider": "mock", "response": '{"score": 1, "hits": [], "misses": [], "reasoning": ""}'},
    ]
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": targets}))
    suite = load_suite(tmp_path / "EVAL.yaml", "agentv")
    suite.out = tmp_path / "runs"
    report = audit_run(run_suite(suite).run_dir, limit=100)
    assert (report.traces, report.left_out.keys(), evaluator(report, "good").mutants) == (2, {"good"}, 4)
    assert (report.unjudged, len(report.notes)) == (0, 1)


GRADER = """
from letta_evals.decorators import grader
from letta_evals.models import GradeResult

@grader
def breaks(sample, submission):
    if "cannot help" in submission:
        raise ValueError("no")
    return GradeResult(score=1.0)
"""


def test_an_error_that_spoils_a_cell_is_no_verdict_that_its_evaluator_decided(tmp_path: Path) -> None:
    tools = {"same": "contains", "plain": "ascii_printable_only", "broken": "audited_grader.py:breaks"}
    suite_file = {
        "name": "capitals",
        "dataset": "data.jsonl",
        "target": {"kind": "python", "callable": "audited_target.py:answer"},
        "graders": {name: {"kind": "tool", "function": function} for name, function in tools.items()},
        "gate": {"metric_key": "same", "op": "gte", "value": 0.5},
    }
    (tmp_path / "suite.yaml").write_text(json.dumps(suite_file))
    (tmp_path / "data.jsonl").write_text('{"input": "Capital of France?", "ground_truth": "Paris"}\n')
    (tmp_path / "audited_target.py").write_text("def answer(message, ctx):\n    return 'It is Paris.'\n")
    (tmp_path / "audited_grader.py").write_text(GRADER)
    suite = load_suite(tmp_path / "suite.yaml")
    suite.out = tmp_path / "runs"
    report = audit_run(run_suite(suite).run_dir, limit=100)
    assert mutation(report, "refusal instead of the answer").errors == 1
    assert (evaluator(report, "broken").changes, evaluator(report, "broken").errors) == (0, 2)
