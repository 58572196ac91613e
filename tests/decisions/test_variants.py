"""Variants of one run beside its baseline, and regressions among them."""

from __future__ import annotations

import pytest

from decisions.small_runs import PLAN, against, run, scored
from evalwright.decisions.comparison import comparison_of, regressions
from evalwright.decisions.runs import two_runs
from evalwright.decisions.terms import Terms
from evalwright.model.plan import EvaluatorSpec, RunSettings, Variant
from evalwright.model.trace import TraceError
from evalwright.reports.markdown import Markdown
from evalwright.run.decisions import add_decisions, add_tradeoffs
from evalwright.scoring.fold import fold
from evalwright.testing import a_trace
from scoring.histories import MOMENT, Record, plan, stored


def test_variants_are_compared_with_the_baseline_case_by_case() -> None:
    cases = [f"c{i}" for i in range(6)]
    found = against({"v0": dict.fromkeys(cases, "0") | {"d": "1"}, "v1": dict.fromkeys(cases, "1") | {"d": "e"}})
    (delta,) = found.deltas
    assert (found.regressions_count, found.improvements_count) == (0, 6)
    assert (delta.regressions, delta.improvements, delta.n) == ([], cases, 6)
    assert (delta.pass_rate_delta, delta.p_value, delta.p_holm) == (1.0, pytest.approx(0.03125), None)
    assert found.decision is not None
    assert found.decision.errors.b.target == 1


def test_repeated_cases_of_variants_are_compared_by_their_shares() -> None:
    delta = against({"v0": {"c0": "11", "c1": "10", "c2": "00"}, "v1": {"c0": "10", "c1": "01", "c2": "11"}}).deltas[0]
    assert (delta.regressions, delta.improvements, delta.n) == (["c0"], ["c2"], 3)
    assert delta.p_value == pytest.approx(0.8061083164176)
    assert delta.pass_rate_delta_ci95 == (-1.0, 1.0)


def test_the_interval_of_many_repeated_cases_is_that_of_the_paired_t_test() -> None:
    """scipy's ttest_rel of 30 cases."""
    after = {f"c{i}": "1" * passed + "0" * (4 - passed) for i, passed in enumerate([3, 3, 2, 4, 3] * 6)}
    delta = against({"v0": dict.fromkeys(after, "1111"), "v1": after}).deltas[0]
    assert delta.pass_rate_delta == pytest.approx(-0.25)
    assert delta.pass_rate_delta_ci95 == pytest.approx((-0.31005, -0.18995), abs=1e-5)


def test_of_several_variants_p_is_adjusted_for_their_number() -> None:
    sides = {"v0": "0" * 12, "v1": "1" * 8 + "0" * 4, "v2": "1" * 6 + "0" * 6, "v3": "e" * 12}
    cells = {name: {f"c{i}": outcome for i, outcome in enumerate(row)} for name, row in sides.items()}
    found = against(cells, tuple(sides))
    assert [decision.variant_b for decision in found.decisions] == ["v1", "v2", "v3"]
    assert [(delta.p_value, delta.p_holm) for delta in found.deltas] == [
        (pytest.approx(2 / 2**8), pytest.approx(4 / 2**8)),
        (pytest.approx(2 / 2**6), pytest.approx(2 / 2**6)),
        (None, None),
    ]


def regressed(losses: dict[str, int], errors: int = 0) -> list[bool | None]:
    """Of 40 cases that all pass in A, so many fail in B, by variant; so many others err."""
    of = plan(variants=[Variant(name, "replay") for name in losses], evaluators=[EvaluatorSpec("e0", "contains_text")])
    before: list[Record] = []
    after: list[Record] = []
    for name, lost in losses.items():
        before += run(*((f"c{i}", True) for i in range(40)), variant=name)
        after += run(*((f"c{i}", i >= lost) for i in range(40 - errors)), variant=name)
        after += [
            a_trace(case_id=f"c{i}", variant_name=name, error=TraceError("timeout", "")) for i in range(40 - errors, 40)
        ]
    runs = two_runs(stored(before, of), of, stored(after, of), of, Terms())
    tested = regressions(runs, [variant.decision for variant in comparison_of(runs, "a", "b").variants], 0.0)
    return [one.is_worse for one in tested]


def test_the_more_variants_there_are_the_more_it_takes_to_call_one_of_them_worse() -> None:
    """McNemar's exact p: 2/2^6 = 0.031 of 6 losses, 2/2^7 = 0.016 of 7; alpha is 0.05 for all together."""
    assert regressed({"v0": 6}) == [True]
    assert regressed({"v0": 6, "v1": 0, "v2": 0}) == [False, False, False]
    assert regressed({"v0": 7, "v1": 0, "v2": 0}) == [True, False, False]


def test_errors_leave_a_regression_of_one_of_several_variants_open() -> None:
    assert regressed({"v0": 5}, errors=1) == [None]
    assert regressed({"v0": 5, "v1": 0}, errors=1) == [False, False]
    assert regressed({"v0": 6, "v1": 0}, errors=1) == [None, False]


def test_reports_mark_the_variants_that_another_one_makes_superfluous() -> None:
    variants = [Variant(name, "replay") for name in ("v0", "v1")]
    of = plan(variants=variants, evaluators=[EvaluatorSpec("e0", "contains_text")])
    records = run(*[(f"c{n}", n < 20) for n in range(60)], cost=0.02)
    records += run(*[(f"c{n}", n < 40) for n in range(60)], variant="v1", cost=0.01)
    reader = stored(records, of)
    summary = fold(reader, of).summary(of, MOMENT)
    add_tradeoffs(summary, reader, of)
    assert [variant.dominated_by for variant in summary.variants] == [["v1"], []]
    assert "dominated by" in Markdown().render(reader, summary)


def test_variants_of_a_run_are_compared_whatever_the_size_of_scores() -> None:
    of = plan(evaluators=PLAN.evaluators, run=RunSettings(baseline_variant="v0"))
    reader = stored([*scored(1e308, 1e308), *scored(-1e308, -1e308, variant="v1")], of)
    summary = fold(reader, of).summary(of, MOMENT)
    add_decisions(summary, reader, of)
    assert summary.comparison is not None
    assert summary.comparison.decision is not None
    assert summary.comparison.decision.warnings == ["evaluator e0: its scores are too large to be compared"]
