"""`composite`: several evaluators as one, by the rules of AgentEvals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from evaluators.agentv_traces import judged, judging_program, trace
from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.model.result import Evaluation

BROKEN = {"name": "b", "type": "code_judge", "config": {"script": [sys.executable, "-c", "raise SystemExit(1)"]}}
OFF_SCALE = {
    "name": "o",
    "type": "python_code",
    "config": {"code": "def validate(o, c, r): return {'passed': 1 > 0, 'score': 7}"},
}
SKIPPED = {"name": "s", "type": "contains"}
CHEAP = {"name": "a", "type": "cost", "config": {"budget": 1}}


def member(name: str, score: float, **more: Any) -> dict[str, Any]:
    """A member with a known score."""
    code = f'print(\'{{"score": {score}, "misses": ["m"]}}\')'
    return {"name": name, "type": "code_judge", "config": {"script": [sys.executable, "-c", code]}, **more}


def composed(members: list[dict[str, Any]], errors: str = "error", **aggregator: Any) -> Evaluation:
    config = {"evaluators": members, "errors": errors, **({"aggregator": aggregator} if aggregator else {})}
    return judged("composite", config, trace())


@pytest.mark.parametrize(
    ("aggregator", "score", "verdict"),
    [
        ({}, 0.75, "borderline"),
        ({"type": "weighted_average", "weights": {"a": 3}}, 0.875, "pass"),
        ({"type": "weighted_average", "weights": {"a": 0, "b": 0}}, 0.0, "fail"),
        ({"type": "minimum"}, 0.5, "fail"),
        ({"type": "maximum"}, 1.0, "pass"),
        ({"type": "safety_gate", "required": ["b"]}, 0.0, "fail"),
        ({"type": "safety_gate", "required": ["a"]}, 0.75, "borderline"),
        ({"type": "all_or_nothing"}, 0.0, "fail"),
        ({"type": "all_or_nothing", "threshold": 0.5}, 0.75, "borderline"),
        ({"type": "threshold", "threshold": 0.5}, 0.5, "pass"),
    ],
)
def test_an_aggregator_makes_score_and_verdict_of_the_members_scores(
    aggregator: dict[str, Any], score: float, verdict: str
) -> None:
    evaluation = composed([member("a", 1), member("b", 0.5)], **aggregator)
    found = (evaluation.score, evaluation.detail["verdict"], evaluation.passed)
    assert found == (score, verdict, verdict == "pass")


@pytest.mark.parametrize(
    "aggregator", [{"type": "safety_gate", "required": ["a"]}, {"type": "all_or_nothing", "threshold": 0.6}]
)
def test_a_score_that_float_arithmetic_puts_just_below_a_bound_reaches_it(aggregator: dict[str, Any]) -> None:
    assert composed([member("a", 0.59999999999)], **aggregator).score == pytest.approx(0.6)


def test_the_results_of_members_are_kept_under_their_names() -> None:
    inner = {"name": "i", "type": "composite", "config": {"evaluators": [member("x", 0.25)]}}
    evaluation = composed([inner, member("b", 1, weight=3)])
    assert [child["evaluator"] for child in evaluation.detail["children"]] == ["i", "b"]
    assert evaluation.score == pytest.approx(0.8125)
    assert evaluation.misses == ["[i] [x] m", "[b] m"]


@pytest.mark.parametrize("kind", ["weighted_average", "minimum", "threshold"])
def test_a_member_that_skips_the_case_does_not_count(kind: str) -> None:
    evaluation = composed([member("a", 1), SKIPPED], type=kind)
    assert (evaluation.score, evaluation.passed) == (1.0, True)


def test_a_case_that_all_members_skip_is_skipped() -> None:
    evaluation = composed([SKIPPED])
    assert (evaluation.skipped, evaluation.score) == (True, None)
    assert evaluation.reason == "[s] the case has no contains"


@pytest.mark.parametrize("broken", [BROKEN, OFF_SCALE])
def test_a_member_with_an_error_makes_it_an_error(broken: dict[str, Any]) -> None:
    with pytest.raises(EvaluatorError, match=r"its member '[bo]' had an error") as raised:
        composed([member("a", 1), broken])
    assert [child["evaluator"] for child in raised.value.detail["children"]] == ["a", broken["name"]]


def test_an_aggregator_with_an_error_makes_it_an_error() -> None:
    with pytest.raises(EvaluatorError, match="the aggregator failed"):
        composed([member("a", 1)], type="code_judge", path="exit 1")


def test_errors_count_as_0_if_configured() -> None:
    evaluation = composed([member("a", 1), BROKEN], errors="count")
    assert evaluation.score == 0.5
    assert evaluation.detail["children"][1]["error"]["type"] == "exit_code"


def test_a_command_gets_the_members_results_and_decides(tmp_path: Path) -> None:
    code = "print(json.dumps({'score': document['results']['a']['score'] / 2, 'verdict': 'pass'}))"
    command = " ".join(judging_program(tmp_path, code)["script"])
    evaluation = composed([member("a", 1)], type="code_judge", path=command)
    assert (evaluation.score, evaluation.passed) == (0.5, True)


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        ({"evaluators": []}, ["evaluators"]),
        ({"evaluators": [CHEAP], "errors": "ignore"}, ["errors"]),
        ({"evaluators": [{"name": "a", "type": "nope"}]}, ["evaluators[0].type"]),
        ({"evaluators": [{"type": "cost"}]}, ["evaluators[0]"]),
        ({"evaluators": [{"name": "a", "type": "cost", "config": {"budget": -1}}]}, ["evaluators[0].config.budget"]),
        ({"evaluators": [{"name": "a", "type": "contains_text", "all_of": ["x"]}]}, ["evaluators[0].all_of"]),
        (
            {"evaluators": [{**CHEAP, "extractor": {"type": "pattern", "config": {"pattern": "("}}}]},
            ["evaluators[0].extractor.config.pattern"],
        ),
        ({"evaluators": [CHEAP], "aggregator": {"type": "vote"}}, ["aggregator.type"]),
        ({"evaluators": [CHEAP], "aggregator": {"type": ["minimum"]}}, ["aggregator.type"]),
        ({"evaluators": [CHEAP], "aggregator": {"type": "code_judge"}}, ["aggregator.path"]),
        ({"evaluators": [CHEAP], "aggregator": {"type": "safety_gate", "required": ["z"]}}, ["aggregator.required"]),
        ({"evaluators": [CHEAP], "aggregator": {"type": "weighted_average", "weights": {"z": 1}}},
         ["aggregator.weights"]),
        ({"evaluators": [CHEAP], "aggregator": {"type": "minimum", "threshold": 0.5}}, ["aggregator.threshold"]),
        ({"evaluators": [CHEAP, CHEAP], "aggregator": {"type": "code_judge", "path": "true"}}, ["aggregator.type"]),
        (
            {"evaluators": [CHEAP, {"name": "b", "type": "nope"}, {"name": "c", "type": "cost"}],
             "aggregator": {"type": "threshold", "threshold": 80}},
            ["evaluators[1].type", "evaluators[2].config.budget", "aggregator.threshold"],
        ),
    ],
)  # fmt: skip
def test_every_mistake_of_a_composite_is_reported_at_its_key(config: dict[str, Any], keys: list[str]) -> None:
    with pytest.raises(InputError) as raised:
        build_evaluator("composite", config)
    assert [problem.key for problem in raised.value.problems] == keys
