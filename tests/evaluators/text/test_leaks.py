"""`thinking_does_not_leak`: patterns, and a judge that is always asked."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.scripted_models import Scripted, fails, judged, problems, says, trace
from evalwright.errors import EvaluatorError

LITERAL = {"forbidden_patterns": ["system prompt"]}


def clean() -> Scripted:
    return Scripted(says({"leaks": False, "reason": "clean"}))


@pytest.mark.parametrize(
    ("patterns", "thinking", "spans"),
    [
        (["system prompt"], "the system prompt here", [[4, 17]]),
        (["system prompt"], "the SYSTEM PROMPT here", []),
        (["a.c"], "abc", []),
        ([r"re:\b\d{4}\b"], "code 4242", [[5, 9]]),
        (["re:["], "it says re:[", [[8, 12]]),
        (["re:["], "[", []),
        (["x", "y"], "yx", [[1, 2], [0, 1]]),
        (["x"], None, []),
    ],
    ids=["literal", "case", "no-regex", "regex", "invalid-regex", "prefix-belongs", "two", "no-thinking"],
)
def test_patterns_are_searched_in_the_thinking(patterns: list[str], thinking: str | None, spans: list[Any]) -> None:
    evaluation = judged("thinking_does_not_leak", {"forbidden_patterns": patterns}, clean(), on=trace("x", thinking))
    assert [match["span"] for match in evaluation.detail["pattern_matches"]] == spans
    assert evaluation.passed is (not spans)


@pytest.mark.parametrize(("leaks", "passed"), [(True, False), (False, True), ("false", True), ("yes", False)])
def test_the_judge_is_called_even_with_patterns_only(leaks: Any, passed: bool) -> None:
    models = Scripted(says({"leaks": leaks, "reason": "why"}))
    evaluation = judged("thinking_does_not_leak", LITERAL, models)
    assert (evaluation.passed, evaluation.detail["judge_verdict"], evaluation.detail["judge_reason"]) == (
        passed,
        passed,
        "why",
    )
    assert models.requests[0].model == "claude-4-7"


@pytest.mark.parametrize(
    "reply",
    [says({"reason": "x"}), says("no leak"), says({"leaks": "maybe"}), EvaluatorError("no", "timeout")],
    ids=["no-verdict", "prose", "no-truth", "failure"],
)
def test_a_judge_without_a_verdict_is_an_error(reply: Any) -> None:
    error = fails("thinking_does_not_leak", LITERAL, Scripted(reply), on=trace("x", "system prompt"))
    assert error.type == "adapter_error"
    assert error.detail["pattern_matches"] == [{"pattern": "system prompt", "span": [0, 13]}]


def test_the_judge_sees_the_thinking_and_the_requirements_and_not_the_answer() -> None:
    models = clean()
    config = {"judge_assertions": ["No names of customers."], **LITERAL}
    judged("thinking_does_not_leak", config, models, on=trace("ANSWER", "THOUGHT"))
    shown = ("THOUGHT", "No names of customers.", "system prompt", "ANSWER")
    assert [word in models.prompt for word in shown] == [True, True, True, False]


def test_the_limit_of_cost_holds() -> None:
    config = {**LITERAL, "cost_limit_usd": 0.000001}
    assert fails("thinking_does_not_leak", config, clean()).type == "cost_limit_exceeded"


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({}, "forbidden_patterns"),
        ({"forbidden_patterns": [], "judge_assertions": []}, "forbidden_patterns"),
        ({**LITERAL, "model": "mystery-1"}, "model"),
        ({**LITERAL, "max_tokens": 0}, "max_tokens"),
        ({"forbidden_patterns": "text"}, "forbidden_patterns"),
    ],
)
def test_mistakes_of_a_configuration(config: dict[str, Any], key: str) -> None:
    assert key in problems("thinking_does_not_leak", config)
