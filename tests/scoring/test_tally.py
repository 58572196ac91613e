"""What a tally counts, whatever the order and the parts in which cells arrive."""

from __future__ import annotations

import pickle
import sys
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.model.facts import TraceFacts
from evalwright.model.plan import PassCriteria, Plan, RunSettings, Variant
from evalwright.model.result import Status
from evalwright.model.trace import Metrics, TraceError
from evalwright.scoring.counts import Measures
from evalwright.scoring.newest import newest_cells
from evalwright.scoring.tally import Tally
from evalwright.scoring.verdict import cell_status
from evalwright.statistics.rates import wilson
from evalwright.testing import a_result, a_trace, a_verdict
from scoring.histories import EVALUATORS, MOMENT, Record, counted, histories, plan, plan_of_one, plans, repeated, stored


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


@pytest.mark.parametrize("trials", [1, 2])
def test_shares_with_groups_and_errors_of_the_system_add_up(trials: int) -> None:
    of = plan_of_one(cases_total=6, run=RunSettings(trials=trials))
    whole, joined, other = (Tally.of(of) for _ in range(3))
    for number in range(6):
        error = TraceError("adapter_error", "down") if number in (1, 4) else None
        status: Status = "error" if error else "pass" if number in (0, 2, 5) else "fail"
        rows = [a_result(evaluator=EVALUATORS[0], passed=status == "pass")]
        for trial in range(trials):
            trace = a_trace(case_id=f"c{number}", variant_name="v0", trial=trial, group=f"g{number // 2}", error=error)
            whole.count(trace, rows, status)
            (joined if number < 3 else other).count(trace, rows, status)
    joined.merge(other)
    assert whole.summary(of, MOMENT).variants[0].cases_errored == 2
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
def test_target_errors_are_counted_whatever_the_verdict(trials: int) -> None:
    of = plan_of_one(run=RunSettings(trials=trials))
    tally = counted([("c0", "v0", "pass"), ("c1", "v0", "error")], of, error=TraceError("timeout", ""))
    assert tally.summary(of, MOMENT).variants[0].cases_errored == 2


def test_a_plan_is_partial_while_cells_are_missing() -> None:
    of = plan(cases_total=2)
    tally = counted([("c0", "v0", "pass")], of)
    summary = tally.summary(of, MOMENT)
    assert (summary.status, summary.cells_total, summary.cells_missing) == ("partial", 1, 3)


def test_means_are_of_the_cells_that_report_the_number() -> None:
    of = plan()
    tally = Tally.of(of)
    for case, cost in (("c0", 0.5), ("c1", None), ("c2", 0.25)):
        trace = a_trace(case_id=case, variant_name="v0", latency_ms=10, metrics=Metrics(100, cost_usd=cost))
        tally.add(trace, [], a_verdict())
    variant = tally.summary(of, MOMENT).variants[0]
    assert (variant.avg_cost_usd, variant.cost_n, variant.cost_total_usd) == (0.375, 2, 0.75)
    assert (variant.avg_tokens_output, variant.tokens_output_n, variant.avg_tokens_input) == (None, 0, 100)


@pytest.mark.parametrize("criteria", [PassCriteria(), PassCriteria(errored_cases="count", errored_evaluators="fail")])
@pytest.mark.parametrize("status", ["pass", "fail", "error"])
def test_cells_that_are_alike_are_counted_together_as_one_by_one(status: Status, criteria: PassCriteria) -> None:
    of = plan_of_one(cases_total=7, pass_criteria=criteria)
    rows = [a_result(evaluator=name, passed=status == "pass", score=float(status == "pass")) for name in EVALUATORS]
    one_by_one, together = Tally.of(of), Tally.of(of)
    assert together.counts_only
    trace = a_trace(variant_name="v0", error=TraceError("adapter_error", "down") if status == "error" else None)
    for _ in range(7):
        one_by_one.count(trace, rows, status)
    together.count_alike(trace, rows, status, 7)
    apart, alike = (tally.summary(of, MOMENT) for tally in (one_by_one, together))
    assert alike.by_evaluator == apart.by_evaluator
    for name in ("cells", "cases_errored", "pass_rate_ci95"):
        assert getattr(alike.variants[0], name) == getattr(apart.variants[0], name)


@pytest.mark.parametrize(
    "fields",
    [
        {"variants": [Variant("v0", "replay")], "run": RunSettings(trials=2)},
        {"variants": [Variant("v0", "replay")], "totals": "promptfoo"},
        {"variants": [Variant("v0", "replay"), Variant("v1", "replay")]},
    ],
)
def test_trials_several_variants_and_totals_of_a_format_need_more_than_counts(fields: dict[str, Any]) -> None:
    assert not Tally.of(plan(**fields)).counts_only


def test_a_run_that_judged_nothing_says_so() -> None:
    of = plan_of_one(cases_total=2, warnings=["careful"])
    skipped: list[tuple[str, str, Status]] = [("c0", "v0", "skip"), ("c1", "v0", "skip")]
    told = counted(skipped, of).summary(of, MOMENT).warnings
    assert told == ["careful", "nothing was judged: every cell was skipped"]
    assert counted([("c0", "v0", "skip"), ("c1", "v0", "fail")], of).summary(of, MOMENT).warnings == ["careful"]
    assert counted([], of).summary(of, MOMENT).warnings == ["careful"]  # not begun


def test_a_run_without_cells_says_that_nothing_was_judged() -> None:
    of = plan_of_one(cases_total=0)
    assert counted([], of).summary(of, MOMENT).warnings == ["nothing was judged: there was no cell to run"]


def test_cells_of_a_system_that_the_plan_does_not_name_are_counted_apart() -> None:
    of = plan_of_one(cases_total=1)
    summary = counted([("c0", "v0", "pass"), ("c0", "older", "fail")], of).summary(of, MOMENT)
    assert [(variant.name, variant.pass_rate) for variant in summary.variants] == [("v0", 1.0), ("older", 0.0)]


@pytest.mark.parametrize(("shared", "end_of_a_trace"), [(False, 7), (False, 12), (True, 7)])
@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_a_run_ends_with_its_last_record_whatever_the_order(
    order: tuple[int, ...], shared: bool, end_of_a_trace: int
) -> None:
    of = plan_of_one(cases_total=3, started_at=MOMENT)
    seconds = [(2, 9, 4), (end_of_a_trace, 3, None), (8, None, 1)]  # of the trace and its results
    tally = Tally.of(of)
    for number in order:
        share = Tally.of(of) if shared else tally
        ends = [None if after is None else MOMENT + timedelta(seconds=after) for after in seconds[number]]
        cell: dict[str, Any] = {"case_id": f"c{number}", "variant_name": "v0"}
        rows = [a_result(**cell, evaluator=f"e{nth}", finished_at=end) for nth, end in enumerate(ends[1:])]
        share.add(a_trace(**cell, finished_at=ends[0]), rows, a_verdict(**cell))
        if shared:
            tally.merge(share)
    assert tally.summary(of, MOMENT).finished_at == MOMENT + timedelta(seconds=max(9, end_of_a_trace))


def test_a_run_whose_traces_do_not_tell_when_they_ended_ends_with_its_last_result() -> None:
    of = plan_of_one(cases_total=1, started_at=MOMENT)
    tally, end = Tally.of(of), MOMENT + timedelta(seconds=9)
    trace = TraceFacts(case_id="c0", variant_name="v0")
    tally.count(trace, [a_result(finished_at=end)], "pass")
    tally.count(trace, [], "pass")
    assert tally.summary(of, MOMENT).finished_at == end


def test_what_cells_took_and_cost_is_counted_together_as_one_by_one() -> None:
    of = plan_of_one(cases_total=4, started_at=MOMENT)
    one_by_one, together, measures = Tally.of(of), Tally.of(of), Measures()
    for nth in (1, 3, 2, 4):
        metrics = Metrics(100 * nth, 7, cost_usd=nth / 4) if nth > 1 else Metrics()
        end = MOMENT + timedelta(seconds=nth) if nth < 4 else None  # not every trace tells
        trace = a_trace(case_id=f"c{nth}", variant_name="v0", latency_ms=10 * nth, metrics=metrics, finished_at=end)
        one_by_one.count(trace, [], "pass")
        measures.add(trace)
    together.count_alike(TraceFacts(case_id="c", variant_name="v0"), [], "pass", 4)
    together.count_measures("v0", measures)
    assert together.summary(of, MOMENT) == one_by_one.summary(of, MOMENT)


def test_a_case_that_is_there_twice_although_the_plan_repeats_none_is_one_case() -> None:
    of = plan_of_one(cases_total=1)
    tally = Tally.of(of, repeated=True)
    for status in ("pass", "fail"):
        tally.count(a_trace(case_id="c0", variant_name="v0"), [], status)  # type: ignore[arg-type]
    (variant,) = tally.summary(of, MOMENT).variants
    assert (variant.cases_total, variant.pass_rate, variant.pass_rate_n) == (1, 0.5, 1)


def test_a_summary_names_a_hundred_mixed_cases_and_counts_all() -> None:
    of = plan_of_one(cases_total=101, run=RunSettings(trials=2))
    cells = [cell for case in range(101) for cell in repeated(f"c{case}", "pass", "fail")]
    trials = counted(cells, of).summary(of, MOMENT).variants[0].trials
    assert trials is not None
    assert (trials.mixed_cases, len(trials.mixed)) == (101, 100)


def test_totals_of_a_format_are_those_of_all_shares() -> None:
    gate = {"kind": "promptfoo", "pass_rate": 60.0}
    of = plan_of_one(cases_total=4, dialect="promptfoo", gate=gate)
    tally = Tally.of(of)
    for case, status in (("c0", "pass"), ("c1", "pass"), ("c2", "error"), ("c3", "fail")):
        tally.merge(counted([(case, "v0", status)], of))  # type: ignore[list-item]
    tally.count_extra("v0", {"asserts": (3, 1), "sums": {"tone": 0.5}})
    summary = tally.summary(of, MOMENT)
    assert summary.native is not None
    assert [summary.native[key] for key in ("successes", "failures", "errors")] == [2, 1, 1]
    (column,) = summary.native["prompts"]
    assert (column["assertPassCount"], column["assertFailCount"], column["namedScores"]) == (3, 1, {"tone": 0.5})
    assert summary.gate is not None
    assert (summary.gate.passed, summary.gate.parts[0].value, summary.gate.parts[0].n) == (False, 50.0, 4)


def test_single_trials_of_a_group_leave_only_its_counts_in_memory() -> None:
    of = plan_of_one(cases_total=2000)
    tally = Tally.of(of)

    def blocks_after(cases: range) -> int:
        for number in cases:
            cell = {"case_id": f"c{number}", "variant_name": "v0"}
            row = a_result(**cell, evaluator="e0")
            tally.add(a_trace(**cell, group=f"talk {number % 4}"), [row], a_verdict(**cell))
        return sys.getallocatedblocks()

    before = blocks_after(range(1000))
    assert blocks_after(range(1000, 2000)) - before < 500
