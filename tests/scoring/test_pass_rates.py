"""Pass rates of variants and their intervals: what is in them, and what a group of cases weighs."""

from __future__ import annotations

import pytest

from evalwright.model.plan import PassCriteria, RunSettings
from evalwright.model.result import Status
from evalwright.scoring.tally import Tally
from evalwright.statistics.rates import wilson
from scoring.histories import MOMENT, counted, plan, plan_of_one, repeated


@pytest.mark.parametrize("trials", [1, 3])
def test_a_group_of_cases_counts_as_one_in_intervals(trials: int) -> None:
    of = plan_of_one(cases_total=5, run=RunSettings(trials=trials))
    talk = [cell for case in ("c0", "c1", "c2") for cell in repeated(case, *["pass"] * trials)]
    grouped, alone = counted(talk, of, group="talk"), counted(repeated("c3", *["fail"] * trials), of)
    grouped.merge(alone)
    (variant,) = grouped.summary(of, MOMENT).variants
    assert (variant.pass_rate, variant.pass_rate_n) == (0.75, 4)
    assert variant.pass_rate_ci95 == pytest.approx(wilson(1.2, 1.6))


def test_trials_that_agree_on_how_often_a_case_passes_narrow_the_interval() -> None:
    """Forty cases that pass twice or three times in four: far less spread than forty coins."""
    of = plan(cases_total=40, run=RunSettings(trials=4))
    cells = [cell for i in range(40) for cell in repeated(f"c{i}", *["pass"] * (2 + i % 2), *["fail"] * (2 - i % 2))]
    variant = counted(cells, of).summary(of, MOMENT).variants[0]
    assert variant.pass_rate == 0.625
    ends, alone = variant.pass_rate_ci95, wilson(25, 40)
    assert ends is not None
    assert alone is not None
    assert ends[1] - ends[0] < 0.5 * (alone[1] - alone[0])


def test_groups_of_single_trials_widen_the_interval() -> None:
    of = plan(cases_total=60)
    tally = Tally.of(of)
    for group in range(20):
        cells: list[tuple[str, str, Status]] = [
            (f"c{group}-{i}", "v0", "pass" if group % 2 else "fail") for i in range(3)
        ]
        tally.merge(counted(cells, of, group=f"g{group}"))
    variant = tally.summary(of, MOMENT).variants[0]
    ends, alone = variant.pass_rate_ci95, wilson(30, 60)
    assert ends is not None
    assert alone is not None
    assert ends[1] - ends[0] > 1.5 * (alone[1] - alone[0])


def test_a_run_without_cells_has_rates_of_nothing() -> None:
    of = plan(cases_total=0)
    summary = Tally.of(of).summary(of, MOMENT)
    variant = summary.variants[0]
    assert summary.status == "complete"
    assert (variant.pass_rate, variant.pass_rate_ci95, variant.avg_cost_usd) == (None, None, None)
    assert variant.detectable is None


@pytest.mark.parametrize("trials", [1, 3])
def test_cells_without_a_verdict_are_in_no_rate(trials: int) -> None:
    of = plan(run=RunSettings(trials=trials))
    cells = [("c0", "v0", "pass"), ("c1", "v0", "error"), ("c0", "v1", "error"), ("c1", "v1", "error")]
    summary = counted(cells, of).summary(of, MOMENT)  # type: ignore[arg-type]
    sound, dead = summary.variants
    assert (sound.pass_rate, sound.pass_rate_n, sound.cases_passed, sound.cells["error"]) == (1.0, 1, 1, 1)
    assert (dead.pass_rate, dead.pass_rate_n, dead.pass_rate_ci95, dead.cells["error"]) == (None, 0, None, 2)


@pytest.mark.parametrize("trials", [1, 3])
def test_a_suite_can_ask_for_errors_to_count_as_not_passed(trials: int) -> None:
    of = plan(run=RunSettings(trials=trials), pass_criteria=PassCriteria(errored_cases="count"))
    variant = counted([("c0", "v0", "pass"), ("c1", "v0", "error")], of).summary(of, MOMENT).variants[0]
    assert (variant.pass_rate, variant.pass_rate_n, variant.cells["error"]) == (0.5, 2, 1)


def test_errors_of_a_group_are_not_in_its_interval() -> None:
    of = plan_of_one(cases_total=2)
    tally = counted([("c0", "v0", "error"), ("c1", "v0", "pass")], of, group="talk")
    assert tally.summary(of, MOMENT).variants[0].pass_rate_ci95 == wilson(1, 1)


def test_trials_are_averaged_inside_their_case() -> None:
    of = plan(run=RunSettings(trials=4))
    cells = [*repeated("c0", "pass", "pass"), *repeated("c1", "pass", "fail", "fail", "fail")]
    variant = counted(cells, of).summary(of, MOMENT).variants[0]
    assert (variant.pass_rate, variant.pass_rate_n, variant.cases_passed) == (0.625, 2, 1)


@pytest.mark.parametrize(("trials", "least"), [(1, 0.2567), (4, 0.1283)])
def test_the_detectable_difference_of_single_trials_is_that_of_a_power_calculation(trials: int, least: float) -> None:
    """statsmodels' TTestPower().solve_power of 50 pairs, effect 0.4040, with sd² = 2 p(1 - p) K/(K - 1)/K."""
    of = plan_of_one(cases_total=50, run=RunSettings(trials=trials))
    cells = [cell for i in range(50) for cell in repeated(f"c{i}", *(["fail"] if i < 14 else ["pass"]) * trials)]
    detectable = counted(cells, of).summary(of, MOMENT).variants[0].detectable
    assert detectable == (pytest.approx(least, abs=1e-3) if trials == 1 else None)


def test_cases_with_the_same_share_of_passes_count_together_in_the_detectable_difference() -> None:
    of = plan_of_one(cases_total=60, run=RunSettings(trials=4))

    def could_be_shown(often: int, seldom: int) -> float | None:
        """Of so many cases of which one in two trials passed, and so many of which two in four did."""
        cells = [cell for i in range(often) for cell in repeated(f"o{i}", "pass", "fail")]
        cells += [cell for i in range(seldom) for cell in repeated(f"s{i}", "pass", "pass", "fail", "fail")]
        return counted(cells, of).summary(of, MOMENT).variants[0].detectable

    mixed, alike = could_be_shown(30, 30), could_be_shown(0, 60)
    assert mixed is not None
    assert alike is not None
    assert alike < mixed < 1.2 * alike
