"""Rates, means and errors of each evaluator."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.model.plan import PassCriteria, RunSettings
from evalwright.model.result import Status
from evalwright.model.trace import TraceError
from evalwright.scoring.tally import Tally
from evalwright.statistics.rates import rate_with_design_effect
from evalwright.testing import a_result, a_trace, a_verdict
from scoring.histories import EVALUATORS, MOMENT, plan, plan_of_one, repeated


def test_rollups_are_sorted_and_leave_out_what_was_skipped() -> None:
    of = plan()
    tally = Tally.of(of)
    rows = [a_result(evaluator="z", passed=True, score=1.0), a_result(evaluator="b", passed=True, skipped=True)]
    tally.add(a_trace(variant_name="v0"), rows, a_verdict())
    tally.add(a_trace(variant_name="v0", case_id="c2"), [a_result(evaluator="z", passed=False, score=0.5)], a_verdict())
    rollups = tally.summary(of, MOMENT).by_evaluator
    assert [rollup.evaluator for rollup in rollups] == ["b", *EVALUATORS, "z"]
    skipped, unused, *_, judged = (rollup.by_variant["v0"] for rollup in rollups)
    assert (skipped.n, skipped.skipped, skipped.pass_rate, skipped.pass_rate_ci95) == (0, 1, None, None)
    assert (unused.n, unused.pass_rate, unused.scored) == (0, None, 0)
    assert (judged.n, judged.pass_rate, judged.avg_score, judged.scored) == (2, 0.5, 0.75, 2)


def test_an_evaluator_that_the_plan_does_not_have_appears_only_for_variants_with_results_of_it() -> None:
    of = plan()
    tally = Tally.of(of)
    for variant, evaluator in (("v0", "of a case"), ("v1", "e0")):
        tally.add(a_trace(variant_name=variant), [a_result(evaluator=evaluator)], a_verdict())
    found = {rollup.evaluator: [*rollup.by_variant] for rollup in tally.summary(of, MOMENT).by_evaluator}
    assert found == {"of a case": ["v0"], **{name: ["v0", "v1"] for name in EVALUATORS}}


@pytest.mark.parametrize(
    ("criteria", "n", "rate"), [(PassCriteria(), 1, 1.0), (PassCriteria(errored_evaluators="fail"), 2, 0.5)]
)
def test_an_evaluators_errors_are_counted_beside_its_rate_and_mean(criteria: PassCriteria, n: int, rate: float) -> None:
    sound = a_result(evaluator="e0", passed=True, score=1.0)
    broken = a_result(evaluator="e0", passed=False, score=0.0, error=TraceError("timeout", "no reply"))
    of = plan(pass_criteria=criteria)
    tally = Tally.of(of)
    for case, row in (("c0", sound), ("c1", broken)):
        tally.add(a_trace(variant_name="v0", case_id=case), [row], a_verdict())
    v0 = tally.summary(of, MOMENT).by_evaluator[0].by_variant["v0"]
    assert (v0.n, v0.errors, v0.pass_rate, v0.avg_score, v0.scored) == (n, 1, rate, 1.0, 1)


@pytest.mark.parametrize(("errored", "n"), [("error", 0), ("evaluate", 1), ("count", 1)])
def test_results_on_the_trace_of_an_error_count_only_where_evaluators_may_see_it(errored: str, n: int) -> None:
    of = plan(pass_criteria=PassCriteria(errored_cases=errored))
    tally = Tally.of(of)
    trace = a_trace(variant_name="v0", error=TraceError("adapter_error", "down"))
    tally.add(trace, [a_result(evaluator="e0", passed=True, score=1.0)], a_verdict(status="error"))
    assert tally.summary(of, MOMENT).by_evaluator[0].by_variant["v0"].n == n


def test_trials_that_erred_do_not_make_the_cases_of_an_evaluator_fewer() -> None:
    of = plan_of_one(cases_total=2, run=RunSettings(trials=3))
    tally = Tally.of(of)
    for case, variant, status in [*repeated("c0", "pass", "pass", "error"), *repeated("c1", "pass", "pass", "error")]:
        rows = [] if status == "error" else [a_result(case_id=case, variant_name=variant, evaluator="e")]
        verdict = a_verdict(case_id=case, variant_name=variant, status=status)
        tally.add(a_trace(case_id=case, variant_name=variant), rows, verdict)
    rollups = tally.summary(of, MOMENT).by_evaluator
    rate = next(rollup for rollup in rollups if rollup.evaluator == "e").by_variant["v0"]
    assert (rate.n, rate.cases) == (4, 2)


def test_intervals_of_evaluators_and_of_groups_are_those_of_their_own_counts() -> None:
    of = plan_of_one(cases_total=6)
    tally = Tally.of(of)
    passed = [True, True, True, True, False, False]
    groups = [0, 0, 1, 1, 1, 2]
    for number, (good, group) in enumerate(zip(passed, groups, strict=True)):
        cell: dict[str, Any] = {"case_id": f"c{number}", "variant_name": "v0"}
        row = a_result(**cell, evaluator="e0", passed=False)
        tally.add(a_trace(**cell, group=f"g{group}"), [row], a_verdict(**cell, status="pass" if good else "fail"))
    summary = tally.summary(of, MOMENT)
    assert summary.variants[0].pass_rate_ci95 == pytest.approx(rate_with_design_effect(passed, groups).ci)
    never = next(one.by_variant["v0"] for one in summary.by_evaluator if one.evaluator == "e0")
    assert (never.pass_rate, never.cases) == (0.0, 3)
    assert never.pass_rate_ci95 is not None
    assert never.pass_rate_ci95[0] == 0.0
    assert never.pass_rate_ci95[1] < 1.0


@pytest.mark.parametrize(("trials", "groups"), [(4, 1), (4, 5), (1, 5)])
def test_an_evaluator_that_alone_decides_has_the_rate_and_the_interval_of_its_cells(trials: int, groups: int) -> None:
    """With trials, groups, and cases of which an error left fewer trials than of others."""
    of = plan_of_one(cases_total=40, run=RunSettings(trials=trials))
    tally = Tally.of(of)
    for number in range(40 * trials):
        case, trial = divmod(number, trials)
        cell: dict[str, Any] = {"case_id": f"c{case}", "variant_name": "v0", "trial": trial}
        broken, good = number % 7 == 0, (case * 5 + trial * 3) % 11 < 6
        row = a_result(**cell, evaluator="e0", passed=good, error="down" if broken else None)
        group = {"group": f"g{case // groups}"} if groups > 1 and case < 30 else {}
        status: Status = "error" if broken else "pass" if good else "fail"
        tally.add(a_trace(**cell, **group), [row], a_verdict(**cell, status=status))
    summary = tally.summary(of, MOMENT)
    variant, row_of_it = summary.variants[0], summary.by_evaluator[0].by_variant["v0"]
    assert row_of_it.pass_rate == pytest.approx(variant.pass_rate, rel=1e-12)
    assert row_of_it.pass_rate_ci95 == pytest.approx(variant.pass_rate_ci95, rel=1e-9)
    assert row_of_it.n == sum(number for status, number in variant.cells.items() if status != "error")
