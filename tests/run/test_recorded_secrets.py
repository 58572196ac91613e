"""Stored traces have a mask in place of each secret: what looks for one there gives the verdict that it gave before."""

import json

import pytest

import evalwright as ew
from evalwright.audit.audit import audit_run
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import EvaluationResult
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import suite

TOKEN = "tk-5550-hush-hush"
MEMBER = {"name": "member", "type": "contains_text", "config": {"all_of": [TOKEN]}}
CHECKS = [
    EvaluatorSpec("leaks", "contains_text", {"all_of": [TOKEN]}),
    EvaluatorSpec("keeps it", "contains_text", {"none_of": [TOKEN]}),
    EvaluatorSpec("composed", "composite", {"evaluators": [MEMBER]}),
]


@pytest.fixture(autouse=True)
def token(monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)


def results(run_dir):
    reader, _ = open_run(run_dir)
    return {(row.case_id, row.evaluator): row.passed for row in reader.results(EvaluationResult)}


@pytest.mark.parametrize("now", [TOKEN, "tk-of-another-day", None])
def test_a_leak_is_still_a_leak_when_it_is_judged_again(tmp_path, monkeypatch, agents, now):
    outcome = run_suite(suite(tmp_path, [f"it is {TOKEN}", "done"], evaluators=CHECKS))
    before, plan = results(outcome.run_dir), (outcome.run_dir / "plan.json").read_bytes()
    assert (before["c0", "leaks"], before["c0", "keeps it"], before["c0", "composed"]) == (True, False, True)
    assert (before["c1", "leaks"], before["c1", "keeps it"], before["c1", "composed"]) == (False, True, False)
    monkeypatch.delenv("SHOP_TOKEN") if now is None else monkeypatch.setenv("SHOP_TOKEN", now)
    re_evaluate(outcome.run_dir)
    assert results(outcome.run_dir) == before
    assert json.loads((outcome.run_dir / "plan.json").read_bytes())["evaluators"] == json.loads(plan)["evaluators"]


def test_answers_that_a_crash_left_unjudged_are_judged_as_the_others(tmp_path, agents):
    whole = run_suite(suite(tmp_path / "a", [f"it is {TOKEN}", "done"], evaluators=CHECKS))
    cut = run_suite(suite(tmp_path / "b", [f"it is {TOKEN}", "done"], evaluators=CHECKS, max_concurrency=1))
    for name in ("results.jsonl", "verdicts.jsonl"):
        (cut.run_dir / name).write_bytes(b"")
    traces = cut.run_dir / "traces.jsonl"
    traces.write_bytes(traces.read_bytes().splitlines(keepends=True)[0])
    agents.calls.clear()
    resume(cut.run_dir)
    assert agents.calls == ["c1"]
    assert results(cut.run_dir) == results(whole.run_dir)


def test_an_audit_judges_answers_as_the_run_did(tmp_path, agents):
    outcome = run_suite(suite(tmp_path, [f"it is {TOKEN}", "done"], evaluators=CHECKS[:1]))
    assert audit_run(outcome.run_dir, limit=10).traces == 1


@pytest.mark.parametrize("stored", [True, False])
def test_what_a_case_expects_is_masked_in_any_store(tmp_path, stored):
    case = ew.Case(id="a", input="x", expected=ew.Expected(answer_should_include=[TOKEN]))
    out = tmp_path / "runs" if stored else None
    ran = ew.evaluate([case], lambda x: f"it is {TOKEN}", evaluators=["contains_text"], out=out)
    assert [cell.status for cell in ran.cells()] == ["pass"]
    again = [*ew.re_evaluate(ran).cells()]
    assert [cell.status for cell in again] == ["pass"]
    if not stored:
        assert again[0].case.expected.answer_should_include == [TOKEN]
