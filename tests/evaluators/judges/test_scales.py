"""Scales of judges: what is wrong with one is reported before a run, not in each result."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.scripted_models import Scripted, judged, problems, says

NUMERIC = {"mode": "numeric", "min_score": 1, "max_score": 5, "passing_score": 3}
JUDGE = {"model": "gpt-4o-mini", "rubric": "Is it good?"}


@pytest.mark.parametrize(
    ("scoring", "said"),
    [
        ({**NUMERIC, "max_score": 1}, "max_score must be greater than min_score"),
        ({"mode": "numeric"}, "passing_score is required"),
        ({**NUMERIC, "passing_score": 6}, "passing_score must be within"),
        ({**NUMERIC, "labels": {"5": "great", "good": "fine"}}, "labels must have scores as keys, found 'good'"),
        ({**NUMERIC, "labels": {"nan": "odd"}}, "found 'nan'"),
    ],
)
def test_a_scale_that_no_reply_can_use_is_rejected(scoring: dict[str, Any], said: str) -> None:
    listed = problems("rubric_judge", {**JUDGE, "scoring": scoring})
    assert list(listed) == ["scoring"]
    assert said in listed["scoring"]


@pytest.mark.parametrize(("score", "label"), [(5, "great"), (4, "pass"), (2, "fail")])
def test_a_score_has_its_label_or_that_of_its_verdict(score: int, label: str) -> None:
    models = Scripted(says({"score": score, "reason": "r", "feedback": "f"}))
    evaluation = judged("rubric_judge", {**JUDGE, "scoring": {**NUMERIC, "labels": {"5.0": "great"}}}, models)
    assert evaluation.detail["label"] == label
