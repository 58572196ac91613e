"""What no judge of any format takes for a verdict, and thinking that decides nothing in any of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evaluators.scripted_models import Scripted, case, judged, says, trace
from evalwright.errors import EvaluatorError

TARGET = {"judges": {"targets": {"j": {"name": "j", "provider": "openai", "model": "m"}}, "default": "j"}}
SEEN = msgspec.structs.replace(trace(), extra={"promptfoo": {"prompt": "q", "vars": {}, "output": "On its way."}})
FORMATS: dict[str, tuple[dict[str, Any], str, str]] = {
    "llm_judge": (
        {"model": "gpt-4o", "nl_assertions": ["x"]},
        '{"assertions":[{"text":"x","passed":true,"reason":"r"}]}',
        '{"assertions":[{"text":"x","passed":false,"reason":"r"}]}',
    ),
    "pairwise_judge": (
        {"model": "gpt-4o", "criteria": "c", "reference_text": "r"},
        '{"reason":"r","better":"tie"}',
        '{"reason":"r","better":"A"}',
    ),
    "rubric_judge": (
        {"model": "gpt-4o", "rubric": "r"},
        '{"score":1,"reason":"r","feedback":"f"}',
        '{"score":0,"reason":"r","feedback":"f"}',
    ),
    "rubric_template": ({"prompt": "{submission}"}, '{"score":1}', '{"score":0}'),
    "criteria_judge": (TARGET, '{"score":1}', '{"score":0}'),
    "rubric_checks": (
        {**TARGET, "rubrics": [{"id": "a", "text": "x", "weight": 1, "required": False}]},
        '{"checks":[{"id":"a","satisfied":true,"reasoning":""}]}',
        '{"checks":[{"id":"a","satisfied":false,"reasoning":""}]}',
    ),
    "ClosedQA": ({}, '{"reasons":"r","choice":"Y"}', '{"reasons":"r","choice":"N"}'),
    "promptfoo": ({"assertion": {"type": "llm-rubric", "value": "x"}}, '{"pass":true,"score":1}', '{"pass":false}'),
}  # fmt: skip


def found(kind: str, reply: str) -> bool | str:
    """Whether it passes; `none` where there is no verdict: an error, or AgentV's score 0 that says so beside it."""
    try:
        result = judged(kind, FORMATS[kind][0], Scripted(says(reply)), on=SEEN, of=case())
    except EvaluatorError:
        return "none"
    return "none" if "judge_error" in result.detail else result.passed


def twice(verdict: str) -> str:
    """The verdict with its first key once more."""
    key = verdict[1 : verdict.index(":")]
    return f"{{{key}:null,{verdict[1:]}"


@pytest.mark.parametrize("kind", FORMATS)
def test_no_judge_decides_by_thinking_or_by_one_of_two_verdicts(kind: str) -> None:
    _, yes, no = FORMATS[kind]
    assert found(kind, yes) is True
    unclear = (f"{no}\n{yes}", f"{yes}\n{no}", twice(yes), twice(no), "{}", "[true]", "true", '{"other":1}', "")
    assert {reply: found(kind, reply) for reply in unclear} == dict.fromkeys(unclear, "none")
    assert found(kind, f"<think>{yes}") == "none"


@pytest.mark.parametrize("kind", ["rubric_judge", "criteria_judge"])
def test_true_is_no_score(kind: str) -> None:
    assert found(kind, FORMATS[kind][1].replace(":1", ":true", 1)) == "none"


@pytest.mark.parametrize(
    "value", ['{"reason":"neither"}', '{"pass":"maybe"}', '{"pass":null}', '{"score":true}', '{"score":"high"}']
)
def test_what_promptfoo_would_take_for_a_pass_is_no_verdict(value: str) -> None:
    assert found("promptfoo", value) == "none"


def test_agentvs_rubric_with_two_verdicts_has_none() -> None:
    one, other = (f'{{"id":"a","satisfied":{word},"reasoning":""}}' for word in ("true", "false"))
    assert found("rubric_checks", f'{{"checks":[{one},{one}]}}') is True
    assert found("rubric_checks", f'{{"checks":[{one},{other}]}}') == "none"
