"""`field_accuracy`: the fields of a JSON answer beside expected ones, by the rules of AgentEvals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.agentv_traces import judged, trace
from evalwright.errors import InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.evaluators.values.field_accuracy import same_day
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case


def compared(
    expected: Any, answer: str, *fields: str | dict[str, Any], aggregation: str = "weighted_average"
) -> Evaluation:
    """`answer` beside an expected message, in some fields."""
    case = Case("c", "q", extra={"expected_messages": [{"role": "assistant", "content": expected}]})
    listed = [field if isinstance(field, dict) else {"path": field} for field in fields]
    return judged("field_accuracy", {"fields": listed, "aggregation": aggregation}, trace(answer=answer), case)


@pytest.mark.parametrize(
    ("answer", "score"), [("[1, 2]", 0.5), ("null", 0.5), ("```json\n3\n```", 0.5), ("NaN", 0.0), ("done", 0.0)]
)
def test_an_answer_may_be_any_json(answer: str, score: float) -> None:
    assert compared({"a": 1}, answer, "a", "not.expected").score == score


def test_a_path_leads_into_a_list_that_is_the_answer() -> None:
    assert compared({"0": 7}, "[7, 8]", "[0]").score == 1


@pytest.mark.parametrize(
    ("field", "expected", "given", "met"),
    [
        ({"path": "a"}, 1, 1.0, True),
        ({"path": "a"}, "1", 1, False),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 1}, "10 USD", 11, True),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 1}, 10, "$10", False),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 0.1, "relative": True}, 100, 109, True),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 1}, 10, 10**400, False),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 1}, 10**400, 10, False),
        ({"path": "a", "match": "date"}, "2024-03-05", "05-MAR-2024", True),
        ({"path": "a", "match": "contains"}, "cat", "a cat", True),
        ({"path": "a", "match": "regex"}, r"^\d+$", 12, True),
        ({"path": "a", "match": "contains"}, "true", True, True),
        ({"path": "a", "match": "regex"}, "^null$", None, True),
        ({"path": "a", "match": "contains"}, '{"b":[1,2]', {"b": [1, 2], "c": 3}, True),
    ],
)
def test_each_field_is_compared_in_its_own_way(field: dict[str, Any], expected: Any, given: Any, met: bool) -> None:
    answer = f"```json\n{json.dumps({'a': given})}\n```"
    assert compared({"a": expected}, answer, field).score == float(met)


@pytest.mark.parametrize(
    ("aggregation", "score"), [("weighted_average", 0.75), ("all_or_nothing", 0.0), ("minimum", 0.0)]
)
def test_an_aggregation_makes_one_score_of_the_fields(aggregation: str, score: float) -> None:
    evaluation = compared('{"a": 1, "b": 2}', '{"a": 1}', {"path": "a", "weight": 3}, "b", aggregation=aggregation)
    assert evaluation.score == score


def test_an_optional_field_that_is_missing_does_not_count() -> None:
    assert compared({"a": 1, "b": 2}, '{"a": 1}', "a", {"path": "b", "required": False}).score == 1.0


@pytest.mark.parametrize("answer", ["no json", "[1]", "", '{"a": 1, "b": NaN}'])
def test_an_answer_without_the_field_as_json_scores_0(answer: str) -> None:
    assert compared({"a": 1}, answer, "a").score == 0.0


def test_an_unknown_key_of_a_field_is_rejected() -> None:
    with pytest.raises(InputError, match="wieght"):
        build_evaluator("field_accuracy", {"fields": [{"path": "a", "wieght": 2}]})


@pytest.mark.parametrize(
    ("a", "b", "formats", "same"),
    [
        ("2024-03-05T23:00:00Z", "2024-03-05", [], True),
        ("13/02/2024", "2024-02-13", [], True),
        ("03/05/2024", "2024-03-05", [], True),
        ("03/05/2024", "2024-05-03", ["DD/MM/YYYY"], True),
        ("03/05/2024", "2024-05-03", ["DD-MMM-YYYY", "YYYY-MM-DD"], True),
        ("03/05/2024", "2024-03-05", ["DD/MM/YYYY", "MM-DD-YYYY"], True),
        ("March 5, 2024", "2024-03-05", [], True),
        ("Tue, 5 Mar. 2024 10:00", "Sept 5 2024", [], False),
        ("Tuesday, Mar. 5 2024", "5 March, 2024", [], True),
        ("2024/3/5", "2024.03.05", [], True),
        ("3/5/24", "2024-03-05", [], True),
        ("5.3.2024", "2024-03-05", ["DD.MM.YYYY"], True),
        ("12/31/99", "1999-12-31", [], True),
        ("3/5/245", "2024-03-05", [], False),
        ("2024-02-30", "2024-02-30", [], False),
        ("soon", "soon", [], False),
    ],
)
def test_dates_of_any_form_are_the_same_day_or_not(a: str, b: str, formats: list[str], same: bool) -> None:
    assert same_day(a, b, formats) is same
