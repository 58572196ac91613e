from __future__ import annotations

import pytest

from evalwright.decisions.gate_planning import gate_plan
from evalwright.decisions.planning import Aim, planned, suite_plan
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.spreads import Spread, guessed_spreads, spreads_of
from evalwright.errors import InputError
from evalwright.reports.planning import planning_lines
from evalwright.statistics import power_mcnemar_exact, power_trials

COARSE = Aim(0.045, 0.0, 0.05, 0.8)
"""A difference that takes few cases to see, but is less than the smallest share of pairs that is assumed to change."""


def side(*shares: tuple[int, int]) -> SideCounts:
    return SideCounts("v", {f"c{i}": CaseTotal(passed, judged) for i, (passed, judged) in enumerate(shares)})


def test_the_cases_named_have_the_power_and_one_fewer_does_not() -> None:
    [row] = planned("s", 80, [Spread("", 0.0, 0.1, 0.2)], [1], detect=0.1, margin=0.0, alpha=0.05, power=0.8).rows
    needed = next(need.cases for need in row.needs if need.power == 0.8)
    assert needed is not None
    assert power_mcnemar_exact(needed, 0.2, 0.1).power >= 0.8 > power_mcnemar_exact(needed - 5, 0.2, 0.1).power


def test_trials_lower_the_number_of_cases_and_the_cheapest_is_marked() -> None:
    spread = Spread("", 0.001, 0.2, cell_usd=0.01, cell_ms=600.0)
    plan = planned("s", 188, [spread], [1, 3, 5], detect=0.03, margin=0.0, alpha=0.05, power=0.8, concurrency=2)
    needs = [next(need for need in row.needs if need.power == 0.8) for row in plan.rows]
    assert [need.cases for need in needs] == [
        power_trials(0, 0.001, 0.2, 0.2, k, k, 0.03).n_required for k in (1, 3, 5)
    ]
    assert needs[0].cost_usd == pytest.approx((needs[0].cases or 0) * 0.01)
    assert needs[0].minutes == pytest.approx((needs[0].cases or 0) * 0.01 / 2)
    assert sum(row.cheapest for row in plan.rows) == 1
    assert not plan.reached


def test_cases_that_seldom_change_show_less_than_students_t_says() -> None:
    """Simulated: 60 cases of 3 trials at 98 % are shown to be within 2 points in 1 % of runs, by t it would be 27 %."""
    run, aim = side(*[(3, 3)] * 56, *[(2, 3)] * 4), Aim(0.0, 0.02, 0.05, 0.8)
    row = suite_plan("s", 60, [run], [3], aim).rows[0]
    by_t = power_trials(60, 0.0, 2 / 90, 2 / 90, 3, 3, 0.0, 0.02)
    assert (row.power or 0) < 0.03 < 0.2 < (by_t.power or 0)
    needed = row.needs[1].cases or 0
    assert needed > 1.05 * (by_t.n_required or 0)
    now, before = (suite_plan("s", n, [run], [3], aim).rows[0].power or 0 for n in (needed, needed - 1))
    assert before < 0.8 <= now


def test_no_more_than_all_of_the_variance_is_that_of_trials() -> None:
    """Shares that vary less than their trials do, as chance has it."""
    assert suite_plan("s", 4, [side(*[(1, 2)] * 4)], [2], COARSE).repeats is None
    assert suite_plan("s", 4, [side((1, 3), (2, 3), (1, 3), (2, 3))], [3], COARSE).repeats == 1


def test_groups_multiply_the_cases_and_a_margin_lowers_them() -> None:
    def cases(**given: float) -> int:
        spread = Spread("", 0.0, 0.2, design_effect=given.get("effect", 1.0))
        row = planned("s", 10, [spread], [3], detect=0.05, margin=given.get("margin", 0.0), alpha=0.05, power=0.8).rows[
            0
        ]
        return row.needs[1].cases or 0

    assert cases(effect=2.0) == pytest.approx(2 * cases(), abs=1)
    assert cases(margin=0.05) < cases() / 3


def test_trials_of_a_run_say_how_far_it_varies() -> None:
    same, noisy = spreads_of(side((3, 3), (1, 2), (0, 2)), None)
    assert (same.omega2, same.sigma2) == (0.0, pytest.approx((0 + 0.5 + 0) / 3))
    assert noisy.omega2 == noisy.sigma2
    assert same.label == "the same system"
    assert spreads_of(side((1, 1), (0, 1)), None)[0].label == "the same system (at most: no case ran twice)"


def test_single_trials_of_two_runs_say_how_far_one_trial_varies_but_not_more() -> None:
    runs = side((1, 1), (0, 1), (1, 1)), side((1, 1), (1, 1), (0, 1))
    spreads = spreads_of(*runs)
    assert [spread.changed for spread in spreads] == [pytest.approx(2 / 3)] * 2
    by_chance, for_good = spreads
    assert by_chance.omega2 + 2 * by_chance.sigma2 == for_good.omega2 == 1  # the variance of +1, 0 and -1
    assert (by_chance.omega2, for_good.sigma2) == (0.0, 0.0)
    rows = suite_plan("s", 3, runs, [1, 3], COARSE).rows
    needs = [(row.assumed[-9:], row.trials, row.needs[1].cases or 0) for row in rows]
    assert [need[:2] for need in needs] == [("by chance", 1), ("by chance", 3), (" for good", 1), (" for good", 3)]
    assert needs[0][2] == needs[2][2]
    assert needs[1][2] < needs[0][2] / 2 < needs[3][2]
    assert len(suite_plan("s", 3, runs, [1], COARSE).rows) == 1


def test_two_runs_without_a_common_case_say_nothing() -> None:
    other = SideCounts("v", {"other": CaseTotal(1, 3), "c0": CaseTotal(0, 0)})
    with pytest.raises(InputError, match="no case in common"):
        suite_plan("s", 3, [side((1, 3), (2, 3)), other], [1], COARSE)


def test_a_margin_takes_as_many_cases_as_their_changes_vary() -> None:
    """Simulated: 310 cases of which 6 % change are shown to be not worse than -4 points in 80 % of 6,000 runs."""
    before = side(*[(1, 1)] * 900, *[(0, 1)] * 100)
    after = side(*[(1, 1)] * 870, *[(0, 1)] * 100, *[(1, 1)] * 30)
    [row] = suite_plan("s", 1000, (before, after), [1], Aim(0.0, 0.04, 0.05, 0.8)).rows
    assert row.needs[1].cases == pytest.approx(312, abs=8)


def test_without_a_run_some_shares_of_changing_pairs_are_assumed() -> None:
    assert [spread.changed for spread in guessed_spreads()] == [0.05, 0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("detect", "shares"), [(0.1, [0.1, 0.2, 0.3]), (0.25, [0.25, 0.3, 0.375]), (0.4, [0.4, 0.6]), (0.9, [0.9, 1.0])]
)
def test_no_fewer_pairs_are_assumed_to_change_than_the_difference_takes(detect: float, shares: list[float]) -> None:
    plan = suite_plan("s", 80, [], [1], Aim(detect, 0.0, 0.05, 0.8))
    assert [row.assumed.split("%")[0] for row in plan.rows] == [f"{100 * share:.6g}" for share in shares]
    assert ["all for the better" in row.assumed for row in plan.rows] == [True, *[False] * (len(shares) - 1)]
    assert "is assumed; --from A B learns it" in planning_lines(plan, "")[1]


def test_a_plan_is_reached_only_if_it_is_under_every_assumption() -> None:
    """10 points: of pairs of which 10, 20 or 30 % change, 78, 168 or 249 show them."""
    reached = [suite_plan("s", n, [], [1], Aim(0.1, 0.0, 0.05, 0.8)) for n in (60, 200, 300)]
    assert [plan.reached for plan in reached] == [False, None, True]
    assert [planning_lines(plan, "")[-1] for plan in reached] == [
        "the suite as it is does not reach 80% power",
        "  20% of pairs change",
        "the suite as it is reaches 80% power",
    ]


def test_a_plan_says_how_many_trials_it_takes() -> None:
    spread = [Spread("", 0.0, 0.2)]
    plan = planned("s", 100, spread, [1, 3, 5], detect=0.1, margin=0.0, alpha=0.05, power=0.8)
    assert planning_lines(plan, "a run")[-1] == "the suite as it is reaches 80% power, with 5 trials or more"


@pytest.mark.parametrize(
    ("cases", "share", "detect", "margin", "simulated"),
    [
        (9, 0.05, 0.05, 0.2, 0.009),
        (15, 0.1, 0.05, 0.2, 0.709),
        (60, 0.05, 0.0, 0.1, 0.823),
        (438, 0.05, 0.0, 0.03, 0.773),
    ],
)
def test_pairs_of_single_trials_show_a_margin_as_often_as_simulated(
    cases: int, share: float, detect: float, margin: float, simulated: float
) -> None:
    """1,500 runs each, decided as `decide_difference` does; by Student's t, 9 cases would do in 83 %."""
    spread = [Spread("", 0.0, share / 2, share)]
    plan = planned("s", cases, spread, [1], detect=detect, margin=margin, alpha=0.05, power=0.8)
    assert plan.rows[0].power == pytest.approx(simulated, abs=0.03)


def test_a_margin_is_said_to_be_one() -> None:
    """A suite that shows a margin even of a system that is slightly worse."""
    plan = suite_plan("s", 2000, [], [1], Aim(0.0, 0.03, 0.05, 0.8))
    lines = planning_lines(plan, "")
    assert lines[0] == "To show that B is not worse than −3 pp, if it is as good, at alpha .05: s, 2,000"
    assert lines[5].endswith("shown if B − A is")
    assert lines[6].endswith(" −1.6 pp")


@pytest.mark.parametrize("runs", [[side((3, 3), (0, 3))], [side((1, 1), (1, 1))], [side((2, 2)), side((2, 2))]])
def test_a_run_in_which_nothing_varies_does_not_show_that_any_difference_is_seen(runs: list[SideCounts]) -> None:
    runs[0].measures["cost"].add("c0", 0.5)
    plan = suite_plan("s", 40, runs, [1, 3], COARSE)
    assert not plan.reached
    assert [row.trials for row in plan.rows] == [1] * len(guessed_spreads())
    first = plan.rows[0].needs[1]
    assert first.cost_usd == (first.cases or 0) * 0.5
    [alike] = planned("s", 40, guessed_spreads()[:1], [1], detect=0.045, margin=0.0, alpha=0.05, power=0.8).rows
    assert first.cases == alike.needs[1].cases


@pytest.mark.parametrize(("cases", "shows"), [(2, False), (400, True)])
def test_a_suite_shows_no_difference_that_is_larger_than_the_share_of_pairs_that_change(
    cases: int, shows: bool
) -> None:
    [row] = planned("s", cases, [Spread("", 0.0, 0.1, 0.2)], [1], detect=0.1, margin=0.0, alpha=0.05, power=0.8).rows
    assert (row.detectable is not None) is shows
    assert row.detectable is None or row.detectable <= 0.2


def test_a_gate_is_known_by_what_it_does_to_systems_of_known_rates() -> None:
    plan = gate_plan(80, 0.8, 0.05)
    assert plan.passes_from == 72
    assert plan.rows[0].passes < 0.025 < plan.rows[-1].passes
    assert plan.failures_at_most == pytest.approx(1 - 0.05 ** (1 / 80))
    assert plan.all_must_pass_fails == pytest.approx(1 - 0.99**80)
    assert gate_plan(3, 0.9, 0.05).passes_from is None


def test_the_flake_rate_of_a_run_says_how_surely_a_case_passes() -> None:
    assert gate_plan(10, 0.5, 0.05, side((1, 2), (2, 2))).case_passes == pytest.approx(0.5)
    assert gate_plan(10, 0.5, 0.05, side((2, 2), (0, 2))).case_passes == 1
    assert gate_plan(10, 0.5, 0.05, side((1, 1))).case_passes == 0.99


def test_the_curve_rises_to_the_power_asked_for_at_the_cases_that_are_needed() -> None:
    aim = {"detect": 0.1, "margin": 0.0, "alpha": 0.05, "power": 0.8}
    [row] = planned("s", 80, [Spread("", 0.01, 0.1)], [3], **aim).rows
    powers = [power for _, power in row.curve]
    assert powers == sorted(powers)
    needed = next(need.cases for need in row.needs if need.power == 0.8)
    assert dict(row.curve)[needed or 0] == pytest.approx(0.8, abs=0.02)


def test_other_cases_on_each_side_take_more() -> None:
    plan = suite_plan("s", 80, [side(*[(2, 3)] * 30, *[(3, 3)] * 30)], [3], Aim(0.1, 0.0, 0.05, 0.8))
    assert (plan.rows[0].unpaired or 0) > (plan.rows[0].needs[1].cases or 0)


def test_trials_and_groups_of_a_run_change_what_a_gate_passes() -> None:
    """Of coins, three trials are worth three times the cases; of groups that agree in all, a group is worth a case."""
    coins = side(*[(1, 2)] * 40)
    single, three = gate_plan(40, 0.3, 0.05, coins), gate_plan(40, 0.3, 0.05, coins, [1, 3])
    assert single.by_trials == []
    (row,) = three.by_trials
    assert (row.trials, row.effective_cases) == (3, 120)
    assert row.passes_from is not None
    assert row.passes_from < (three.passes_from or 0) / 40
    grouped = side(*[(2 * (i // 4 % 2), 2) for i in range(40)])
    grouped.groups = {case: f"g{i // 4}" for i, case in enumerate(grouped.passes)}
    assert [
        (trial.trials, trial.effective_cases) for trial in gate_plan(400, 0.3, 0.05, grouped, [1, 3]).by_trials
    ] == [
        (1, 100),
        (3, 100),
    ]
    few = gate_plan(40, 0.3, 0.05, grouped, [1, 3])  # the interval of 10 groups is not made of their spread
    assert (few.by_trials, few.few_units) == ([], True)


def ranges(runs: list[SideCounts], trials: int = 3) -> list[tuple[int, int, int]]:
    """By assumption, the cases at one end of the interval of how much cases vary, as estimated, at the other end."""
    found = []
    for row in suite_plan("s", 80, runs, [trials], Aim(0.03, 0.0, 0.05, 0.8)).rows:
        low, high = row.cases_range or (0, 0)
        found.append((low or 0, row.needs[1].cases or 0, high or 0))
    return found


def test_a_plan_says_how_unsure_its_run_leaves_the_number_of_cases() -> None:
    """A third of 60 or 600 cases is mixed, which is 22 to 46 % or 30 to 37 % (Wilson): cases needed go with that."""
    (few, _), (many, _) = (ranges([side(*[(2, 3)] * n, *[(3, 3)] * (2 * n))]) for n in (20, 200))
    assert few[1] == pytest.approx(many[1], abs=1)
    assert few[0] / few[1] == pytest.approx(0.227 * 3, abs=0.05)
    assert few[2] / few[1] == pytest.approx(0.46 * 3, abs=0.1)
    assert few[0] < many[0] < many[1] < many[2] < few[2]


def test_groups_leave_the_number_of_cases_less_sure() -> None:
    run = side(*[(2, 3)] * 60, *[(3, 3)] * 120)
    alone = ranges([run])[0]
    run.groups = {case: f"g{i // 4}" for i, case in enumerate(run.passes)}
    low, needed, high = ranges([run])[0]
    assert high / needed > 1.15 * alone[2] / alone[1]
    assert low / needed < alone[0] / alone[1] / 1.15


def test_two_runs_leave_it_unsure_too_and_guesses_have_no_range() -> None:
    before = side(*[(3, 3)] * 60, *[(2, 3)] * 20)
    after = side(*[(3, 3)] * 40, *[(0, 3)] * 10, *[(3, 3)] * 30)
    low, needed, high = ranges([before, after])[0]
    assert low < needed / 1.2 < needed * 1.2 < high
    for low, needed, high in ranges([side(*[(1, 1)] * 80), side(*[(0, 1)] * 12, *[(1, 1)] * 68)], 1):
        assert low < needed / 1.2 < needed * 1.2 < high
    assert all(row.cases_range is None for row in suite_plan("s", 80, [], [1], COARSE).rows)


def test_a_power_that_rests_on_one_assumption_is_said_to() -> None:
    run = side(*[(2, 3)] * 20, *[(3, 3)] * 40)
    plan = suite_plan("s", 80, [run], [3], Aim(0.1, 0.0, 0.05, 0.8))
    assert [(row.power or 0) >= 0.8 for row in plan.rows] == [True, False]
    lines = planning_lines(plan, "")
    at = lines.index("the suite as it is reaches 80% power only if this holds:")
    assert lines[at + 1] == "  the same system"
