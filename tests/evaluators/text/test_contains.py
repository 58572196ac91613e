"""`contains_text` and `thinking_present`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from evalwright.errors import EvaluatorError
from evalwright.evaluators.text.contains import ContainsText, ThinkingPresent
from evalwright.model.snapshot import Expected
from evalwright.model.trace import Metrics, Output
from evalwright.testing import a_case, a_trace


def verdict(answer: str | None, case: Any = None, **config: Any) -> Any:
    return ContainsText(**config).evaluate(case or a_case(), a_trace(output=Output(answer)))


@pytest.mark.parametrize(
    ("answer", "config", "passed"),
    [
        ("Paris and Rome", {"all_of": ["Paris", "Rome"]}, True),
        ("Paris and Rome", {"all_of": ["Paris", "Oslo"]}, False),
        ("Paris and Rome", {"all_of": ["paris", "ROME"]}, True),
        ("Paris and Rome", {"all_of": ["paris"], "case_sensitive": True}, False),
        ("Paris and Rome", {"any_of": ["Oslo", "Rome"]}, True),
        ("Paris and Rome", {"any_of": ["Oslo"]}, False),
        ("Paris and Rome", {"any_of": []}, True),
        ("Paris and Rome", {"none_of": ["Oslo"]}, True),
        ("Paris and Rome", {"none_of": ["rome"]}, False),
        ("Paris and Rome", {"none_of": ["rome"], "case_sensitive": True}, True),
        ("Paris and Rome", {"all_of": ["Paris"], "any_of": ["Rome"], "none_of": ["Oslo"]}, True),
        ("Paris and Rome", {}, True),
        ("unParisian", {"all_of": ["Paris"]}, True),
        ("a  b", {"all_of": ["a b"]}, False),
        ("Straße", {"all_of": ["strasse"]}, False),
        ("CAFÉ", {"all_of": ["café"]}, True),
        ("", {"all_of": [""]}, True),
        (None, {"all_of": ["x"]}, False),
        (None, {"none_of": ["None"]}, True),
    ],
)
def test_which_answers_pass(answer: str | None, config: dict[str, Any], passed: bool) -> None:
    result = verdict(answer, **config)
    assert (result.passed, result.score) == (passed, float(passed))


@pytest.mark.parametrize(
    ("config", "passed"),
    [
        ({}, False),
        ({"none_of": []}, True),
        ({"all_of": []}, False),
        ({"all_of": [], "none_of": []}, True),
        ({"all_of": ["Oslo"], "none_of": []}, False),
        ({"all_of": None, "none_of": None}, False),
    ],
)
def test_lists_that_are_not_given_come_from_the_case(config: dict[str, Any], passed: bool) -> None:
    expected = Expected(answer_should_include=["Paris"], answer_should_not_include=["Rome"])
    assert verdict("Paris and Rome", a_case(expected=expected), **config).passed is passed


@pytest.mark.parametrize(
    ("field", "word", "passed"),
    [
        ("output.thinking", "hm", True),
        ("$.output.final_answer", "Hello", True),
        ("metrics.cost_usd", "0.25", True),
        ("metrics.stream_completed", "True", True),
        ("input", "'user_message': 'Hello'", True),
    ],
)
def test_another_field_is_searched_as_text(field: str, word: str, passed: bool) -> None:
    trace = a_trace(output=Output("Hello", "Hm."), metrics=Metrics(cost_usd=0.25, stream_completed=True))
    assert ContainsText(all_of=[word], field=field).evaluate(a_case(), trace).passed is passed


def test_the_detail_lists_what_was_found() -> None:
    result = verdict("Paris, Rome", all_of=["paris", "Oslo"], any_of=["Rome", "Bonn"], none_of=["Paris", "x"])
    assert result.detail == {
        "field": "output.final_answer",
        "matched_all_of": ["paris"],
        "matched_any_of": ["Rome"],
        "matched_none_of": ["Paris"],
    }


def test_the_reason_names_every_kind_of_failure_and_the_text() -> None:
    reason = verdict("Paris", all_of=["Oslo"], any_of=["Bonn", "Bern"], none_of=["paris"]).reason
    assert reason == "missing: 'Oslo'; none matched of: 'Bonn', 'Bern'; forbidden: 'paris'; in 'Paris'"


def test_the_reason_says_that_there_is_no_text() -> None:
    assert verdict(None, all_of=["Oslo"]).reason == "missing: 'Oslo'; the text is empty"


def test_the_reason_stays_short() -> None:
    assert len(verdict("long " * 10_000, all_of=["word " * 1000] * 100).reason) < 400


@pytest.mark.parametrize(
    ("thinking", "passed", "reason"),
    [("Hm.", True, ""), (" ", True, ""), ("", False, "thinking is empty"), (None, False, "thinking is missing")],
)
def test_thinking_is_present(thinking: str | None, passed: bool, reason: str) -> None:
    result = ThinkingPresent().evaluate(a_case(), a_trace(output=Output("x", thinking)))
    assert (result.passed, result.reason) == (passed, reason)


@pytest.mark.parametrize("field", ["output.structured.titel", "output.nope", "$.tool_calls[*].nmae", "messages[7]"])
@pytest.mark.parametrize("rule", [{"none_of": ["password"]}, {"all_of": ["x"]}, {"all_of": [], "none_of": []}])
def test_a_field_that_the_trace_does_not_have_is_an_error(field: str, rule: dict[str, Any]) -> None:
    with pytest.raises(EvaluatorError, match=re.escape(field)) as raised:
        verdict("fine", field=field, **rule)
    assert raised.value.type == "absent_field"


def test_a_field_that_the_trace_lacks_is_empty_if_configured() -> None:
    assert verdict("fine", field="output.nope", none_of=["password"], absent="empty").passed
    assert not verdict("fine", field="output.nope", all_of=["x"], absent="empty").passed


def test_null_is_a_value_and_an_empty_text() -> None:
    assert verdict("fine", field="output.thinking", none_of=["None"]).passed
