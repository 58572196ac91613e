"""`tool_trajectory`: calls beside expected ones, by the rules of AgentEvals."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.agentv_traces import NOW, call, judged, trace
from evalwright.errors import InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.model.trace import Output, ToolCall, Trace


def tools(*names: str) -> list[dict[str, Any]]:
    return [{"tool": name} for name in names]


@pytest.mark.parametrize(
    ("config", "calls", "score"),
    [
        ({"minimums": {"a": 2}}, "aa", 1.0),
        ({"minimums": {"a": 2, "b": 1}}, "ac", 0.0),
        ({"minimums": {"a": 1}, "expected": tools("b")}, "ba", 1.0),
        ({"expected": tools("a", "a")}, "ab", 0.5),
        ({}, "abc", 1.0),
        ({"mode": "in_order", "expected": tools("a", "c")}, "abc", 1.0),
        ({"mode": "in_order", "expected": tools("c", "a")}, "abc", 0.5),
        ({"mode": "in_order", "expected": []}, "a", 1.0),
        ({"mode": "exact", "expected": tools("a", "b")}, "ab", 1.0),
        ({"mode": "exact", "expected": tools("a", "b")}, "abb", 2 / 3),
        ({"mode": "exact", "expected": tools("a", "b")}, "ba", 0.0),
        ({"mode": "exact", "expected": []}, "a", 1.0),
    ],
)
def test_the_score_is_the_share_of_expected_calls_that_the_mode_accepts(
    config: dict[str, Any], calls: str, score: float
) -> None:
    assert judged("tool_trajectory", config, trace(*map(call, calls))).score == pytest.approx(score)


@pytest.mark.parametrize(
    ("wanted", "given", "met"),
    [
        ({"q": "cats"}, {"q": "cats", "n": 1}, True),
        ({"q": "cats"}, {"n": 1}, False),
        ({"n": 1}, {"n": "1"}, False),
        ({"n": 1}, {"n": True}, False),
        ({"n": 1}, {"n": 1.0}, True),
        ({"o": {"a": 1}}, {"o": {"a": 1, "b": 2}}, False),
        ({"l": [1, 2]}, {"l": [2, 1]}, False),
        ({"x": None}, {"x": None}, True),
        ("any", None, True),
        ({}, {}, True),
        ({}, None, False),
        ({"q": "any"}, {"q": "cats"}, False),
        ({"q": "cats"}, '{"q": "cats"}', True),
    ],
)
def test_named_arguments_must_be_deeply_equal_and_others_do_not_matter(wanted: Any, given: Any, met: bool) -> None:
    config = {"mode": "in_order", "expected": [{"tool": "a", "args": wanted}]}
    assert judged("tool_trajectory", config, trace(call("a", given))).score == float(met)


@pytest.mark.parametrize(("limit", "took", "score"), [(100, 100, 1.0), (100, 101, 0.5), (100, None, 1.0)])
def test_a_time_limit_is_one_more_requirement(limit: int, took: int | None, score: float) -> None:
    config = {"mode": "in_order", "expected": [{"tool": "a", "max_duration_ms": limit}]}
    timed = call("a") if took is None else call("a", duration_ms=took)
    assert judged("tool_trajectory", config, trace(timed)).score == score


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (
            {"mode": "in_order", "expected": [{"tool": "a", "max_duration_ms": 1}]},
            "the call of a has no duration: its limit is not checked",
        ),
        ({"mode": "exact", "expected": []}, "no call is expected; calls made: 1"),
    ],
)
def test_a_pass_that_checked_nothing_gives_that_as_its_reason(config: dict[str, Any], reason: str) -> None:
    evaluation = judged("tool_trajectory", config, trace(call("a")))
    assert (evaluation.score, evaluation.reason) == (1.0, reason)


def test_an_unknown_key_of_an_expected_call_is_rejected() -> None:
    with pytest.raises(InputError, match="arg"):
        build_evaluator("tool_trajectory", {"expected": [{"tool": "a", "arg": {}}]})


def test_the_calls_of_a_native_trace_are_a_trajectory_too() -> None:
    native = Trace("c", "v", NOW, NOW, 0, "q", Output("x"), tool_calls=[ToolCall("a", "1", {"q": 1})])
    config = {"mode": "exact", "expected": [{"tool": "a", "args": {"q": 1}}]}
    assert judged("tool_trajectory", config, native).score == 1.0


def test_a_trace_without_messages_misses_every_trajectory() -> None:
    nothing = Trace("c", "v", NOW, NOW, 0, "q", Output())
    evaluation = judged("tool_trajectory", {"minimums": {"a": 0}}, nothing)
    assert (evaluation.passed, evaluation.misses) == (False, ["No trace available"])
