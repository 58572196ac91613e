"""`text_check`: one question about the text of an answer, by the rules of AgentEvals."""

from __future__ import annotations

import pytest

from evaluators.agentv_traces import judged, trace


@pytest.mark.parametrize(
    ("answer", "equal"), [("\ufeff hello\u3000\n", True), ("hello\x1f", False), ("hello\x85", False)]
)
def test_texts_are_trimmed_as_in_the_original(answer: str, equal: bool) -> None:
    assert judged("text_check", {"check": "equals", "value": "hello"}, trace(answer=answer)).passed is equal


@pytest.mark.parametrize(
    ("answer", "is_json"), [(" [1, 1.5e3]\n", True), ("9" * 5000, True), ("NaN", False), ('{"a": -Infinity}', False)]
)
def test_json_has_no_nan_and_integers_of_any_length(answer: str, is_json: bool) -> None:
    evaluation = judged("text_check", {"check": "is_json"}, trace(answer=answer))
    assert evaluation.passed is is_json
    assert (evaluation.hits if is_json else evaluation.misses) == ["is json"]
