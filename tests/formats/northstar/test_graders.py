"""The deterministic graders of NorthStar."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.northstar import (
    CaseStatus,
    Contains,
    EvalSuite,
    GradeResult,
    GradeStatus,
    RegexGrader,
    ToolOutputReferenced,
    default_graders,
    normalize_messages,
)
from formats.northstar.conversations import call, case, grade, says, tool


@pytest.mark.parametrize("name", [grader.name for grader in default_graders()])
def test_a_grader_skips_what_the_case_does_not_ask(name: str) -> None:
    result = grade(name, says("hello"))
    assert (result.status, result.score, result.threshold, result.label) == (GradeStatus.SKIPPED, None, None, None)


def test_every_call_counts_for_the_most_calls() -> None:
    messages = [says(None, call("a"), call("a"))]
    assert grade("max_tool_calls", *messages, max_tool_calls=2).passed
    result = grade("max_tool_calls", *messages, max_tool_calls=1)
    assert result.metadata == {"actual": 2, "limit": 1}
    assert "2 calls" in result.reason


def test_names_of_tools_are_exact() -> None:
    result = grade("required_tools", says(None, call("Search")), required_tools=["search", "Search"])
    assert result.metadata["missing_tools"] == ["search"]
    assert grade("forbidden_tools", says(None, call("Search")), forbidden_tools=["search"]).passed
    assert not grade("forbidden_tools", says(None, call("Search")), forbidden_tools=["Search"]).passed


@pytest.mark.parametrize(
    ("expected", "actual", "matches"),
    [
        ({"a": 1}, '{"a": 1, "b": 2}', True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": True}, {"a": 1}, True),
        ({"a": "2"}, {"a": 2}, False),
        ({"a": None}, {}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": {}}, {"a": []}, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, False),
        ({}, None, False),
        ({}, "", False),
        ({}, "[1]", False),
        ({}, '"{}"', False),
        ({}, "{}", True),
    ],
)
def test_expected_arguments_are_a_subset(expected: Any, actual: Any, matches: bool) -> None:
    result = grade(
        "tool_arguments_match", says(None, call("t", actual)), tool_arguments=[{"name": "t", "arguments": expected}]
    )
    assert result.passed is matches


def test_one_call_may_serve_several_expected_ones() -> None:
    wanted = [{"name": "t", "arguments": {"a": 1}}, {"name": "t", "arguments": {"b": 2}}]
    assert grade("tool_arguments_match", says(None, call("t", {"a": 1, "b": 2})), tool_arguments=wanted).passed


def test_a_sequence_is_the_whole_sequence() -> None:
    messages = [says(None, call("a"), call("b"))]
    assert grade("tool_sequence", *messages, tool_sequence=["a", "b"]).passed
    assert not grade("tool_sequence", *messages, tool_sequence=["b", "a"]).passed
    assert not grade("tool_sequence", *messages, tool_sequence=[]).passed


def test_a_third_of_the_terms_is_too_little_and_the_reason_names_them() -> None:
    result = grade(
        "tool_output_referenced", tool("alpha beta gamma"), says("alpha!"), require_tool_output_reference=True
    )
    assert result.score == pytest.approx(1 / 3)
    assert (result.threshold, result.evidence) == (0.35, ["alpha beta gamma"])
    assert "'alpha'" in result.reason
    assert "'beta'" in result.reason


def test_an_output_that_shares_no_term_is_no_evidence() -> None:
    result = grade("tool_output_referenced", tool("alpha beta"), says("gamma"), require_tool_output_reference=True)
    assert (result.score, result.evidence) == (0.0, [])


def test_the_nearest_output_counts() -> None:
    messages = [tool("nothing of this"), tool({"city": "Paris"}), says("City: Paris")]
    assert grade("tool_output_referenced", *messages, require_tool_output_reference=True).score == 1.0


def test_values_of_json_count_instead_of_its_names_where_asked() -> None:
    judged = case(tool({"temperature": 21}), says("21 degrees"), expected={"require_tool_output_reference": True})
    scores = [
        EvalSuite([grader]).run([judged]).case_results[0].grades[0].score
        for grader in (ToolOutputReferenced(), ToolOutputReferenced(values=True))
    ]
    assert scores == [0.0, 1.0]


@pytest.mark.parametrize("name", ["contains", "not_contains", "ground_truth_match"])
def test_without_a_final_response_nothing_is_found_or_absent(name: str) -> None:
    asked: dict[str, Any] = {"ground_truth": ""} if name == "ground_truth_match" else {name: []}
    assert grade(name, says(""), **asked).status == GradeStatus.FAILED


def test_phrases_are_found_in_any_case_of_letters_but_nothing_else_is_folded() -> None:
    result = grade("contains", says("It is SUNNY  today"), contains=["sunny", "sunny today", ""])
    assert result.metadata["missing_phrases"] == ["sunny today"]


def test_white_space_of_the_truth_does_not_matter() -> None:
    assert grade("ground_truth_match", says("The\u00a0 Answer\nis 42."), ground_truth=" answer IS  42").passed


@pytest.mark.parametrize(("metric", "passes"), [(100.0, True), (100.5, False), (None, False)])
def test_limits_include_their_value_and_what_was_not_measured_fails(metric: float | None, passes: bool) -> None:
    metrics = {"latency_ms": metric, "cost_usd": metric}
    assert grade("latency_under", says("x"), metrics=metrics, max_latency_ms=100).passed is passes
    assert grade("cost_under", says("x"), metrics=metrics, max_cost_usd=100).passed is passes


def test_what_is_just_above_its_limit_does_not_look_like_it() -> None:
    found = grade("cost_under", says("x"), metrics={"cost_usd": 0.1 + 0.2}, max_cost_usd=0.3)
    assert found.reason == "the cost is 0.30000000000000004 USD, at most 0.3 USD expected"


class TestCasesAndTotals:
    def test_all_skipped_is_not_evaluated_and_no_part_of_the_pass_rate(self) -> None:
        cases = [
            case(says("yes"), case_id="p", expected={"contains": "yes"}),
            case(says("yes"), case_id="f", expected={"contains": "no"}),
            case(says("yes"), case_id="n"),
        ]
        result = EvalSuite(metadata={"by": "me"}).run(cases)
        assert [found.status for found in result.case_results] == ["passed", "failed", "not_evaluated"]
        assert (result.evaluated_cases, result.pass_rate, result.skipped_grades) == (2, 0.5, 31)
        assert result.metadata["by"] == "me"

    def test_an_empty_dataset_has_a_pass_rate_of_nothing(self) -> None:
        result = EvalSuite().run([])
        assert (result.total_cases, result.pass_rate) == (0, 0.0)

    def test_what_a_grader_raises_is_its_failed_grade(self) -> None:
        class Broken:
            name = "broken"

            def grade(self, case: Any, run: Any) -> GradeResult:
                raise KeyError(case.metadata["key"])

        result = EvalSuite([Broken(), Contains()]).run(
            [case(says("x"), metadata={"key": "k"}, expected={"contains": "x"})]
        )
        broken, contains = result.case_results[0].grades
        assert (broken.status, broken.metadata["error_type"]) == (GradeStatus.FAILED, "KeyError")
        assert contains.passed

    def test_a_grader_can_be_called_alone_on_a_run(self) -> None:
        run = normalize_messages([says("other words")])
        assert Contains().grade(case(says("words"), expected={"contains": "other"}), run).passed

    @pytest.mark.slow("uses the second that a pattern may take")
    def test_what_cannot_be_judged_is_a_failed_grade_of_a_grader_called_alone_too(self) -> None:
        messages = [says("a" * 40 + "b")]
        said = RegexGrader("r", "(a+)+$").grade(case(*messages), normalize_messages(messages))
        assert (said.status, said.metadata["error_type"]) == (GradeStatus.FAILED, "Timeout")

    @pytest.mark.parametrize("wrong", [Contains, object(), "contains"])
    def test_what_is_no_grader_is_refused(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match="expected a grader"):
            EvalSuite([wrong])

    def test_what_is_no_case_is_refused(self) -> None:
        with pytest.raises(TypeError, match="expected an EvalCase, found dict"):
            EvalSuite().run([{"id": "a"}])  # type: ignore[list-item]

    def test_results_become_json(self) -> None:
        result = EvalSuite().run([case(says("x"), expected={"contains": "x"})])
        assert result.model_dump(mode="json")["case_results"][0]["status"] == CaseStatus.PASSED.value
        assert '"pass_rate":1.0' in result.model_dump_json()

    def test_a_case_that_json_cannot_hold_is_judged_all_the_same(self) -> None:
        result = EvalSuite().run([case(says("\ud800 x"), expected={"contains": "x"}), case(says("x"))])
        assert [found.status for found in result.case_results] == ["passed", "not_evaluated"]
