"""Verdicts by bands of the weighted mean."""

from datetime import UTC, datetime

import pytest

from evalwright.model.plan import EvaluatorSpec, PassCriteria
from evalwright.model.result import EvaluationResult, band
from evalwright.model.trace import Output, Trace, TraceError
from evalwright.scoring.bands import banded_verdict, case_threshold
from evalwright.testing import a_case

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row(name, score, *, error=False, **detail):
    failed = TraceError("code_judge", "exit code 1") if error else None
    return EvaluationResult("c", "v", name, "t", score >= 0.8, NOW, NOW, score=score, error=failed, detail=detail)


def verdict(rows, specs=(), error=None):
    trace = Trace("c", "v", NOW, NOW, 0, "q", Output(), error=error)
    return banded_verdict(list(specs), trace, rows)


@pytest.mark.parametrize(
    ("score", "status"),
    [
        (0.8, "pass"),
        (0.7999999999999999, "pass"),
        (0.79, "borderline"),
        (0.6, "borderline"),
        (0.59, "fail"),
        (0, "fail"),
    ],
)
def test_bands(score, status):
    assert band(score) == status


def test_weights_count():
    specs = [EvaluatorSpec("a", "t", weight=3), EvaluatorSpec("b", "t")]
    banded = verdict([row("a", 0.9), row("b", 0.5)], specs)
    assert (banded.score, banded.status) == (pytest.approx(0.8), "pass")


def test_weights_of_nothing_give_nothing():
    assert verdict([row("a", 1.0)], [EvaluatorSpec("a", "t", weight=0)]).score == 0.0


def test_a_gated_result_fails_a_good_mean():
    banded = verdict([row("a", 0.9, gated=True)])
    assert (banded.score, banded.status, banded.reasons) == (0.9, "fail", ["a"])


def test_a_mean_that_is_too_low_is_the_reason_where_every_evaluator_passed():
    trace = Trace("c", "v", NOW, NOW, 0, "q", Output())
    halves = [row("a", 0.5), row("b", 0.6)]
    for one in halves:  # as members of a composite that is content with half pass
        one.passed = True
    by_name = {threshold: banded_verdict([], trace, halves, threshold).reasons for threshold in (None, 0.7)}
    assert by_name == {None: ["score 0.55 (0.8 needed)"], 0.7: ["score 0.55 (0.7 needed)"]}


def test_below_its_required_score_everything_is_nothing():
    banded = verdict([row("a", 0.7), row("b", 1.0)], [EvaluatorSpec("a", "t", required=0.8)])
    assert (banded.score, banded.status) == (0.0, "fail")


def test_misses_that_the_reason_does_not_tell_are_reasons():
    missed = row("a", 0.2)
    missed.reason, missed.misses = "looked; no price", ["no price", "no date"]
    assert verdict([missed]).reasons == ["a: looked; no price; no date"]


def test_an_evaluator_that_could_not_judge_leaves_no_verdict():
    banded = verdict([row("a", 1.0), row("b", 0.0, error=True)])
    assert (banded.score, banded.status, banded.reasons) == (0.5, "error", ["b: code_judge: exit code 1"])


def test_a_system_that_failed_leaves_no_verdict():
    assert verdict([], error=TraceError("timeout", "late")).status == "error"


def test_a_score_that_reaches_the_threshold_passes():
    trace = Trace("c", "v", NOW, NOW, 0, "q", Output())
    for score, status in ((0.3, "pass"), (0.1 + 0.2, "pass"), (0.3 - 1e-8, "fail"), (0.2999999999, "pass")):
        assert banded_verdict([], trace, [row("a", score)], threshold=0.3).status == status
    for score in (11 / 24, 3 / 23, 2 / 3):  # a threshold with more digits than are compared
        assert banded_verdict([], trace, [row("a", score)], threshold=score).status == "pass"
    assert banded_verdict([], trace, [row("a", 0.0)], threshold=1e-10).status == "fail"
    assert EvaluatorSpec("a", "t", required=1e-10).gate_missed(None)


@pytest.mark.parametrize(("score", "reached"), [(sum([0.7] * 3) / 3, True), (0.7 - 1e-8, False)])
def test_a_score_that_reaches_the_required_one_closes_no_gate(score, reached):
    banded = verdict([row("a", score), row("b", 1.0)], [EvaluatorSpec("a", "t", required=0.7), EvaluatorSpec("b", "t")])
    assert (banded.status != "fail", bool(banded.score)) == (reached, reached)


def test_a_result_that_the_plan_does_not_name_weighs_one():
    assert verdict([row("a", 1.0), row("b", 0.0)], [EvaluatorSpec("a", "t", weight=1.0)]).score == 0.5


def test_the_threshold_of_a_case_goes_before_that_of_the_suite():
    criteria = PassCriteria(threshold=0.5)
    thresholds = [case_threshold(a_case(extra={"pass_threshold": own}), criteria) for own in (0.9, None, "0.9")]
    assert thresholds == [0.9, 0.5, 0.5]
    assert case_threshold(a_case(), PassCriteria()) is None
