"""Statistics of repeated trials: pass^k, pass@k and cases that contradict themselves."""

from __future__ import annotations

import pytest

from evalwright.model.plan import RunSettings
from evalwright.statistics.rates import wilson
from scoring.histories import MOMENT, counted, plan, plan_of_one, repeated


def test_a_case_with_an_error_among_its_trials_has_not_passed() -> None:
    of = plan(run=RunSettings(trials=3))
    tally = counted(repeated("c0", "pass", "error", "pass"), of)
    variant = tally.summary(of, MOMENT).variants[0]
    assert (variant.pass_rate, variant.pass_rate_n, variant.cases_passed) == (1.0, 1, 0)
    assert tally.variants["v0"].trials() == {"c0": (2, 2)}


def test_a_borderline_trial_was_judged_and_has_not_passed() -> None:
    of = plan(run=RunSettings(trials=2))
    variant = counted(repeated("c0", "pass", "borderline"), of).summary(of, MOMENT).variants[0]
    assert (variant.pass_rate, variant.pass_rate_n, variant.cases_passed) == (0.5, 1, 0)


def test_a_trial_without_a_verdict_is_none() -> None:
    of = plan(run=RunSettings(trials=3))
    cells = [*repeated("c0", "pass", "pass", "skip"), *repeated("c1", "pass", "error", "pass")]
    variant = counted(cells, of).summary(of, MOMENT).variants[0]
    assert variant.trials is not None
    assert (variant.trials.pass_hat_k, variant.trials.pass_at_k) == ([1.0, 1.0], [1.0, 1.0])
    assert variant.trials.cases_by_k == [2, 2]


def test_pass_hat_k_of_the_published_airline_tasks() -> None:
    """tau-bench, airline, gpt-4o, 50 tasks of 4 trials: 0.420, 0.273, 0.220, 0.200 (Yao et al. 2024)."""
    of = plan(run=RunSettings(trials=4))
    passes = [4] * 10 + [3] * 4 + [2] * 10 + [1] * 12 + [0] * 14
    cells = [
        (f"task-{i}", "v0", status)
        for i, c in enumerate(passes)
        for status in ["pass"] * c + ["fail"] * (4 - c)  # type: ignore[operator]
    ]
    variant = counted(cells, of).summary(of, MOMENT).variants[0]
    assert variant.trials is not None
    assert [round(share or 0, 3) for share in variant.trials.pass_hat_k] == [0.42, 0.273, 0.22, 0.2]
    assert variant.pass_rate == pytest.approx(0.42)
    # pass^4 and pass@4 are 0 or 1 of each task; pass^1 is the pass rate, which four trials make surer
    assert variant.trials.pass_hat_k_ci95[3] == pytest.approx(wilson(10, 50))
    assert variant.trials.pass_at_k_ci95[3] == pytest.approx(wilson(36, 50))
    low, high = variant.trials.pass_hat_k_ci95[0] or (0.0, 1.0)
    assert (low, high) == variant.trials.pass_at_k_ci95[0] == variant.pass_rate_ci95
    assert high - low < wilson(21, 50)[1] - wilson(21, 50)[0]


def test_one_trial_has_no_trial_statistics() -> None:
    assert counted([("c0", "v0", "pass")], plan()).summary(plan(), MOMENT).variants[0].trials is None


def test_cases_that_contradict_themselves_are_named_with_the_chance_of_it() -> None:
    of = plan_of_one(cases_total=4, run=RunSettings(trials=4))
    cells = [
        *repeated("half", "pass", "fail", "pass", "fail"),
        *repeated("rare", "pass", "pass", "pass", "fail"),
        *repeated("sure", "pass", "pass", "pass", "pass"),
        *repeated("lost", "fail", "fail", "fail", "fail"),
    ]
    trials = counted(cells, of).summary(of, MOMENT).variants[0].trials
    assert trials is not None
    assert (trials.mixed_cases, trials.mixed) == (2, ["half", "rare"])
    assert trials.flake_rate == pytest.approx((8 / 12 + 6 / 12) / 4)
    assert trials.flake_rate_ci95 is not None


def test_a_run_whose_trials_all_agree_may_have_cases_that_do_not_and_a_group_is_one_case() -> None:
    of = plan_of_one(cases_total=10, run=RunSettings(trials=2))
    cells = [cell for i in range(10) for cell in repeated(f"c{i}", "pass", "pass")]
    alone = counted(cells, of).summary(of, MOMENT).variants[0].trials
    assert alone is not None
    assert (alone.flake_rate, alone.flake_rate_ci95) == (0.0, pytest.approx(wilson(0, 10)))
    together = counted(cells, of, group="all").summary(of, MOMENT).variants[0].trials
    assert together is not None
    assert together.flake_rate_ci95 == pytest.approx(wilson(0, 1))
