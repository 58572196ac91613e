"""A judge whose reply cannot be read is asked again with the complaint, so often as it may be and can be paid for."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.scripted_models import Scripted, fails, judged, problems, says
from evalwright.errors import EvaluatorError

GOOD = says({"assertions": [{"text": "x", "passed": True, "reason": "r"}]}, cost_usd=0.25, thinking="hm")
BAD = says("I think so.", cost_usd=0.25)
JUDGE = {"model": "gpt-4o", "nl_assertions": ["x"]}
EVERY: dict[str, tuple[dict[str, Any], Any]] = {
    "llm_judge": (JUDGE, GOOD),
    "pairwise_judge": (
        {"model": "gpt-4o", "criteria": "c", "reference_text": "r"},
        says({"reason": "r", "better": "tie"}),
    ),
    "rubric_judge": (
        {"model": "gpt-4o", "rubric": "r", "reply_retries": 1},
        says({"score": 1, "reason": "r", "feedback": "f"}),
    ),
    "rubric_template": ({"prompt": "{submission}", "reply_retries": 1}, says({"score": 1})),
}


@pytest.mark.parametrize("kind", EVERY)
def test_one_complaint_gets_a_verdict(kind: str) -> None:
    config, good = EVERY[kind]
    calls = 2 if kind == "pairwise_judge" else 1
    models = Scripted(by=lambda request: good if len(request.messages) > 1 else BAD)
    evaluation = judged(kind, config, models)
    assert (evaluation.passed, len(models.requests), len(evaluation.detail["asked_again"])) == (True, 2 * calls, calls)
    first, *_, again = models.requests
    assert [message.role for message in again.messages] == ["user", "assistant", "user"]
    assert again.messages[1].content == "I think so."
    assert evaluation.detail["asked_again"][0] in again.messages[2].content
    assert (again.schema, again.system, first.repeat) == (first.schema, first.system, again.repeat)


def test_every_reply_is_paid_and_thoughts_of_all_are_kept() -> None:
    evaluation = judged("llm_judge", JUDGE, Scripted(BAD, GOOD))
    assert (evaluation.cost_usd, evaluation.detail["usage"]["token_input"], evaluation.detail["judge_thinking"]) == (
        0.5,
        200,
        ["hm"],
    )


@pytest.mark.parametrize(("retries", "asked"), [({}, 2), ({"reply_retries": 0}, 1), ({"reply_retries": 3}, 4)])
def test_then_it_is_an_error_of_the_evaluator(retries: dict[str, int], asked: int) -> None:
    models = Scripted(BAD)
    error = fails("llm_judge", {**JUDGE, **retries}, models)
    assert (len(models.requests), error.cost_usd, error.type) == (asked, 0.25 * asked, "adapter_error")
    assert (f"asked {asked} times" in str(error)) == (asked > 1)


@pytest.mark.parametrize(("kind", "config"), [("rubric_judge", {"rubric": "r"}), ("rubric_template", {"prompt": "x"})])
def test_judges_of_originals_that_do_not_ask_again_ask_once(kind: str, config: dict[str, Any]) -> None:
    models = Scripted(BAD)
    error = fails(kind, {"model": "gpt-4o", **config}, models)
    assert (len(models.requests), error.type, error.cost_usd) == (1, "bad_reply", 0.25)


@pytest.mark.parametrize(
    ("kind", "config"),
    [("llm_judge", JUDGE), ("rubric_template", {"prompt": "x"}), ("rubric_judge", {"model": "gpt-4o", "rubric": "r"})],
)
def test_a_refusal_is_told_and_not_retried(kind: str, config: dict[str, Any]) -> None:
    models = Scripted(says("", refusal="not this"))
    error = fails(kind, {**config, "reply_retries": 1}, models)
    assert (len(models.requests), "it refused: not this" in str(error)) == (1, True)


def test_an_empty_reply_is_complained_of_without_repeating_it() -> None:
    models = Scripted(says("<think>cut"), GOOD)
    assert judged("llm_judge", JUDGE, models).passed
    assert [message.role for message in models.requests[1].messages] == ["user", "user"]


def test_the_limit_of_an_evaluation_counts_what_another_reply_may_cost() -> None:
    models = Scripted(BAD, GOOD)
    error = fails("llm_judge", {**JUDGE, "cost_limit_usd": 0.4}, models)
    assert (len(models.requests), error.cost_usd) == (1, 0.25)
    assert judged("llm_judge", {**JUDGE, "cost_limit_usd": 0.5}, Scripted(BAD, GOOD)).passed


def test_a_second_call_that_fails_says_why_it_was_made_and_what_was_paid() -> None:
    error = fails("llm_judge", JUDGE, Scripted(BAD, EvaluatorError("budget is used up", "cost_limit")))
    assert (error.type, error.cost_usd, len(error.detail["asked_again"])) == ("cost_limit", 0.25, 1)
    assert "asked again" in str(error)


def test_only_so_many_retries() -> None:
    assert "reply_retries" in problems("llm_judge", {**JUDGE, "reply_retries": 4})
