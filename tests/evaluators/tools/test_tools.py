"""`tool_called` and `tool_calls_match`."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.errors import EvaluatorError
from evalwright.evaluators.build import build_evaluator
from evalwright.model.snapshot import Expected
from evalwright.model.trace import ToolCall, ToolResult, Trace
from evalwright.testing import a_case, a_trace

CASE = a_case(metadata={"key": "ABC123", "n": 3})


def calling(*calls: ToolCall, results: list[ToolResult] | None = None) -> Trace:
    return a_trace(tool_calls=list(calls), tool_results=results or [])


def find(**arguments: Any) -> ToolCall:
    return ToolCall("find", arguments=arguments)


def verdict(type_name: str, config: dict[str, Any], trace: Trace, case: Any = CASE) -> Any:
    evaluator: Any = build_evaluator(type_name, config)
    return evaluator.evaluate(case, trace)


NEVER = calling(ToolCall("FIND"), ToolCall("other"))
ONCE = calling(find(id="ABC123"), ToolCall("other"))
TWICE = calling(find(id="ABC123"), find(id="zzz", n=3))


@pytest.mark.parametrize(
    ("config", "trace", "passed"),
    [
        ({}, ONCE, True),
        ({}, NEVER, False),
        ({"min_calls": 2}, ONCE, False),
        ({"min_calls": 2}, TWICE, True),
        ({"min_calls": 0}, NEVER, True),
        ({"max_calls": 1}, ONCE, True),
        ({"max_calls": 1}, TWICE, False),
        ({"max_calls": None}, TWICE, True),
        ({"max_calls": 0, "min_calls": 0}, ONCE, False),
        ({"must_appear": False}, NEVER, True),
        ({"must_appear": False}, ONCE, False),
        ({"must_appear": False, "min_calls": 2}, ONCE, False),
        ({"must_appear": False, "max_calls": 5}, ONCE, False),
        ({"args_match": {"id": "ABC123"}}, TWICE, True),
        ({"args_match": {"id": "ABC123"}, "min_calls": 2}, TWICE, False),
        ({"args_match": {"id": "nope"}}, TWICE, False),
        ({"args_match": {"id": "nope"}, "must_appear": False}, TWICE, True),
        ({"args_match": {}}, ONCE, True),
        ({"args_match": None}, ONCE, True),
        ({"args_match": {"id": "{{ case.metadata.key }}"}}, ONCE, True),
        ({"args_match": {"n": "{{ case.metadata.n }}"}}, TWICE, True),
        ({"args_match": {"n": "~={{ case.metadata.n }}"}}, TWICE, False),
        ({"args_match": {"id": "~=^{{ case.metadata.key }}$"}}, ONCE, True),
        ({"args_match": {"id": "{{ case.metadata.nope }}"}}, ONCE, False),
    ],
)
def test_how_often_a_tool_is_called(config: dict[str, Any], trace: Trace, passed: bool) -> None:
    result = verdict("tool_called", {"tool_name": "find", **config}, trace)
    assert (result.passed, result.score) == (passed, float(passed))


@pytest.mark.parametrize(
    ("results", "config", "passed"),
    [
        ([ToolResult("find", {"ok": 1}, "t1")], {}, True),
        ([ToolResult("find", {"error": "boom"}, "t1")], {}, False),
        ([ToolResult("find", {"is_error": True}, "t1")], {}, False),
        ([ToolResult("find", {"error": "", "is_error": False}, "t1")], {}, True),
        ([ToolResult("find", "Error: boom", "t1")], {}, True),
        ([ToolResult("find", {"error": "boom"}, "t1")], {"must_succeed": False}, True),
        ([ToolResult("find", {"error": "boom"}, "t9")], {}, True),
        ([ToolResult("find", {"error": "boom"})], {}, True),
        ([ToolResult("other", {"error": "boom"}, "t1")], {}, True),
        ([ToolResult("find", {"ok": 1}, "t1"), ToolResult("find", {"error": "boom"}, "t1")], {}, False),
        ([ToolResult("find", {"error": "boom"}, "t1")], {"args_match": {"x": 1}, "min_calls": 0}, True),
    ],
)
def test_a_result_that_reports_an_error_fails(results: list[ToolResult], config: dict[str, Any], passed: bool) -> None:
    trace = calling(ToolCall("find", "t1"), results=results)
    assert verdict("tool_called", {"tool_name": "find", **config}, trace).passed is passed


def test_without_ids_every_result_of_the_tool_counts() -> None:
    trace = calling(find(), results=[ToolResult("find", {"error": "boom"}, "t9")])
    assert not verdict("tool_called", {"tool_name": "find"}, trace).passed


@pytest.mark.parametrize(
    ("config", "trace", "reason"),
    [
        ({}, NEVER, "find was called 0 times, expected at least 1; called: FIND, other"),
        ({}, calling(), "find was called 0 times, expected at least 1; called: no tool"),
        ({"max_calls": 1}, TWICE, "find was called 2 times, expected at most 1"),
        ({"must_appear": False}, ONCE, "find was called 1 time, expected not at all"),
        (
            {"args_match": {"id": "{{ case.metadata.key }}", "n": 9}},
            ONCE,
            "find(id='ABC123', n=9) was called 0 times, expected at least 1; called: find(id='ABC123')",
        ),
        (
            {},
            calling(ToolCall("find", "t1"), results=[ToolResult("find", {"error": "boom"}, "t1")]),
            "find gave 1 error: 'boom'",
        ),
    ],
)
def test_why_a_tool_check_fails(config: dict[str, Any], trace: Trace, reason: str) -> None:
    assert verdict("tool_called", {"tool_name": "find", **config}, trace).reason == reason


def test_the_detail_counts_calls_and_names_failed_results() -> None:
    trace = calling(ToolCall("find", "t1", {"id": "ABC123"}), results=[ToolResult("find", {"error": "boom"}, "t1")])
    config = {"tool_name": "find", "args_match": {"id": "{{ case.metadata.key }}"}}
    assert verdict("tool_called", config, trace).detail == {
        "tool_name": "find",
        "count": 1,
        "args_match": {"id": "ABC123"},
        "failed_ids": ["t1"],
    }


@pytest.mark.parametrize(
    ("must_call", "called", "passed"),
    [
        (["p", "q"], ["q", "p"], True),
        (["p"], ["p", "q", "p"], True),
        (["p", "q"], ["p"], False),
        ([], [], True),
        (["p"], ["P"], False),
    ],
)
def test_without_a_name_the_case_lists_its_tools(must_call: list[str], called: list[str], passed: bool) -> None:
    case = a_case(expected=Expected(must_call_tools=must_call))
    assert verdict("tool_called", {}, calling(*map(ToolCall, called)), case).passed is passed


def test_the_reason_names_the_tools_that_were_not_called() -> None:
    case = a_case(expected=Expected(must_call_tools=["p", "q", "r"]))
    assert verdict("tool_called", {}, calling(ToolCall("q")), case).reason == "not called: 'p', 'r'; called: q"


A, B, C = ({"name": name} for name in "abc")
A1, A2 = ({"name": "a", "arguments": {"x": x}} for x in (1, 2))
MADE = calling(ToolCall("a", arguments={"x": 1, "y": 0}), ToolCall("b"), ToolCall("a", arguments={"x": 2}))


@pytest.mark.parametrize(
    ("expected", "config", "passed", "score"),
    [
        ([], {}, True, 1.0),
        ([B, A], {}, True, 1.0),
        ([A, A], {}, True, 1.0),
        ([A, A, A], {}, False, 2 / 3),
        ([A, C], {}, False, 0.5),
        ([A2, A1], {}, True, 1.0),
        ([A, A1], {}, True, 1.0),
        ([A1, B, A2], {"mode": "exact"}, True, 1.0),
        ([A1, B], {"mode": "exact"}, False, 1.0),
        ([B, A1, A2], {"mode": "exact"}, False, 2 / 3),
        ([A1, A2], {"mode": "in_order"}, True, 1.0),
        ([A2, A1], {"mode": "in_order"}, False, 0.5),
        ([C, A1, A2], {"mode": "in_order"}, False, 2 / 3),
        ([A2, B, A1], {"mode": "any_order"}, True, 1.0),
        ([A2, A1], {"mode": "any_order"}, False, 1.0),
        ([A1], {"arguments": "exact"}, False, 0.0),
        ([A2], {"arguments": "exact"}, True, 1.0),
        ([A], {"arguments": "exact"}, True, 1.0),
        ([{"name": "b", "arguments": {}}], {"arguments": "exact"}, True, 1.0),
        ([{"name": "a", "arguments": {"x": 9}}], {}, False, 0.0),
        ([{"name": "a", "arguments": {"x": 9}}], {"arguments": "ignore"}, True, 1.0),
        ([{"name": "a", "kwargs": {"x": 9}}], {}, False, 0.0),
        ([{"name": "a", "kwargs": {"x": 1}}], {}, True, 1.0),
        ([A1, A2], {"mode": "exact", "ignore_tools": ["b"]}, True, 1.0),
        ([A1, A2, B], {"mode": "exact", "only_tools": ["a"]}, True, 1.0),
        ([C], {"only_tools": ["a"]}, True, 1.0),
    ],
)
def test_calls_against_expected_ones(
    expected: list[dict[str, Any]], config: dict[str, Any], passed: bool, score: float
) -> None:
    result = verdict("tool_calls_match", {"expected": expected, **config}, MADE)
    assert (result.passed, result.score) == (passed, score)


@pytest.mark.parametrize(
    ("facts", "config", "passed"),
    [
        ({"actions": [A1, B]}, {}, True),
        ({"actions": [C]}, {}, False),
        ({"actions": [{"name": "a", "kwargs": {"x": 2}, "id": "more"}]}, {}, True),
        ({"plan": {"steps": [B]}}, {"expected_from": "plan.steps"}, True),
        ({"plan": {"steps": [C]}}, {"expected_from": "$.plan.steps"}, False),
        ({"actions": []}, {"mode": "exact"}, False),
        ({"actions": [C]}, {"expected": [A]}, True),
    ],
)
def test_expected_calls_are_facts_of_the_case(facts: dict[str, Any], config: dict[str, Any], passed: bool) -> None:
    case = a_case(expected=Expected(facts=facts))
    assert verdict("tool_calls_match", config, MADE, case).passed is passed


@pytest.mark.parametrize("facts", [{}, {"actions": None}])
def test_a_case_without_expected_calls_is_skipped(facts: dict[str, Any]) -> None:
    result = verdict("tool_calls_match", {}, MADE, a_case(expected=Expected(facts=facts)))
    assert (result.skipped, result.score) == (True, None)


@pytest.mark.parametrize("actions", ["a", [1], [{"kwargs": {}}], [{"name": 3}], [{"name": "a", "arguments": [1]}]])
def test_facts_that_are_no_calls_cannot_be_judged(actions: Any) -> None:
    with pytest.raises(EvaluatorError, match="'actions' is not a list of calls") as raised:
        verdict("tool_calls_match", {}, MADE, a_case(expected=Expected(facts={"actions": actions})))
    assert raised.value.type == "invalid_fact"


def test_expected_arguments_may_come_from_the_case() -> None:
    expected = [{"name": "find", "arguments": {"id": "{{ case.metadata.key }}"}}]
    assert verdict("tool_calls_match", {"expected": expected}, ONCE).passed


@pytest.mark.parametrize(
    ("expected", "config", "reason"),
    [
        ([C, A1], {}, "missing: c"),
        ([{"name": "a", "arguments": {"x": 3, "y": 0}}], {}, "missing: a(x=3, y=0) (called with x=1)"),
        ([{"name": "b", "arguments": {"z": 3}}], {}, "missing: b(z=3) (called with no z)"),
        ([A1], {"arguments": "exact"}, "missing: a(x=1) (called with y=0)"),
        ([A1, A2], {"mode": "any_order"}, "unexpected: b()"),
        ([B, A1, A2], {"mode": "in_order"}, "missing: b; called, but in another order than expected"),
        ([C] * 5, {}, "missing: c, c, c and 2 more"),
    ],
)
def test_the_reason_names_missing_and_unexpected_calls(
    expected: list[dict[str, Any]], config: dict[str, Any], reason: str
) -> None:
    assert verdict("tool_calls_match", {"expected": expected, **config}, MADE).reason == reason


def test_the_detail_lists_missing_calls_and_the_others() -> None:
    assert verdict("tool_calls_match", {"expected": [A1, C]}, MADE).detail == {
        "expected": 2,
        "made": 3,
        "missing": ["c"],
        "others": ["b()", "a(x=2)"],
    }
