"""Runs of promptfoo's configurations: which cells there are, and what their assertions decide."""

from __future__ import annotations

import asyncio

import pytest

from evalwright.cli import main
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.formats.promptfoo.target import PromptfooTarget
from evalwright.run.resumption import resume
from evalwright.session import Session
from formats.promptfoo.runs import ECHO, Ran, asserted, run, run_at, write


def test_every_prompt_is_sent_to_every_provider(tmp_path):
    result = run(
        tmp_path,
        {
            "evaluateOptions": {"maxConcurrency": 1},
            "prompts": ["Hello {{name}}.", {"raw": "Bye {{ name }}", "label": "bye"}],
            "providers": ["echo", {"id": "echo", "label": "second"}],
            "tests": [{"vars": {"name": "Ann"}, "assert": [{"type": "contains", "value": "{{name}}"}]}],
        },
    )
    assert [name for _, name, _ in result.verdicts] == ["echo@prompt-0", "echo@bye", "second@prompt-0", "second@bye"]
    assert result.outputs == ["Hello Ann.", "Bye Ann"] * 2
    assert (result.native["successes"], result.outcome.exit_code) == (4, 0)


def test_a_test_without_assertions_passes_with_a_warning(tmp_path):
    result = run(tmp_path, {**ECHO, "evaluateOptions": {"timeoutMs": 9000}, "tests": [{"vars": {"q": "hi"}}]})
    assert any("1 of 1 tests have no assertions" in warning for warning in result.outcome.summary.warnings)
    assert result.outcome.plan.variants[0].timeout_seconds == 9
    assert (result.verdict.status, result.verdict.score) == ("pass", 1.0)


def test_after_the_time_of_an_evaluation_nothing_is_called(tmp_path):
    slow = {"id": "exec:sh -c 'sleep 60'", "label": "slow"}
    config = {**ECHO, "providers": [slow, "echo"], "tests": [{"vars": {"q": "hi"}}]}
    result = run(tmp_path, {**config, "evaluateOptions": {"maxEvalTimeMs": 20, "maxConcurrency": 1}})
    errors = [trace.error for trace in result.traces.values()]
    assert [error and (error.type, error.message) for error in errors] == [
        ("time_limit", "the 0.02 s of maxEvalTimeMs are over")
    ] * 2
    assert run(tmp_path, {**ECHO, "evaluateOptions": {"maxEvalTimeMs": 60_000}}).statuses == ["pass"]


def test_variables_of_the_environment_limit_what_the_configuration_does_not(tmp_path, monkeypatch):
    monkeypatch.setenv("PROMPTFOO_EVAL_TIMEOUT_MS", "9000")
    monkeypatch.setenv("PROMPTFOO_MAX_EVAL_TIME_MS", "60000")
    tests = [{"vars": {"q": "a"}}]
    for options, seconds in (({}, 9), ({"evaluateOptions": {"timeoutMs": 500}}, 0.5)):
        [variant] = load_suite(write(tmp_path, {**ECHO, **options, "tests": tests})).variants
        assert (variant.timeout_seconds, variant.config["max_seconds"]) == (seconds, 60)
    monkeypatch.setenv("PROMPTFOO_EVAL_TIMEOUT_MS", "9s")
    with pytest.raises(InputError, match="PROMPTFOO_EVAL_TIMEOUT_MS: expected milliseconds, found '9s'"):
        load_suite(write(tmp_path, {**ECHO, "tests": tests}))


def test_the_time_of_an_evaluation_counts_from_the_beginning_of_its_session_for_all_columns(tmp_path):
    suite = load_suite(write(tmp_path, {**ECHO, "evaluateOptions": {"maxEvalTimeMs": 60_000}, "tests": [{"vars": {}}]}))
    target = PromptfooTarget(suite.variants[0])

    async def answer():
        await target.open()
        return await target.run(suite.cases[0], 0)

    with Session() as here:
        assert asyncio.run(answer()).error is None
        here.began -= 60
        error = asyncio.run(answer()).error
    assert error is not None
    assert error.type == "time_limit"


def test_scores_are_weighted_and_a_threshold_replaces_that_all_must_pass(tmp_path):
    asserts = [{"type": "contains", "value": "a", "weight": 3}, {"type": "contains", "value": "z"}]
    tests = [{"vars": {"q": "ab"}, "assert": asserts, **more} for more in ({}, {"threshold": 0.7}, {"threshold": 0.8})]
    tests.append({"vars": {"q": "ab"}, "assert": [{"type": "contains", "value": "z", "weight": 0}]})
    result = run(tmp_path, {**ECHO, "tests": tests})
    assert result.statuses == ["fail", "pass", "fail", "pass"]
    assert [verdict.score for verdict in result.verdicts.values()] == [0.75, 0.75, 0.75, 0.0]
    assert result.native["prompts"][0]["assertFailCount"] == 3


def test_weights_whose_sum_is_below_0_give_no_score(tmp_path):
    asserts = [{"type": "contains", "value": "a", "weight": -2, "metric": "m"}, {"type": "contains", "value": "z"}]
    verdict = asserted(tmp_path, "a", *asserts).verdict
    assert (verdict.score, verdict.named_scores) == (0.0, {"m": 0.0})


def test_a_set_is_one_member_of_the_list(tmp_path):
    members = [{"type": "contains", "value": "a"}, {"type": "contains", "value": "z"}]
    result = asserted(tmp_path, "abc", {"type": "assert-set", "threshold": 0.5, "assert": members, "weight": 2})
    [row] = result.rows
    assert (row.evaluator, row.score, row.passed, result.verdict.status) == ("assert-set#0", 0.5, True, "pass")
    assert [child["passed"] for child in row.detail["children"]] == [True, False]


def test_a_set_without_weight_still_fails(tmp_path):
    unweighted = {"type": "assert-set", "assert": [{"type": "contains", "value": "z"}], "weight": 0}
    result = asserted(tmp_path, "abc", unweighted, {"type": "contains", "value": "a"})
    assert (result.verdict.status, result.verdict.score) == ("fail", 1.0)


def test_repeats_are_trials(tmp_path):
    result = run(tmp_path, {**ECHO, "evaluateOptions": {"repeat": 2}, "tests": [{"vars": {"q": "a"}}]})
    assert [trial for *_, trial in result.verdicts] == [0, 1]
    again = run(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}}]}, options={"repeat": 3})
    assert len(again.verdicts) == 3


def test_a_conversation_sees_its_earlier_turns(tmp_path):
    prompt = "{% for turn in _conversation %}{{ turn.input }}>{% endfor %}{{q}}"
    tests = [{"vars": {"q": q}, "metadata": {"conversationId": c}} for q, c in (("a", "1"), ("b", "1"), ("c", "2"))]
    result = run(tmp_path, {"prompts": [prompt], "providers": ["echo"], "tests": tests})
    assert result.outputs == ["a", "a>b", "c"]


@pytest.mark.parametrize("relies", ["conversation", "stored"])
def test_a_turn_whose_earlier_ones_are_of_another_session_is_no_guess(tmp_path, relies):
    config = {"prompts": ["{{q}}"], "providers": ["echo"]}
    tests = [{"vars": {"q": "a"}, "options": {"storeOutputAs": "first"}}, {"vars": {"q": "{{first}}b"}}]
    if relies == "conversation":
        config = {**config, "prompts": ["{% for turn in _conversation %}{{turn.output}}{% endfor %}{{q}}"]}
        tests = [{"vars": {"q": "a"}}, {"vars": {"q": "b"}}]
    whole = run(tmp_path, {**config, "tests": tests})
    assert whole.statuses == ["pass", "pass"]
    folder = whole.outcome.run_dir
    for name in ("traces.jsonl", "verdicts.jsonl"):
        (folder / name).write_text((folder / name).read_text().splitlines(keepends=True)[0])
    resumed = Ran(resume(folder))
    assert resumed.statuses == ["pass", "error"]
    assert "goes on from test-0" in resumed.traces["test-1", "echo", 0].error.message


def test_it_is_converted_to_native_and_judged_alike(tmp_path):
    asserts = [{"type": "contains", "value": "a", "weight": 3, "metric": "m"}, {"type": "contains", "value": "z"}]
    tests = [{"vars": {"q": "ab ${x}"}, "threshold": 0.7, "assert": asserts}, {"vars": {"q": "z"}, "assert": asserts}]
    path = write(tmp_path, {**ECHO, "tests": tests})
    with pytest.raises(SystemExit) as ended:
        main(["convert", str(path), "--out", str(tmp_path / "native")])
    assert ended.value.code == 0
    runs = [run_at(path, tmp_path), run_at(tmp_path / "native" / "eval.yaml", tmp_path)]
    assert runs[0].native == runs[1].native
    assert runs[0].judged() == runs[1].judged()
    assert runs[1].statuses == ["pass", "fail"]


def test_the_original_flag_for_a_configuration_names_it(tmp_path, capsys):
    path = write(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}, "assert": [{"type": "equals", "value": "a"}]}]})
    results = tmp_path / "out.json"
    run_at(path, tmp_path, {"output": results})
    for words in (["-c", str(path)], [f"--config={path}"], [str(path), "-c", str(results)]):
        with pytest.raises(SystemExit) as ended:
            main(["validate", *words])
        assert (ended.value.code, "1 case" in capsys.readouterr().out) == (0, True), words


def test_a_judge_is_not_looked_at_where_none_is_needed(tmp_path):
    """promptfoo calls the provider of a test's options for assertions with a judge only: others keep settings there."""
    test = {"vars": {"q": "a"}, "assert": [{"type": "contains", "value": "a"}]}
    config = {**ECHO, "defaultTest": {"options": {"provider": {"isolate": True}}}, "tests": [test]}
    assert run(tmp_path, config).statuses == ["pass"]
    test["assert"] = [{"type": "assert-set", "assert": [{"type": "llm-rubric", "value": "good"}]}]
    with pytest.raises(InputError, match="expected the id of a provider"):
        load_suite(write(tmp_path, config))


def test_what_code_would_make_is_lost_in_a_conversion(tmp_path, capsys):
    made = "def make():\n    return [{'vars': {'q': 'b'}}]\n"
    tests = [{"vars": {"q": "a"}, "assert": [{"type": "contains", "value": "a"}]}, "file://made.py:make"]
    path = write(tmp_path, {**ECHO, "outputPath": "a.json", "tests": tests}, made__py=made)
    for words, code, said in (
        ([], 2, "the tests that made.py makes are missing"),
        (["--allow-loss"], 0, "left out: suite  outputPath"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["convert", str(path), "--out", str(tmp_path / "native"), *words])
        assert (ended.value.code, said in " ".join(capsys.readouterr().err.split(" "))) == (code, True), said
    assert sum(1 for _ in load_suite(tmp_path / "native/eval.yaml").cases) == 1


def test_a_test_that_only_its_threshold_fails_says_so(tmp_path):
    asserts = [{"type": "javascript", "value": "0.5"}, {"type": "contains", "value": "a"}]
    ran = run(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}, "assert": asserts, "threshold": 0.8}]})
    assert ran.verdict.reasons == ["the score 0.75 is below the test's threshold 0.8"]
