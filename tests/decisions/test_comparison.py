"""Two runs beside each other, case by case."""

from __future__ import annotations

import pytest
from hypothesis import given

from decisions.small_runs import PLAN, run
from evalwright.decisions.changes import changed_counts
from evalwright.decisions.comparison import RunComparison, comparison_of
from evalwright.decisions.drift import drift
from evalwright.decisions.runs import two_runs
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Guard, Terms
from evalwright.errors import InputError
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case, case_digest, evaluator_digests
from evalwright.model.trace import Trace, TraceError
from evalwright.scoring.fold import fold
from evalwright.statistics.rates import wilson
from evalwright.testing import MemoryStore, a_trace
from scoring.histories import MOMENT, Record, histories, plan, stored


def compared(a: list[Record], b: list[Record]) -> RunComparison:
    return compared_runs(stored(a, PLAN), PLAN, stored(b, PLAN), PLAN)


def compared_runs(a: RunReader, plan_a: Plan, b: RunReader, plan_b: Plan) -> RunComparison:
    return comparison_of(two_runs(a, plan_a, b, plan_b, Terms()), a.location, b.location)


def test_the_change_in_short_is_of_the_cases_that_both_runs_judged() -> None:
    """All that both have got no better, though one case is all that the second run has, and it passes."""
    before, after = (
        SideCounts("v", passes={f"c{i}": CaseTotal(float(passed), 1) for i, passed in enumerate(outcomes)})
        for outcomes in ((1, 0, 0, 1), (1,))
    )
    assert changed_counts(before, after) == (0, 0, 0.0)
    assert changed_counts(SideCounts("v", passes={"c1": CaseTotal(1.0, 2)}), before) == (1, 0, -0.5)
    assert changed_counts(before, SideCounts("v", passes={"other": CaseTotal(1.0, 1)})) == (0, 0, None)


def test_cases_of_both_runs_are_compared_one_by_one() -> None:
    before = run(("same", True), ("worse", True), ("better", False), ("gone", True))
    after = run(("same", True), ("worse", False), ("better", True), ("new", False))
    variant = compared(before, after).variants[0]
    assert (variant.delta.regressions, variant.delta.improvements) == (["worse"], ["better"])
    assert (variant.a_only, variant.b_only, variant.delta.n) == (["gone"], ["new"], 3)
    assert (variant.a.rate, variant.b.rate, variant.delta.pass_rate_delta) == (0.75, 0.5, 0.0)
    assert variant.delta.p_value == 1.0


def test_rates_carry_their_number_and_interval() -> None:
    comparison = compared(run(("a", True), ("b", False), ("c", False)), run(("a", True)))
    assert comparison.variants[0].a.n == 3
    assert comparison.variants[0].a.ci95 == pytest.approx((0.0614919447204, 0.792340399198))
    assert [(pair.evaluator, pair.a.n, pair.b.n) for pair in comparison.evaluators] == [("e0", 3, 1)]
    assert comparison.evaluators[0].rate_delta == 0.0  # of the only case of both, not of rates of different cases


def test_cases_of_one_group_are_not_independent() -> None:
    before, after = run(*((f"c{i}", i > 5) for i in range(12))), run(*((f"c{i}", True) for i in range(12)))
    alone = compared(before, after).variants[0]
    for record in [*before, *after]:
        if isinstance(record, Trace) and record.case_id in ("c0", "c1", "c2", "c3", "c4", "c5"):
            record.group = "talk"
    together = compared(before, after).variants[0]
    assert together.delta.pass_rate_delta == alone.delta.pass_rate_delta == 0.5
    assert (together.a.rate, together.a.ci95) == (0.5, wilson(24 / 14, 24 / 7))
    assert (alone.delta.p_value, together.delta.p_value) == (pytest.approx(0.03125), pytest.approx(0.42162, abs=1e-4))


def test_cases_that_are_all_of_one_group_decide_nothing_and_say_so() -> None:
    before, after = run(*((f"c{i}", False) for i in range(40))), run(*((f"c{i}", True) for i in range(40)))

    def decided() -> tuple[str, list[str]]:
        runs = two_runs(stored(before, PLAN), PLAN, stored(after, PLAN), PLAN, Terms(margin=0.02))
        decision = runs.decision("v0", "v0")
        return decision.verdict, decision.reasons

    assert decided() == ("ship", [])
    for record in [*before, *after]:
        if isinstance(record, Trace):
            record.group = "talk"
    assert decided() == ("undecided", ["units"])


def test_repeated_cases_get_worse_by_their_share() -> None:
    before = run(("a", True), ("a", True), ("b", False), ("b", True), ("c", True), ("c", True))
    after = run(("a", True), ("a", False), ("b", False), ("b", True), ("c", True), ("c", True))
    delta = compared(before, after).variants[0].delta
    assert (delta.regressions, delta.improvements, delta.n) == (["a"], [], 3)
    assert delta.p_value == pytest.approx(0.76813, abs=1e-4)


def test_latency_and_cost_are_compared_by_their_means() -> None:
    variant = compared(run(("a", True), latency=30, cost=0.5), run(("a", True), latency=10, cost=0.125)).variants[0]
    assert (variant.delta.avg_latency_delta_ms, variant.avg_cost_delta_usd) == (-20.0, -0.375)


def test_no_cost_delta_when_one_side_has_no_cost() -> None:
    assert compared(run(("a", True), cost=0.5), run(("a", True))).variants[0].avg_cost_delta_usd is None


def test_what_was_not_measured_is_no_latency_of_zero() -> None:
    before, after = run(("a", True), ("b", True), latency=30), run(("a", False), latency=None)
    summary = fold(stored(after, PLAN), PLAN).summary(PLAN, MOMENT).variants[0]
    assert (summary.avg_latency_ms, summary.latency_n) == (None, 0)
    assert compared(before, after).variants[0].delta.avg_latency_delta_ms is None
    drifted = drift(
        stored(before, PLAN),
        stored(after, PLAN),
        "before",
        two_runs(stored(before, PLAN), PLAN, stored(after, PLAN), PLAN, Terms()),
    )
    assert (drifted.report.deltas[0].avg_latency_delta_ms, drifted.measures) == (None, [])


def test_variants_of_one_run_only_are_named() -> None:
    comparison = compared(run(("a", True)), run(("a", True), variant="other"))
    assert (comparison.variants, comparison.variants_a_only, comparison.variants_b_only) == ([], ["v0"], ["other"])


@pytest.mark.slow("two comparisons for each example")
@given(histories(), histories())
def test_a_comparison_turns_round_with_its_sides(one: list[Record], other: list[Record]) -> None:
    runs = [(stored(records, plan()), plan()) for records in (one, other)]
    there, back = compared_runs(*runs[0], *runs[1]), compared_runs(*runs[1], *runs[0])
    assert {v.variant for v in there.variants} == {v.variant for v in back.variants}
    for variant in there.variants:
        mirrored = next(v for v in back.variants if v.variant == variant.variant)
        assert variant.delta.regressions == mirrored.delta.improvements
        assert (variant.a, variant.b, variant.a_only) == (mirrored.b, mirrored.a, mirrored.b_only)
        assert variant.delta.p_value == pytest.approx(mirrored.delta.p_value)


@pytest.mark.slow("stores a run for each example")
@given(histories())
def test_a_run_does_not_differ_from_itself(records: list[Record]) -> None:
    run = stored(records, plan())
    for variant in compared_runs(run, plan(), run, plan()).variants:
        assert (variant.delta.regressions, variant.delta.improvements) == ([], [])
        assert variant.delta.pass_rate_delta == (0.0 if variant.delta.n else None)
        assert (variant.a_only, variant.b_only) == ([], [])


def test_what_is_judged_otherwise_has_another_hash() -> None:
    specs = [EvaluatorSpec("x", "contains_text", {"all_of": [word]}) for word in ("good", "fine")]
    assert len({evaluator_digests([spec])["x"] for spec in specs}) == 2
    heavier = EvaluatorSpec("x", "contains_text", {"all_of": ["good"]}, weight=2.0)
    assert evaluator_digests([heavier]) == evaluator_digests(specs[:1])


def test_a_suite_in_another_folder_asks_the_same() -> None:
    cases = [Case("a", "/help", extra={"file": f"/{folder}/rubric.md"}) for folder in ("here", "there")]
    assert len({case_digest(case) for case in cases}) == 1
    assert case_digest(Case("a", "/start/help")) != case_digest(Case("a", "/stop/help"))
    assert case_digest(Case("a", "x", group="g")) != case_digest(Case("a", "x"))


def test_what_evaluators_say_of_an_answer_that_never_came_is_not_their_verdict() -> None:
    before, after = (run(*((f"c{i}", True) for i in range(12))) for _ in range(2))
    for record in after[1:8:2]:
        record.passed = False  # type: ignore[union-attr]
    for record in after[:8:2]:
        record.error = TraceError("timeout", "")  # type: ignore[union-attr]
    decision = compared(before, after).variants[0].decision
    (part,) = decision.evaluators
    assert (decision.n, decision.errors.b.target) == (8, 4)
    assert (part.n, part.difference) == (8, 0.0)


def test_a_guard_on_an_evaluator_is_open_if_the_system_erred_too_often_to_be_judged_by_it() -> None:
    before, after = run(*((f"c{i}", True) for i in range(60))), run(*((f"c{i}", True) for i in range(30)))
    after += [a_trace(case_id=f"c{i}", variant_name="v0", error=TraceError("timeout", "")) for i in range(30, 60)]
    terms = Terms(margin=0.9, guards=(Guard("evaluator:e0", -0.3),))
    (guard,) = two_runs(stored(before, PLAN), PLAN, stored(after, PLAN), PLAN, terms).decision("v0", "v0").guards
    assert (guard.value, guard.state, guard.reason) == (0.0, "undecided", "its missing results could turn it")


def test_evaluators_have_the_interval_of_the_paired_cases() -> None:
    before, after = run(*((f"c{i}", False) for i in range(8))), run(*((f"c{i}", i > 0) for i in range(9)))
    comparison = compared(before, after)
    (part,) = comparison.variants[0].decision.evaluators
    (one,) = comparison.evaluators
    assert (one.paired, one.ci, one.p, one.q) == (part.difference, part.ci, part.p, part.q)
    assert one.paired == 7 / 8
    assert (one.rate_delta, one.rate_ci, one.rate_p, one.scored) == (7 / 8, one.ci, one.p, False)


def test_a_file_that_an_evaluator_names_decides_with_what_is_in_it() -> None:
    spec = EvaluatorSpec("x", "git_diff", {"expected_patch_path": "/suite/wanted.patch"})
    plain = evaluator_digests([spec])
    assert evaluator_digests([spec], lambda path: "") == plain
    one, other = (evaluator_digests([spec], lambda path, found=found: found) for found in ("1a", "2b"))
    assert len({plain["x"], one["x"], other["x"]}) == 3


def test_a_suite_that_is_the_population_needs_trials() -> None:
    single = [stored(run(("a", True), ("b", False)), PLAN)] * 2
    with pytest.raises(InputError, match="A and B"):
        two_runs(single[0], PLAN, single[1], PLAN, Terms(population="suite")).decision("v0", "v0")
    before = stored(run(("a", True), ("a", False), ("b", True), ("b", True), ("c", True)), PLAN)
    after = stored(run(("a", True), ("a", True), ("b", True), ("b", True), ("c", True)), PLAN)
    decision = two_runs(before, PLAN, after, PLAN, Terms(population="suite")).decision("v0", "v0")
    assert (decision.population, decision.method, decision.n, decision.difference) == (
        "suite",
        "satterthwaite",
        2,
        0.25,
    )
    assert "fewer than 2 judged trials" in decision.warnings[-1]
    # an evaluator that passes and fails with the cell has the same numbers, as the metric and beside it
    (beside,) = decision.evaluators
    assert (beside.n, beside.difference, beside.ci, beside.p) == (2, 0.25, decision.ci, decision.p_better)
    metric = two_runs(before, PLAN, after, PLAN, Terms(population="suite", metric="e0")).decision("v0", "v0")
    assert (metric.method, metric.ci) == ("satterthwaite", decision.ci)


def test_single_trials_that_changed_are_evidence_together() -> None:
    before = run(*[(f"c{n}", n < 10) for n in range(40)])
    after = run(*[(f"c{n}", n < 8 or n >= 25) for n in range(40)])
    changed = compared(before, after).variants[0].decision.changed
    assert (len(changed.worse), len(changed.better), changed.b_won) == (2, 15, pytest.approx(15 / 17))
    assert changed.b_won_ci is not None
    assert changed.b_won_ci[0] > 0.5
    assert changed.chance_b_better is not None
    assert changed.chance_b_better > 0.99
    assert changed.e_value == pytest.approx(2**17 / (18 * 136))
    assert compared(before, before).variants[0].decision.changed.e_value is None


def test_cases_of_one_run_alone_are_grouped_too() -> None:
    """All cases are of one team, so that either rate rests on one unit; half of A's cases are gone in B."""
    cases = [Case(f"c{i}", "x", metadata={"team": "t"}) for i in range(40)]
    runs = []
    for of_run in (cases, cases[:20]):
        runs.append(MemoryStore().create(PLAN, of_run, {}))
        for record in run(*((case.id, True) for case in of_run)):
            runs[-1].append_trace(record) if isinstance(record, Trace) else runs[-1].append_results([record])
    decision = two_runs(runs[0], PLAN, runs[1], PLAN, Terms(group="team")).decision("v0", "v0")
    assert (decision.a.n, decision.b.n) == (40, 20)
    assert decision.a.ci == decision.b.ci == pytest.approx(wilson(1, 1))


def test_sides_have_the_median_and_the_tail_of_their_latencies() -> None:
    variant = compared(run(*[(f"c{n}", True) for n in range(10)], latency=30), run(("c1", True))).variants[0]
    assert (variant.a.p50_latency_ms, variant.a.p95_latency_ms, variant.a.p50_latency_ci95) == (30, 30, (30, 30))
    assert (variant.b.p50_latency_ms, variant.b.p50_latency_ci95) == (10, None)


def test_trials_of_a_case_make_the_interval_of_the_median_no_narrower() -> None:
    once, often = ([row for n in range(20) for row in run(*[(f"c{n}", True)] * k, latency=n)] for k in (1, 5))
    variant = compared(once, often).variants[0]
    assert variant.a.p50_latency_ci95 is not None
    assert variant.b.p50_latency_ci95 == variant.a.p50_latency_ci95


def test_costs_whose_sum_is_beyond_floats_have_a_mean_and_undo_no_decision() -> None:
    huge = run(("a", True), ("b", True), cost=1.7e308)
    variant = compared(huge, huge).variants[0]
    assert (variant.a.avg_cost_usd, variant.b.avg_cost_usd, variant.decision.n) == (1.7e308, 1.7e308, 2)


def test_the_order_in_which_trials_ended_changes_no_digit() -> None:
    def made(scores: list[float]) -> list[Record]:
        records = run(*[("a", True)] * len(scores), *[("b", True)] * len(scores))
        for row, score in zip(records[1::2], scores * 2, strict=True):
            row.score = score  # type: ignore[union-attr]
        return records

    forth, back = [0.1, 0.2, 0.3], [0.3, 0.2, 0.1]
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1  # `sum` corrects that from Python 3.12 on
    one, other = (
        two_runs(stored(made(scores), PLAN), PLAN, stored(run(("a", True), ("b", True)), PLAN), PLAN, terms)
        for scores in (forth, back)
        for terms in [Terms(metric="e0")]
    )
    assert one.decision("v0", "v0").difference == other.decision("v0", "v0").difference
