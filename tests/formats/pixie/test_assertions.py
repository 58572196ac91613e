"""What a failed `assert_pass` tells, and what it never lets through."""

import asyncio

import pytest

from evalwright import pixie
from evalwright.errors import EvaluatorError

GIVEN = ["hi", "oh"]


@pixie.observe(name="app")
def echo(text):
    if text == "raise":
        raise RuntimeError("the application is down")
    return text


def judge_without_a_model(evaluable):
    return pixie.Evaluation(0.0, "no route to host", {"error": "ConnectError", "traceback": "..."})


def is_hi(evaluable):
    return pixie.Evaluation(float(evaluable.eval_output[0].value == "hi"), "only hi will do")


def failure(evaluators, inputs=GIVEN, **options):
    with pytest.raises(pixie.EvalAssertionError) as raised:
        asyncio.run(pixie.assert_pass(echo, inputs, evaluators, **options))
    return raised.value


def test_each_input_with_a_low_score_is_named_with_evaluator_score_and_reason():
    assert failure([is_hi]).__notes__ == ["input 2, 'oh'", "  is_hi 0.00: only hi will do"]


def test_a_judge_that_could_not_judge_is_told_as_an_error():
    assert failure([judge_without_a_model], ["hi"]).__notes__[1] == "  judge_without_a_model error: no route to host"


def test_a_judge_that_could_not_judge_passes_no_threshold():
    lenient = pixie.ScoreThreshold(threshold=0.0)
    told = failure([judge_without_a_model], ["hi"], pass_criteria=lenient).__notes__
    assert told == ["input 1, 'hi'", "  judge_without_a_model error: no route to host"]


def test_what_a_judge_replies_cannot_act_on_the_terminal():
    def sly(evaluable):
        return pixie.Evaluation(0.0, "\x1b[2Jfine\nPASSED")

    assert failure([sly], ["hi"]).__notes__[1] == "  sly 0.00: \\x1b[2Jfine PASSED"


def test_an_evaluator_that_cannot_judge_is_named_as_datasets_name_it_and_is_no_failure():
    with pytest.raises(EvaluatorError, match="requires an expected value") as raised:
        asyncio.run(pixie.assert_pass(echo, ["hi"], [pixie.LevenshteinMatch()]))
    assert raised.value.__notes__ == ["LevenshteinMatch could not judge"]


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_applications_run_at_a_time_than_are_asked_for(monkeypatch, most):
    monkeypatch.setenv("PIXIE_RUNNABLE_CONCURRENCY", str(most))
    running = []
    seen = set()

    async def application(given):
        running.append(given)
        await asyncio.sleep(0)
        seen.add(len(running))
        running.remove(given)
        with pixie.start_observation(input=given, name="r") as observation:
            observation.set_output(given)

    asyncio.run(pixie.assert_pass(application, list("abcdefgh"), [lambda one: 1.0]))
    assert max(seen) == most


def test_the_other_inputs_are_judged_to_the_end_when_the_application_raises():
    judged = []

    async def slowly(evaluable):
        await asyncio.sleep(0.01)
        judged.append(evaluable.eval_output[0].value)
        return 1.0

    with pytest.raises(RuntimeError, match="down"):
        asyncio.run(pixie.assert_pass(echo, ["raise", *GIVEN], [slowly]))
    assert sorted(judged) == GIVEN
