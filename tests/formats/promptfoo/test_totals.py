"""What a run comes to: promptfoo's counters, named metrics, the share that must pass."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.reports.markdown import Markdown
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint
from evalwright.run.outcomes import folded_summary
from evalwright.run.stored_run import open_run
from evalwright.scoring.tally import Tally
from evalwright.testing import a_plan
from formats.promptfoo.runs import ECHO, asserted, run, write


def test_named_scores_and_metrics_derived_of_their_sums(tmp_path):
    """Numbers, counts and weights are those of promptfoo for this configuration."""
    derived = {
        "twice": "tone * 2", "each": "tone / __count", "both": "sqrt(tone + twice) + round(2.5) + mean(1, 2, 6)",
        "none": "gone + 1",
    }  # fmt: skip
    asserts = [{"type": "contains", "value": "a", "metric": "tone", "weight": 3}, {"type": "contains", "value": "z"}]
    tests = [
        {"vars": {"q": q}, "assert": [{**assertion, "metric": "tone"} for assertion in asserts]}
        for q in ("ab", "az", "no")
    ]
    providers = ["echo", {"id": "file://broken.py", "label": "broken"}]
    config = {
        "prompts": ["{{q}}"], "providers": providers, "tests": tests,
        "derivedMetrics": [{"name": name, "value": value} for name, value in derived.items()],
    }  # fmt: skip
    result = run(tmp_path, config, broken__py="def call_api(prompt, options, context):\n    return {'error': 'down'}\n")
    assert [verdict.named_scores for verdict in result.verdicts.values() if verdict.variant_name == "echo"] == [
        {"tone": 0.75}, {"tone": 1.0}, {"tone": 0.0},
    ]  # fmt: skip
    echo, broken = result.native["prompts"]
    assert echo["namedScores"] == pytest.approx({"tone": 7, "twice": 14, "each": 7 / 3, "both": 21**0.5 + 6})
    assert (echo["namedScoresCount"], echo["namedScoreWeights"]) == ({"tone": 6}, {"tone": 12})
    assert broken["namedScores"] == {}
    assert "namedScoresCount" not in broken
    summary = result.outcome.summary
    rows = {(metric.metric, metric.variant): (metric.value, metric.mean, metric.n) for metric in summary.named_metrics}
    assert rows["tone", "echo"] == (7, pytest.approx(7 / 12), 6)
    assert rows["twice", "echo"] == (14, None, 0)
    assert (rows["none", "echo"], rows["each", "broken"]) == ((None, None, 0), (None, None, 0))
    assert any("'none' cannot be computed for echo, broken" in warning for warning in summary.warnings)
    with closing(open_run(result.outcome.run_dir)[0]) as reader:
        text = Markdown().render(reader, summary)
    assert "| `tone` | `echo` | 0.583 (n=6) | 7 |" in text
    assert any("tone" in line and "0.583 (n=6)" in line for line in run_lines(result.outcome.plan, summary, Paint()))


def test_a_named_score_counts_as_an_assertion_only_where_none_has_its_name(tmp_path):
    """Numbers, counts and weights are those of promptfoo for this configuration."""
    code = "{'pass': True, 'score': 1, 'reason': '', 'namedScores': {'tone': 0.5, 'own': 0.25}}"
    asserts = [{"type": "contains", "value": "a", "metric": "tone"}, {"type": "python", "value": code}]
    asserts += [{"type": "assert-set", "metric": "set", "assert": [{"type": "equals", "value": "a"}]}] * 2
    result = run(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}, "assert": asserts}]})
    [echo] = result.native["prompts"]
    assert echo["namedScores"] == {"own": 0.25, "tone": 1.5, "set": 2}
    assert echo["namedScoresCount"] == {"own": 1, "tone": 1, "set": 1}
    assert echo["namedScoreWeights"] == {"own": 1, "tone": 2, "set": 2}


def test_a_metric_that_can_never_be_computed_is_refused(tmp_path):
    derived = [{"name": "a", "value": "sqroot(tone)"}, {"name": "b", "value": "tone +"}]
    with pytest.raises(InputError) as refused:
        load_suite(write(tmp_path, {**ECHO, "derivedMetrics": derived, "tests": [{"vars": {"q": "a"}}]}))
    assert [problem.key for problem in refused.value.problems] == ["derivedMetrics[0].value", "derivedMetrics[1].value"]
    assert "no function 'sqroot' in 'sqroot(tone)'" in str(refused.value)


def test_the_share_that_must_pass_is_a_gate(tmp_path, monkeypatch):
    tests = [{"vars": {"q": x}, "assert": [{"type": "equals", "value": "a"}]} for x in "ab"]
    assert run(tmp_path, {**ECHO, "tests": tests}).outcome.exit_code == 1
    monkeypatch.setenv("PROMPTFOO_PASS_RATE_THRESHOLD", "50")
    outcome = run(tmp_path, {**ECHO, "tests": tests}).outcome
    (part,) = outcome.summary.gate.parts
    assert (outcome.exit_code, part.value) == (0, 50)
    assert part.ci95 == pytest.approx((9.453, 90.547), abs=0.001), "Wilson's, of two cases"


@pytest.mark.parametrize(("code", "exit_code"), [("0", 0), ("7", 1)])
def test_failures_may_have_no_exit_code_of_their_own(tmp_path, monkeypatch, code, exit_code):
    monkeypatch.setenv("PROMPTFOO_FAILED_TEST_EXIT_CODE", code)
    outcome = run(
        tmp_path, {**ECHO, "tests": [{"vars": {"q": "b"}, "assert": [{"type": "equals", "value": "a"}]}]}
    ).outcome
    assert outcome.exit_code == exit_code
    warnings = [warning for warning in outcome.summary.warnings if "PROMPTFOO_FAILED_TEST_EXIT_CODE" in warning]
    assert [warning.count("found '7': the exit code of failures is 1") for warning in warnings] == [1] * exit_code


@pytest.mark.parametrize("given", ["most", "nan", "inf"])
def test_the_share_that_must_pass_is_a_number(tmp_path, monkeypatch, given):
    monkeypatch.setenv("PROMPTFOO_PASS_RATE_THRESHOLD", given)
    with pytest.raises(InputError, match=f"expected a percentage, found '{given}'"):
        load_suite(write(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}}]}))


@pytest.mark.parametrize("given", ["word", 3, [1], {"name": "a"}])
def test_metadata_of_an_eval_yaml_that_is_no_list_of_metrics_is_told(given):
    plan = a_plan(totals="promptfoo", metadata={"derived_metrics": given})
    [told] = Tally.of(plan).summary(plan, plan.started_at).warnings
    assert "metadata.derived_metrics" in told


@pytest.mark.parametrize(
    "extra", [{"asserts": "many"}, {"asserts": [1]}, {"sums": {"m": None}}, {"sums": 3}, {"behind": {"m": [1, "x"]}}]
)
def test_a_stored_verdict_that_says_nonsense_is_named_and_counts_for_nothing(tmp_path, extra):
    tests = [{"vars": {"q": x}, "assert": [{"type": "equals", "value": "a"}]} for x in "ab"]
    folder = run(tmp_path, {**ECHO, "tests": tests}).outcome.run_dir
    good, bad = map(json.loads, (folder / "verdicts.jsonl").read_text().splitlines())
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (good, {**bad, "extra": extra})))
    reader, plan = open_run(folder)
    with closing(reader):
        summary = folded_summary(reader, plan)
    assert any(bad["case_id"] in warning and "extra" in warning for warning in summary.warnings)
    assert sum(summary.variants[0].cells.values()) == 1


def test_named_scores_of_members_have_the_weight_of_their_set(tmp_path):
    member = {"type": "equals", "value": "y", "metric": "m"}
    one = {"type": "contains", "value": "x", "metric": "m"}
    result = asserted(tmp_path, "x", one, {"type": "assert-set", "weight": 3, "assert": [member]})
    assert result.verdict.named_scores == {"m": 0.25}
    result = asserted(tmp_path, "x", one, {"type": "assert-set", "weight": 0, "assert": [member]})
    assert result.verdict.named_scores == {"m": 1.0}


def test_no_function_scores_a_test_without_assertions(tmp_path):
    test = {"vars": {"q": "x"}, "assert": [], "assertScoringFunction": "file://s.py"}
    score = "def func(named, context):\n    return {'pass': False, 'score': 0, 'reason': 'no'}\n"
    result = run(tmp_path, {**ECHO, "tests": [test]}, **{"s.py": score})
    assert (result.verdict.status, result.verdict.score) == ("pass", 1.0)
