from __future__ import annotations

import pickle
import sys
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.model.plan import PassCriteria, Plan, RunSettings, Variant
from evalwright.model.result import Status
from evalwright.model.trace import Metrics, TraceError
from evalwright.scoring.newest import newest_cells
from evalwright.scoring.tally import Tally
from evalwright.scoring.verdict import cell_status
from evalwright.statistics.rates import rate_with_design_effect, wilson
from evalwright.testing import a_result, a_trace, a_verdict
from scoring.histories import EVALUATORS, MOMENT, Record, counted, histories, plan, plans, stored


def repeated(case: str, *statuses: Status, variant: str = "v0") -> list[tuple[str, str, Status]]:
    return [(case, variant, status) for status in statuses]


@given(histories(), plans, st.data())
def test_shares_of_a_run_add_up_in_any_order(records: list[Record], of: Plan, data: st.DataObject) -> None:
    cells = list(newest_cells(stored(records, of)))
    names = [spec.name for spec in of.evaluators]
    shares = [Tally.of(of) for _ in range(4)]
    for cell in cells:
        status = cell_status(of.pass_criteria, names, cell[0].error is not None, cell[1])
        shares[0].count(*cell, status)
    for trace, rows in data.draw(st.permutations(cells)):
        status = cell_status(of.pass_criteria, names, trace.error is not None, rows)
        shares[data.draw(st.integers(1, 3))].count(trace, rows, status)
    whole, joined, *others = shares
    for other in others:
        joined.merge(pickle.loads(pickle.dumps(other)))  # noqa: S301
    assert joined.summary(of, MOMENT) == whole.summary(of, MOMENT)


def test_memory_holds_no_case_when_each_runs_once() -> None:
    of = plan(cases_total=3)
    tally = counted([("c0", "v0", "pass"), ("c1", "v0", "skip"), ("c2", "v0", "fail"), ("c0", "v1", "pass")], of)
    variant = tally.summary(of, MOMENT).variants[0]
    assert all(count.cases is None for count in tally.variants.values())
    assert (variant.cases_total, variant.cases_passed, variant.pass_rate, variant.pass_rate_n) == (3, 1, 0.5, 2)
    assert variant.pass_rate_ci95 == wilson(1, 2)


@given(histories(), plans)
def test_trials_that_are_not_repeated_give_the_same_summary_when_they_are_counted_by_case(
    records: list[Record], of: Plan
) -> None:
    names = [spec.name for spec in of.evaluators]
    tallies = [Tally.of(of), Tally.of(of, repeated=True)]
    for trace, rows in newest_cells(stored(records, of)):
        if trace.trial == 0:
            for tally in tallies:
                tally.count(trace, rows, cell_status(of.pass_criteria, names, trace.error is not None, rows))
    one, other = (tally.summary(of, MOMENT) for tally in tallies)
    assert one == other


@pytest.mark.parametrize("trials", [1, 3])
def test_a_group_of_cases_counts_as_one_in_intervals(trials: int) -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=5, run=RunSettings(trials=trials))
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


def test_groups_of_single_trials_are_paid_for_without_counting_cases() -> None:
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


@pytest.mark.parametrize("trials", [1, 3])
def test_target_errors_are_counted_whatever_the_verdict(trials: int) -> None:
    of = plan(variants=[Variant("v0", "replay")], run=RunSettings(trials=trials))
    tally = counted([("c0", "v0", "pass"), ("c1", "v0", "error")], of, error=TraceError("timeout", ""))
    assert tally.summary(of, MOMENT).variants[0].cases_errored == 2


def test_a_plan_is_partial_while_cells_are_missing() -> None:
    of = plan(cases_total=2)
    tally = counted([("c0", "v0", "pass")], of)
    summary = tally.summary(of, MOMENT)
    assert (summary.status, summary.cells_total, summary.cells_missing) == ("partial", 1, 3)


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


def test_a_case_with_an_error_among_its_trials_has_not_passed() -> None:
    of = plan(run=RunSettings(trials=3))
    tally = counted(repeated("c0", "pass", "error", "pass"), of)
    variant = tally.summary(of, MOMENT).variants[0]
    assert (variant.pass_rate, variant.pass_rate_n, variant.cases_passed) == (1.0, 1, 0)
    assert tally.variants["v0"].trials() == {"c0": (2, 2)}


@pytest.mark.parametrize("trials", [1, 3])
def test_a_suite_can_ask_for_errors_to_count_as_not_passed(trials: int) -> None:
    of = plan(run=RunSettings(trials=trials), pass_criteria=PassCriteria(errored_cases="count"))
    variant = counted([("c0", "v0", "pass"), ("c1", "v0", "error")], of).summary(of, MOMENT).variants[0]
    assert (variant.pass_rate, variant.pass_rate_n, variant.cells["error"]) == (0.5, 2, 1)


def test_errors_of_a_group_are_not_in_its_interval() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=2)
    tally = counted([("c0", "v0", "error"), ("c1", "v0", "pass")], of, group="talk")
    assert tally.summary(of, MOMENT).variants[0].pass_rate_ci95 == wilson(1, 1)


def test_trials_are_averaged_inside_their_case() -> None:
    of = plan(run=RunSettings(trials=4))
    cells = [*repeated("c0", "pass", "pass"), *repeated("c1", "pass", "fail", "fail", "fail")]
    variant = counted(cells, of).summary(of, MOMENT).variants[0]
    assert (variant.pass_rate, variant.pass_rate_n, variant.cases_passed) == (0.625, 2, 1)


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


def test_means_count_only_what_was_said() -> None:
    of = plan()
    tally = Tally.of(of)
    for case, cost in (("c0", 0.5), ("c1", None), ("c2", 0.25)):
        found = a_trace(case_id=case, variant_name="v0", latency_ms=10, metrics=Metrics(100, cost_usd=cost))
        tally.add(found, [], a_verdict())
    variant = tally.summary(of, MOMENT).variants[0]
    assert (variant.avg_cost_usd, variant.cost_n, variant.cost_total_usd) == (0.375, 2, 0.75)
    assert (variant.avg_tokens_output, variant.tokens_output_n, variant.avg_tokens_input) == (None, 0, 100)


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


def test_an_evaluator_that_the_plan_does_not_have_is_told_only_of_variants_with_results_of_it() -> None:
    of = plan()
    tally = Tally.of(of)
    for variant, evaluator in (("v0", "of a case"), ("v1", "e0")):
        tally.add(a_trace(variant_name=variant), [a_result(evaluator=evaluator)], a_verdict())
    told = {rollup.evaluator: [*rollup.by_variant] for rollup in tally.summary(of, MOMENT).by_evaluator}
    assert told == {"of a case": ["v0"], **{name: ["v0", "v1"] for name in EVALUATORS}}


def test_an_evaluators_errors_are_counted_beside_its_rate_and_mean() -> None:
    rows = [a_result(evaluator="e0", passed=True, score=1.0), a_result(evaluator="e0", passed=False, score=0.0)]
    rows[1].error = TraceError("timeout", "no reply")
    for criteria, n, rate in ((PassCriteria(), 1, 1.0), (PassCriteria(errored_evaluators="fail"), 2, 0.5)):
        of = plan(pass_criteria=criteria)
        tally = Tally.of(of)
        for i, row in enumerate(rows):
            tally.add(a_trace(variant_name="v0", case_id=f"c{i}"), [row], a_verdict())
        found = tally.summary(of, MOMENT).by_evaluator[0].by_variant["v0"]
        assert (found.n, found.errors, found.pass_rate, found.avg_score, found.scored) == (n, 1, rate, 1.0, 1)


@pytest.mark.parametrize(("errored", "n"), [("error", 0), ("evaluate", 1), ("count", 1)])
def test_results_on_the_trace_of_an_error_count_only_where_evaluators_may_see_it(errored: str, n: int) -> None:
    of = plan(pass_criteria=PassCriteria(errored_cases=errored))
    tally = Tally.of(of)
    trace = a_trace(variant_name="v0", error=TraceError("adapter_error", "down"))
    tally.add(trace, [a_result(evaluator="e0", passed=True, score=1.0)], a_verdict(status="error"))
    assert tally.summary(of, MOMENT).by_evaluator[0].by_variant["v0"].n == n


def test_cases_that_contradict_themselves_are_named_with_the_chance_of_it() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=4, run=RunSettings(trials=4))
    cells = [
        *repeated("half", "pass", "fail", "pass", "fail"),
        *repeated("rare", "pass", "pass", "pass", "fail"),
        *repeated("sure", "pass", "pass", "pass", "pass"),
        *repeated("lost", "fail", "fail", "fail", "fail"),
    ]
    found = counted(cells, of).summary(of, MOMENT).variants[0].trials
    assert found is not None
    assert (found.mixed_cases, found.mixed) == (2, ["half", "rare"])
    assert found.flake_rate == pytest.approx((8 / 12 + 6 / 12) / 4)
    assert found.flake_rate_ci95 is not None


def test_a_run_whose_trials_all_agree_may_have_cases_that_do_not_and_a_group_is_one_case() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=10, run=RunSettings(trials=2))
    cells = [cell for i in range(10) for cell in repeated(f"c{i}", "pass", "pass")]
    alone = counted(cells, of).summary(of, MOMENT).variants[0].trials
    assert alone is not None
    assert (alone.flake_rate, alone.flake_rate_ci95) == (0.0, pytest.approx(wilson(0, 10)))
    together = counted(cells, of, group="all").summary(of, MOMENT).variants[0].trials
    assert together is not None
    assert together.flake_rate_ci95 == pytest.approx(wilson(0, 1))


@pytest.mark.parametrize(("trials", "least"), [(1, 0.2567), (4, 0.1283)])
def test_a_run_says_what_another_of_its_cases_could_have_shown(trials: int, least: float) -> None:
    """statsmodels' TTestPower().solve_power of 50 pairs, effect 0.4040, with sd² = 2 p(1 - p) K/(K - 1)/K."""
    of = plan(variants=[Variant("v0", "replay")], cases_total=50, run=RunSettings(trials=trials))
    cells = [cell for i in range(50) for cell in repeated(f"c{i}", *(["fail"] if i < 14 else ["pass"]) * trials)]
    found = counted(cells, of).summary(of, MOMENT).variants[0].detectable
    assert found == (pytest.approx(least, abs=1e-3) if trials == 1 else None)


def test_cases_with_the_same_share_of_passes_count_together_in_what_could_have_been_shown() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=60, run=RunSettings(trials=4))

    def could_be_shown(often: int, seldom: int) -> float | None:
        """Of so many cases of which one in two trials passed, and so many of which two in four did."""
        cells = [cell for i in range(often) for cell in repeated(f"o{i}", "pass", "fail")]
        cells += [cell for i in range(seldom) for cell in repeated(f"s{i}", "pass", "pass", "fail", "fail")]
        return counted(cells, of).summary(of, MOMENT).variants[0].detectable

    mixed, alike = could_be_shown(30, 30), could_be_shown(0, 60)
    assert mixed is not None
    assert alike is not None
    assert alike < mixed < 1.2 * alike


@pytest.mark.parametrize("status", ["pass", "fail", "error"])
def test_cells_that_are_alike_are_counted_together_as_one_by_one(status: Status) -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=7)
    rows = [a_result(evaluator=name, passed=status == "pass", score=float(status == "pass")) for name in EVALUATORS]
    one_by_one, together = Tally.of(of), Tally.of(of)
    assert together.counts_only
    for _ in range(7):
        one_by_one.count(a_trace(variant_name="v0"), rows, status)
    together.count_alike(a_trace(variant_name="v0"), rows, status, 7)
    told, said = (tally.summary(of, MOMENT) for tally in (one_by_one, together))
    assert said.by_evaluator == told.by_evaluator
    assert (said.variants[0].cells, said.variants[0].pass_rate_ci95) == (
        told.variants[0].cells,
        told.variants[0].pass_rate_ci95,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"variants": [Variant("v0", "replay")], "run": RunSettings(trials=2)},
        {"variants": [Variant("v0", "replay")], "totals": "promptfoo"},
        {"variants": [Variant("v0", "replay"), Variant("v1", "replay")]},
    ],
)
def test_more_than_counts_is_asked_of_trials_variants_and_totals_of_a_format(fields: dict[str, Any]) -> None:
    assert not Tally.of(plan(**fields)).counts_only


def test_trials_that_erred_do_not_make_the_cases_of_an_evaluator_fewer() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=2, run=RunSettings(trials=3))
    tally = Tally.of(of)
    for case, variant, status in [*repeated("c0", "pass", "pass", "error"), *repeated("c1", "pass", "pass", "error")]:
        rows = [] if status == "error" else [a_result(case_id=case, variant_name=variant, evaluator="e")]
        verdict = a_verdict(case_id=case, variant_name=variant, status=status)
        tally.add(a_trace(case_id=case, variant_name=variant), rows, verdict)
    rollups = tally.summary(of, MOMENT).by_evaluator
    rate = next(rollup for rollup in rollups if rollup.evaluator == "e").by_variant["v0"]
    assert (rate.n, rate.cases) == (4, 2)


def test_a_run_that_judged_nothing_says_so() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=2, warnings=["careful"])
    skipped: list[tuple[str, str, Status]] = [("c0", "v0", "skip"), ("c1", "v0", "skip")]
    told = counted(skipped, of).summary(of, MOMENT).warnings
    assert told == ["careful", "nothing was judged: every cell was skipped"]
    assert counted([("c0", "v0", "skip"), ("c1", "v0", "fail")], of).summary(of, MOMENT).warnings == ["careful"]
    assert counted([], of).summary(of, MOMENT).warnings == ["careful"]  # not begun


def test_a_run_without_cells_says_that_nothing_was_judged() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=0)
    assert counted([], of).summary(of, MOMENT).warnings == ["nothing was judged: there was no cell to run"]


def test_cells_of_a_system_that_the_plan_does_not_name_are_counted_apart() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=1)
    found = counted([("c0", "v0", "pass"), ("c0", "older", "fail")], of).summary(of, MOMENT)
    assert [(variant.name, variant.pass_rate) for variant in found.variants] == [("v0", 1.0), ("older", 0.0)]


def test_a_run_ends_with_its_last_record_whatever_the_order() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=3, started_at=MOMENT)
    moments = [MOMENT + timedelta(seconds=seconds) for seconds in (2, 9, 5)]
    one = counted([("c0", "v0", "pass")], of, finished_at=moments[1])
    one.merge(counted([("c1", "v0", "pass")], of, finished_at=moments[2]))
    for case, moment in zip(("c1", "c2"), (moments[0], moments[2]), strict=True):
        cell: dict[str, Any] = {"case_id": case, "variant_name": "v0", "finished_at": moment}
        rows = [a_result(case_id=case, variant_name="v0", evaluator="e0", finished_at=moments[0])]
        one.add(a_trace(**cell), rows, a_verdict(case_id=case, variant_name="v0"))
    assert one.summary(of, MOMENT).finished_at == moments[1]


def test_totals_of_a_format_are_those_of_all_shares() -> None:
    gate = {"kind": "promptfoo", "pass_rate": 60.0}
    of = plan(variants=[Variant("v0", "replay")], cases_total=4, dialect="promptfoo", gate=gate)
    tally = Tally.of(of)
    for case, status in (("c0", "pass"), ("c1", "pass"), ("c2", "error"), ("c3", "fail")):
        tally.merge(counted([(case, "v0", status)], of))  # type: ignore[list-item]
    tally.count_extra("v0", {"asserts": (3, 1), "sums": {"tone": 0.5}})
    found = tally.summary(of, MOMENT)
    assert found.native is not None
    assert [found.native[key] for key in ("successes", "failures", "errors")] == [2, 1, 1]
    (column,) = found.native["prompts"]
    assert (column["assertPassCount"], column["assertFailCount"], column["namedScores"]) == (3, 1, {"tone": 0.5})
    assert found.gate is not None
    assert (found.gate.passed, found.gate.parts[0].value, found.gate.parts[0].n) == (False, 50.0, 4)


def test_intervals_of_evaluators_and_of_groups_are_those_of_their_own_counts() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=6)
    tally = Tally.of(of)
    passed = [True, True, True, True, False, False]
    groups = [0, 0, 1, 1, 1, 2]
    for number, (good, group) in enumerate(zip(passed, groups, strict=True)):
        cell: dict[str, Any] = {"case_id": f"c{number}", "variant_name": "v0"}
        row = a_result(**cell, evaluator="e0", passed=False)
        tally.add(a_trace(**cell, group=f"g{group}"), [row], a_verdict(**cell, status="pass" if good else "fail"))
    found = tally.summary(of, MOMENT)
    assert found.variants[0].pass_rate_ci95 == pytest.approx(rate_with_design_effect(passed, groups).ci)
    never = next(one.by_variant["v0"] for one in found.by_evaluator if one.evaluator == "e0")
    assert (never.pass_rate, never.cases) == (0.0, 3)
    assert never.pass_rate_ci95 is not None
    assert never.pass_rate_ci95[0] == 0.0
    assert never.pass_rate_ci95[1] < 1.0


@pytest.mark.parametrize(("trials", "groups"), [(4, 1), (4, 5), (1, 5)])
def test_an_evaluator_that_alone_decides_has_the_rate_and_the_interval_of_its_cells(trials: int, groups: int) -> None:
    """With trials, groups, and cases of which an error left fewer trials than of others."""
    of = plan(variants=[Variant("v0", "replay")], cases_total=40, run=RunSettings(trials=trials))
    tally = Tally.of(of)
    for number in range(40 * trials):
        case, trial = divmod(number, trials)
        cell: dict[str, Any] = {"case_id": f"c{case}", "variant_name": "v0", "trial": trial}
        broken, good = number % 7 == 0, (case * 5 + trial * 3) % 11 < 6
        row = a_result(**cell, evaluator="e0", passed=good, error="down" if broken else None)
        group = {"group": f"g{case // groups}"} if groups > 1 and case < 30 else {}
        status: Status = "error" if broken else "pass" if good else "fail"
        tally.add(a_trace(**cell, **group), [row], a_verdict(**cell, status=status))
    found = tally.summary(of, MOMENT)
    variant, row_of_it = found.variants[0], found.by_evaluator[0].by_variant["v0"]
    assert row_of_it.pass_rate == pytest.approx(variant.pass_rate, rel=1e-12)
    assert row_of_it.pass_rate_ci95 == pytest.approx(variant.pass_rate_ci95, rel=1e-9)
    assert row_of_it.n == sum(number for status, number in variant.cells.items() if status != "error")


def test_single_trials_of_a_group_leave_only_its_counts_in_memory() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=2000)
    tally = Tally.of(of)

    def blocks_after(cases: range) -> int:
        for number in cases:
            cell = {"case_id": f"c{number}", "variant_name": "v0"}
            row = a_result(**cell, evaluator="e0")
            tally.add(a_trace(**cell, group=f"talk {number % 4}"), [row], a_verdict(**cell))
        return sys.getallocatedblocks()

    before = blocks_after(range(1000))
    assert blocks_after(range(1000, 2000)) - before < 500
