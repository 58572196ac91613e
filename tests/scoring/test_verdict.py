from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from evalwright.model.plan import PassCriteria
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import TraceError
from evalwright.scoring.verdict import cell_status, cell_verdict
from evalwright.testing import a_result, a_trace

NO = TraceError("ValueError", "bad path")


def passed(name: str = "a", **fields: Any) -> EvaluationResult:
    return a_result(evaluator=name, **{"passed": True, **fields})


def failed(name: str = "a", **fields: Any) -> EvaluationResult:
    return passed(name, passed=False, **fields)


def skipped(name: str = "a") -> EvaluationResult:
    return passed(name, skipped=True)


def broken(name: str = "a", **fields: Any) -> EvaluationResult:
    return failed(name, error=NO, **fields)


def needs(*all_required: str, some: tuple[str, ...] = (), errored: str = "error") -> PassCriteria:
    return PassCriteria(list(all_required), list(some), errored)


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([], "error"),
        ([passed("a")], "error"),
        ([failed("a")], "error"),
        ([passed("a"), passed("b")], "pass"),
        ([passed("a"), failed("b")], "fail"),
        ([failed("a"), passed("b")], "fail"),
        ([passed("a"), passed("c")], "error"),
        ([passed("a"), broken("b")], "error"),
        ([passed("a"), passed("b", error=NO)], "error"),
        ([failed("a"), broken("b")], "error"),
        ([passed("a"), skipped("b")], "pass"),
        ([failed("a"), skipped("b")], "fail"),
        ([skipped("a"), skipped("b")], "skip"),
        ([skipped("a")], "error"),
        ([skipped("a"), broken("b")], "error"),
        ([passed("a"), passed("b"), failed("c")], "fail"),
    ],
)
def test_without_criteria_every_evaluator_must_pass(results: list[EvaluationResult], status: str) -> None:
    assert cell_status(PassCriteria(), ["a", "b"], False, results) == status
    as_failed = cell_status(PassCriteria(errored_evaluators="fail"), ["a", "b"], False, results)
    assert as_failed == ("fail" if status == "error" else status)


def test_a_cell_without_results_is_no_skip_where_no_evaluator_is_named() -> None:
    assert cell_status(PassCriteria(), [], False, []) == "error"
    assert cell_status(PassCriteria(errored_evaluators="fail"), [], False, []) == "fail"


@pytest.mark.parametrize(
    ("criteria", "results", "status"),
    [
        (needs("a"), [passed("a"), failed("b")], "pass"),
        (needs("a"), [passed("b")], "fail"),
        (needs("a"), [broken("a"), passed("b")], "fail"),
        (needs("a"), [passed("a"), broken("b")], "pass"),
        (needs("a"), [skipped("a"), passed("b")], "skip"),
        (needs("a", "b"), [skipped("a"), passed("b")], "pass"),
        (needs(some=("a", "b")), [failed("a"), passed("b")], "pass"),
        (needs(some=("a", "b")), [failed("a"), failed("b")], "fail"),
        (needs(some=("a", "b")), [skipped("a"), failed("b")], "fail"),
        (needs(some=("a", "b")), [skipped("a"), skipped("b"), failed("c")], "skip"),
        (needs("c", some=("a", "b")), [skipped("a"), skipped("b"), passed("c")], "pass"),
        (needs("c", some=("a",)), [passed("a"), failed("c")], "fail"),
        (needs("c", some=("a",)), [passed("c"), failed("a")], "fail"),
        (needs("a"), [], "fail"),
    ],
)
def test_criteria_name_what_must_pass(criteria: PassCriteria, results: list[EvaluationResult], status: str) -> None:
    assert cell_status(replace(criteria, errored_evaluators="fail"), ["a", "b", "c"], False, results) == status


def test_an_evaluator_that_criteria_do_not_name_leaves_the_cell_without_a_verdict_when_it_errors() -> None:
    assert cell_status(needs("a"), ["a", "b"], False, [passed("a"), broken("b")]) == "error"
    assert cell_status(needs("a"), ["a", "b"], False, [passed("a"), failed("b")]) == "pass"
    assert cell_status(needs("a"), ["a", "b"], False, [failed("a")]) == "error"


@pytest.mark.parametrize("errored", ["error", "count"])
@pytest.mark.parametrize("results", [[], [passed()], [failed()], [skipped()]])
def test_an_errored_cell_is_an_error_whatever_its_evaluators_say(results: list[EvaluationResult], errored: str) -> None:
    assert cell_status(PassCriteria(errored_cases=errored), ["a"], True, results) == "error"


@pytest.mark.parametrize(
    ("results", "status"), [([], "error"), ([passed()], "pass"), ([failed()], "fail"), ([skipped()], "error")]
)
def test_upstreams_rule_lets_the_evaluators_of_an_errored_cell_decide(
    results: list[EvaluationResult], status: str
) -> None:
    assert cell_status(needs(errored="evaluate"), ["a"], True, results) == status
    errors_fail = PassCriteria(errored_cases="evaluate", errored_evaluators="fail")
    assert cell_status(errors_fail, ["a"], True, results) == status


def test_the_score_is_the_mean_of_the_scores_there_are() -> None:
    results = [passed("a", score=1.0), failed("b", score=0.5), failed("c"), broken("d", score=0.9)]
    assert cell_verdict(PassCriteria(errored_evaluators="fail"), [], a_trace(), results).score == 0.75
    assert cell_verdict(PassCriteria(), [], a_trace(), results).score is None


def test_the_score_does_not_depend_on_the_order_of_evaluators_and_is_finite() -> None:
    def score(*scores: float) -> float | None:
        return cell_verdict(PassCriteria(), [], a_trace(), [passed(f"e{s}", score=s) for s in scores]).score

    assert score(0.1, 0.2, 0.3) == score(0.3, 0.2, 0.1)
    assert score(1.5e308, 1.25e308) == 1.375e308


def test_without_scores_there_is_none() -> None:
    assert cell_verdict(PassCriteria(), [], a_trace(), [passed()]).score is None


def test_an_errored_cell_has_no_score_and_carries_its_error() -> None:
    error = TraceError("timeout", "no answer in 3 s")
    verdict = cell_verdict(PassCriteria(), [], a_trace(error=error), [passed(score=1.0)])
    assert (verdict.status, verdict.score, verdict.error) == ("error", None, error)
    assert verdict.reasons == ["timeout: no answer in 3 s"]


def test_reasons_name_each_evaluator_that_did_not_pass() -> None:
    silent = [failed("e"), failed("f", score=0.25)]
    results = [passed("a"), failed("b", reason="missing 'x'"), broken("c"), skipped("d"), *silent]
    verdict = cell_verdict(PassCriteria(), ["a", "g"], a_trace(), results)
    assert verdict.reasons == ["b: missing 'x'", "c: ValueError: bad path", "e", "f: score 0.25", "g: no result"]


def test_a_reason_that_begins_with_its_evaluator_does_not_name_it_twice() -> None:
    results = [failed("ExactMatch", reason="ExactMatch: 0"), failed("other", reason="ExactMatch: 0")]
    assert cell_verdict(PassCriteria(), [], a_trace(), results).reasons == ["ExactMatch: 0", "other: ExactMatch: 0"]


@pytest.mark.parametrize(
    ("results", "reason"), [([], "nothing judged this cell"), ([skipped()], "every check was skipped")]
)
def test_a_cell_that_did_not_pass_always_says_why(results: list[EvaluationResult], reason: str) -> None:
    assert cell_verdict(PassCriteria(), [], a_trace(), results).reasons == [reason]


def test_a_pass_needs_no_reasons_and_names_its_cell() -> None:
    trace = a_trace(case_id="c7", variant_name="v2", trial=3, attempt=2, run_id="r")
    verdict = cell_verdict(needs("a"), ["a", "b"], trace, [passed("a"), failed("b")])
    cell = (verdict.case_id, verdict.variant_name, verdict.trial, verdict.attempt, verdict.run_id)
    assert (cell, verdict.status, verdict.reasons) == (("c7", "v2", 3, 2, "r"), "pass", [])


def test_a_broken_system_that_nothing_judged_is_no_skip_under_criteria_either() -> None:
    criteria = PassCriteria(errored_cases="evaluate", all_required=["a"])
    assert [cell_status(criteria, ["a"], errored, [skipped("a")]) for errored in (True, False)] == ["error", "skip"]
    assert [cell_status(criteria, ["a"], True, [row]) for row in (passed("a"), failed("a"))] == ["pass", "fail"]
