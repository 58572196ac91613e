"""Judges of AgentEvals files: how they are asked, and what their replies decide."""

import json
import sys
from shlex import quote

import pytest

from evalwright.formats.agentv.report import AgentvResults
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.stored_run import open_run
from formats.agentv.projects import case, judged, results, run, verdicts

pytestmark = pytest.mark.usefixtures("untouched_environment")
RUBRICS = [{"id": "a", "outcome": "does a"}, {"id": "b", "outcome": "does b"}]
JUDGE = {"name": "j", "type": "llm_judge"}


@pytest.mark.parametrize(
    ("replies", "score", "calls"),
    [
        (['{"score": 0.9, "hits": ["good"]}'], 0.9, 1),
        (['Sure:\n```json\n{"score": 0.65}\n```'], 0.65, 1),
        (["oops", '{"score": 1}'], 1.0, 2),
        (['{"score": 1.2}'], 0.0, 3),
        (['{"score": "0.9"}'], 0.0, 3),
        (['{"score": 1, "reasoning": null}'], 0.0, 3),
    ],
)
def test_a_judge_is_asked_until_its_reply_can_be_read(project, replies, score, calls):
    row = results(judged(project, replies, JUDGE))["a", "j"]
    assert (row.score, len((project / "asked").read_text())) == (score, calls)


def test_assertions_of_a_reply_are_its_hits_and_misses(project):
    said = [{"text": "kind", "passed": True}, {"text": "short", "passed": False, "evidence": "two pages"}]
    row = results(judged(project, [json.dumps({"score": 0.7, "assertions": said})], JUDGE))["a", "j"]
    assert (row.hits, row.misses) == (["kind"], ["short (two pages)"])


def test_a_judge_that_crashes_once_is_asked_again(project):
    row = results(judged(project, [{"no text": 1}, '{"score": 1}'], {**JUDGE, "prompt": "{{ output }}"}))["a", "j"]
    assert row.score == 1.0


def test_a_command_judges_one_question_at_a_time(project):
    """Of questions at once, each would find the lock of another."""
    code = (
        "import os, time\n"
        "lock = os.open('lock', os.O_CREAT | os.O_EXCL)\ntime.sleep(0.05)\n"
        "open(sys.argv[2], 'w').write('{\"score\": 1}')\nos.remove('lock')\n"
    )
    (project / "judge.py").write_text("import sys\n" + code)
    command = f"{quote(sys.executable)} judge.py {{EVAL_ID}} {{OUTPUT_FILE}}"
    judge = {"name": "judge", "provider": "cli", "command_template": command}
    targets = [{"name": "default", "provider": "mock", "judge_target": "judge"}, judge]
    (project / "targets.yaml").write_text(json.dumps({"targets": targets}))
    members = [{**JUDGE, "name": f"j{i}"} for i in range(4)]
    outcome = run(project, case([{"name": "all", "type": "composite", "evaluators": members}]))
    assert results(outcome)["a", "all"].score == 1.0


def test_rubrics_without_a_word_of_the_judge_are_not_met_and_named(project):
    outcome = judged(project, ['{"checks": [{"id": "a", "satisfied": true}]}'], None, rubrics=RUBRICS)
    row = results(outcome)["a", "rubric"]
    assert (row.score, row.reason) == (0.5, "the judge said nothing about b")
    assert (row.hits, row.misses) == (["[a] does a"], [])


def test_a_case_without_evaluators_is_judged_by_its_criterion(project):
    row = results(judged(project, ['{"score": 0.9}'], None))["a", "llm_judge"]
    assert row.score == 0.9


def test_a_required_rubric_that_is_missed_gates_the_case(project):
    reply = json.dumps({"checks": [{"id": "a", "satisfied": True}, {"id": "b", "satisfied": False}]})
    rubrics = [{"id": "a", "outcome": "does a", "weight": 9}, {"id": "b", "outcome": "does b", "required": True}]
    outcome = judged(project, [reply], None, rubrics=rubrics)
    row = results(outcome)["a", "rubric"]
    assert (row.score, row.detail["gated"], verdicts(outcome)["a"].status) == (0.9, True, "fail")


def test_rubrics_with_ranges_are_scored(project):
    reply = json.dumps({"checks": [{"id": "rubric-1", "score": 8}]})
    outcome = judged(project, [reply], None, rubrics=[{"score_ranges": {0: "bad", 5: "fair", 9: "good"}}])
    row = results(outcome)["a", "rubric"]
    assert (row.score, row.detail["raw_scores"]) == (0.8, {"rubric-1": 8})
    reader, reader.plan = open_run(outcome.run_dir)
    (told,) = json.loads(AgentvResults().render(reader, outcome.summary))["evaluator_results"]
    assert told["details"] == {"raw_scores": {"rubric-1": 8}}


def test_stored_answers_are_judged_again_without_the_system(project):
    outcome = run(project)
    (project / "targets.yaml").write_text("targets: [{name: default, provider: mock, response: 'no'}]\n")
    again = re_evaluate(outcome.run_dir)
    assert again.summary.native == outcome.summary.native


def test_borderline_is_no_pass(project):
    pair = [{"name": n, "type": "latency", "threshold": t, "weight": w} for n, t, w in (("a", 60000, 7), ("b", 0, 3))]
    (project / "slow.py").write_text("import time\ndef answer(asked):\n    time.sleep(0.05)\n    return 'x'\n")
    (project / "targets.yaml").write_text("targets: [{name: default, provider: python, callable: 'slow:answer'}]\n")
    outcome = run(project, case(pair))
    assert (verdicts(outcome)["a"].status, outcome.exit_code) == ("borderline", 1)


@pytest.mark.parametrize(("threshold", "status"), [(0.7, "pass"), (0.71, "fail")])
def test_the_command_line_says_from_which_score_a_case_passes(project, threshold, status):
    pair = [{"name": n, "type": "contains", "value": v, "weight": w} for n, v, w in (("a", "Al", 7), ("b", "Bo", 3))]
    outcome = run(project, case(pair), threshold=threshold)
    assert verdicts(outcome)["a"].status == status


@pytest.mark.parametrize(("said", "why"), [("log first", "is no JSON"), ('{"score": NaN}', "no number as 'score'")])
def test_a_code_judge_that_cannot_be_read_is_told_with_what_it_said(project, said, why):
    judge = {"name": "j", "type": "code_judge", "script": ["echo", said]}
    row = results(run(project, case([judge])))["a", "j"]
    assert (row.score, why in row.reason, said in row.reason) == (0, True, True)


@pytest.mark.parametrize(
    ("kind", "found"),
    [("code_judge", {"b": 3, "config": {"a": 1, "b": 2}}), ("code-grader", {"a": 1, "b": 2})],
)
def test_a_code_judge_finds_its_settings_where_its_release_has_them(project, kind, found):
    script = "import json, sys; print(json.dumps({'score': 1, 'details': json.load(sys.stdin)['config']}))"
    judge = {"name": "j", "type": kind, "script": [sys.executable, "-c", script]}
    row = results(run(project, case([{**judge, "config": {"a": 1, "b": 2}, "b": 3}])))["a", "j"]
    assert row.detail["details"] == found


def composite_prompt(project, member, prompt=None):
    """What the judge of a composite is shown of the results of this member."""
    judge = {"name": "judge", "provider": "cli", "command": "echo {PROMPT} > asked; echo '{\"score\": 0.7}'"}
    targets = [{"name": "default", "provider": "mock", "judge_target": "judge"}, judge]
    (project / "targets.yaml").write_text(json.dumps({"targets": targets}))
    aggregator = {"type": "llm_judge", **({} if prompt is None else {"prompt": prompt})}
    outcome = run(project, case([{"name": "c", "type": "composite", "evaluators": [member], "aggregator": aggregator}]))
    assert results(outcome)["a", "c"].score == 0.7
    _, _, shown = (project / "asked").read_text().partition('"m": {')
    return shown


@pytest.mark.parametrize("prompt", ["{{EVALUATOR_RESULTS_JSON}}", "Whole: {{ EVALUATOR_RESULTS_JSON }}", None])
def test_a_judge_of_a_composite_sees_the_results_of_its_members(project, prompt):
    member = {"name": "m", "type": "code_judge", "script": ["echo", '{"score": 0.5, "details": {"why": "half"}}']}
    shown = "".join(composite_prompt(project, member, prompt).split())
    assert '"score":0.5' in shown
    assert '"details":{"why":"half"}' in shown


def test_braces_in_a_members_result_are_no_places_for_values(project):
    member = {"name": "m", "type": "code_judge", "script": ["echo", '{"score": 0.5, "misses": ["{{ question }}"]}']}
    assert '"{{ question }}"' in composite_prompt(project, member)
