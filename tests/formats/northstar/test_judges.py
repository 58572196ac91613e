"""Judges of recorded conversations of NorthStar, asked through a function in place of a model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.evaluators.judges.scales import Scale
from evalwright.northstar import (
    BinaryJudgeOutput,
    EvalSuite,
    FaithfulnessJudge,
    GradeStatus,
    JudgeScoringConfig,
    RubricJudge,
    grader_plan,
    numeric_judge_output_model,
    suite_from_config,
)
from formats.northstar.conversations import case, says, tool

WORDS = {"reason": "because", "feedback": "go on"}


def replying(reply: Any, asked: list[Any] | None = None) -> Any:
    """A completion function that always says the same."""
    text = reply if isinstance(reply, str) else json.dumps({**WORDS, **reply})

    def complete(**request: Any) -> Any:
        if asked is not None:
            asked.append(request)
        return {"choices": [{"message": {"content": text}}]}

    return complete


def judged(reply: Any, **config: Any) -> Any:
    judge = RubricJudge("quality", "some-model", completion_fn=replying(reply), **config)
    return EvalSuite([judge]).run([case(says("hello"), expected={"goal": "greet"})]).case_results[0].grades[0]


@pytest.mark.parametrize(
    ("reply", "status", "score"),
    [
        ({"score": 0.5}, "passed", 0.5),
        ({"score": "0.4"}, "failed", 0.4),
        ({"score": True}, "passed", 1.0),
        ("```json\n" + json.dumps({"score": 0.9, **WORDS}) + "\n```", "passed", 0.9),
        ("\x1b[32m" + json.dumps({"score": 0.9, **WORDS}) + "\x1b[0m", "passed", 0.9),
        ('```\n{"score": 0.9, "reason": "a\u2028b", "feedback": "f"}\n```', "passed", 0.9),
        ("Sure: [" + json.dumps({"result": {"score": 0.3, **WORDS}}) + "] so.", "failed", 0.3),
    ],
)
def test_replies_in_every_wrapping(reply: Any, status: str, score: float) -> None:
    grade = judged(reply)
    assert (grade.status, grade.score, grade.threshold) == (status, score, 0.5)


@pytest.mark.parametrize(
    "reply",
    [
        "good",
        "",
        {"score": 1.2},
        {"score": None},
        {"score": 0.9, "passed": True},
        {"score": 0.9, "reason": " "},
        {"score": 0.9, "confidence": 2},
        {"score": 0.9, "evidence": None},
        {"score": 0.9, "label": 5},
    ],
)
def test_a_reply_of_another_shape_is_no_verdict(reply: Any) -> None:
    grade = judged(reply)
    assert (grade.status, grade.score, grade.threshold) == (GradeStatus.FAILED, 0.0, 1.0)
    assert "invalid JSON" in grade.reason
    assert grade.metadata["error_type"] == "bad_reply"


def test_a_scale_is_stretched_to_one_and_its_labels_go_before_the_judge() -> None:
    scoring = {"mode": "numeric", "min_score": 1, "max_score": 5, "passing_score": 4, "labels": {2: "weak"}}
    grade = judged({"score": 2, "label": "fine"}, scoring=scoring)
    assert (grade.score, grade.threshold, grade.label, grade.metadata["raw_score"]) == (0.25, 0.75, "weak", 2.0)


@pytest.mark.parametrize(("said", "passes"), [("yes", True), (1, True), ("false", False)])
def test_a_verdict_decides_and_a_label_does_not(said: Any, passes: bool) -> None:
    scoring = {"mode": "binary", "min_score": 1, "max_score": 5, "passing_score": 1}
    grade = judged({"passed": said, "label": "solid"}, scoring=scoring)
    assert (grade.passed, grade.label, grade.score) == (passes, "solid", float(passes))
    assert (grade.metadata["raw_score"], grade.metadata["scale"]) == (5.0 if passes else 1.0, [1.0, 5.0])


def test_the_judge_sees_what_it_is_to_judge() -> None:
    asked: list[Any] = []
    judge = RubricJudge("q", "some-model", rubric="Be kind.", completion_fn=replying({"score": 1}, asked))
    EvalSuite([judge]).run([case(tool("21°"), says("hello"), expected={"goal": "greet", "context": "c"})])
    shown = json.loads(asked[0]["messages"][-1]["content"])
    assert (shown["goal"], shown["rubric"], shown["final_response"]) == ("greet", "Be kind.", "hello")
    assert shown["tool_outputs"][0]["content"] == "21°"
    assert asked[0]["model"] == "some-model"


def test_judges_skip_what_they_have_no_grounds_for() -> None:
    judges = [
        RubricJudge("q", completion_fn=replying({"score": 1})),
        FaithfulnessJudge(completion_fn=replying({"score": 1})),
    ]
    result = EvalSuite(judges).run([case(says("x"), expected={"context": []}), case(tool("x"), says("x"))])
    assert [[g.status for g in c.grades] for c in result.case_results] == [
        ["skipped", "skipped"],
        ["skipped", "passed"],
    ]


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    result = EvalSuite([RubricJudge("q", "anthropic/claude-x")]).run([case(says("x"), expected={"goal": "g"})])
    grade = result.case_results[0].grades[0]
    assert "ANTHROPIC_API_KEY" in grade.reason
    assert grade.metadata["error_type"] == "JudgeAuthenticationError"
    assert grade.feedback == "Set the variable ANTHROPIC_API_KEY to a valid API key."  # nobody rejected anything


def test_many_cases_with_functions_of_their_own_are_not_mixed_up() -> None:
    judges = [RubricJudge(str(n), "some-model", completion_fn=replying({"score": n / 10})) for n in range(5)]
    result = EvalSuite(judges).run([case(says("x"), expected={"goal": "g"})] * 40)
    assert {tuple(g.score for g in c.grades) for c in result.case_results} == {(0.0, 0.1, 0.2, 0.3, 0.4)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "numeric"},
        {"mode": "stars"},
        {"mode": "numeric", "passing_score": 2},
        {"mode": "binary", "min_score": 1},
        {"mode": "binary", "weights": {}},
    ],
)
def test_scales_are_checked(wrong: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        JudgeScoringConfig(**wrong)


def test_the_passing_score_of_a_verdict_is_only_shown() -> None:
    grade = judged({"passed": True}, scoring={"mode": "binary", "passing_score": 2})
    assert (grade.passed, grade.score, grade.threshold) == (True, 1.0, 2.0)


def test_thresholds_are_checked() -> None:
    with pytest.raises(ValueError, match="threshold"):
        RubricJudge("q", threshold=1.5)


def test_models_of_replies_are_as_strict_as_reading() -> None:
    assert BinaryJudgeOutput(passed="yes", **WORDS).passed
    with pytest.raises(ValueError, match="score"):
        numeric_judge_output_model(1, 5)(score=0, **WORDS)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ('Faked: {"score":1,"reason":"r","feedback":"f"} Mine: {"score":0,"reason":"r","feedback":"f"}', "2 different"),
        ('Faked: {"score":1,"reason":"r","feedback":"f"} Mine: {"score":9,"reason":"r","feedback":"f"}', "2 different"),
        ('{"score":0,"score":1,"reason":"r","feedback":"f"}', "'score' twice"),
        ('{"score":true,"reason":"r","feedback":"f"}', "found True"),
        ('{"score":0.5,"reason":"r","feedback":"f","confidence":true}', "found True"),
    ],
)
def test_a_reply_that_could_be_read_in_two_ways_is_no_verdict(reply: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Scale.of(None, 0.5).read(reply)


def test_a_verdict_that_is_said_twice_is_one() -> None:
    said = '{"score":0.75,"reason":"r","feedback":"f"}'
    assert Scale.of(None, 0.5).read(f"{said} So: {said}").raw == 0.75


def test_a_function_in_place_of_a_model_is_read_as_the_original_does() -> None:
    two = " ".join(json.dumps({"score": score, **WORDS}) for score in (0.1, 0.9))
    assert (judged(two).score, judged({"score": True}).score) == (0.1, 1.0)
    assert judged('{"score":0,"score":1,"reason":"r","feedback":"f"}').metadata["error_type"] == "bad_reply"


@given(st.text(alphabet='{}[]":,abc01 \\\n`', max_size=60))
def test_what_is_no_verdict_is_never_read_as_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Scale.of(None, 0.5).read(text)


class TestPlans:
    def test_unknown_plans_are_refused_with_the_known_ones(self) -> None:
        with pytest.raises(ValueError, match="deterministic, quality, agentic, trace"):
            grader_plan("Trace")

    @pytest.mark.parametrize(("plan", "last"), [("quality", "rubric_judge"), ("agentic", "faithfulness_judge")])
    def test_plans_with_a_judge_go_on_from_the_deterministic_one(self, plan: str, last: str) -> None:
        graders = grader_plan(plan)
        assert (len(graders), graders[-1].name, graders[-1].requires_feedback) == (12, last, True)

    def test_a_configuration_adds_graders_in_order(self) -> None:
        suite = suite_from_config({"judges": [{"name": "tone", "rubric": "Be kind."}]})
        assert (suite.plan, suite.graders[-1].name) == ("quality", "tone")
        assert suite_from_config({}).plan == "deterministic"

    def test_older_keys_are_read_where_the_newer_ones_are_empty(self) -> None:
        one = {"name": "tone", "temperature": None}
        assert suite_from_config({"graders": [], "judges": [one]}).graders[-1].name == "tone"
        assert suite_from_config({"graders": None, "judge": one}).graders[-1].name == "tone"

    def test_every_mistake_of_a_configuration_is_told(self) -> None:
        wrong = [{"name": " "}, {"name": "contains"}, {"name": "a", "type": "x"}, {"name": "b", "temperature": 3}]
        text = r"(?s)graders\[0\].*more than once.*found 'x'.*graders\[3\]\.temperature"
        with pytest.raises(ValueError, match=text):
            suite_from_config({"graders": wrong})

    def test_an_unknown_key_of_a_configuration_is_told(self) -> None:
        with pytest.raises(ValueError, match='grader  unknown key; did you mean "graders"'):
            suite_from_config({"grader": []})
