"""What a tally says of money: the costs of systems and judges, and limits that nothing can reach."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.model.plan import RunSettings, Variant
from evalwright.model.result import Status
from evalwright.model.trace import Metrics, TraceError
from evalwright.scoring.tally import Tally
from evalwright.testing import a_result, a_trace, a_verdict
from scoring.histories import MOMENT, counted, plan


def test_what_evaluators_cost_adds_up_over_processes() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=2)
    shares = [Tally.of(of), Tally.of(of)]
    for number, tally in enumerate(shares):
        case = f"c{number}"
        rows = [a_result(case_id=case, variant_name="v0", evaluator="e", cost_usd=0.25)]
        tally.count(a_trace(case_id=case, variant_name="v0"), rows, "pass")
    shares[0].merge(shares[1])
    summary = shares[0].summary(of, MOMENT)
    rates = {rollup.evaluator: rollup.by_variant["v0"] for rollup in summary.by_evaluator}
    assert (rates["e"].cost_usd, summary.variants[0].judge_cost_usd) == (0.5, 0.5)


@pytest.mark.parametrize(("status", "cost", "told"), [("pass", None, 1), ("pass", 0.1, 0), ("error", None, 0)])
def test_a_limit_of_costs_that_nothing_reports_is_told(status: Status, cost: float | None, told: int) -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=1, run=RunSettings(cost_limit_usd=1))
    warnings = counted([("c0", "v0", status)], of, metrics=Metrics(cost_usd=cost)).summary(of, MOMENT).warnings
    assert ["cost_limit_usd" in line for line in warnings] == [True] * told


@pytest.mark.parametrize("reporting", ["v0", "v1"])
def test_a_limit_of_costs_limits_something_where_one_system_reports_them(reporting: str) -> None:
    of = plan(cases_total=1, run=RunSettings(cost_limit_usd=1))
    tally = Tally.of(of)
    for variant in ("v0", "v1"):
        cost = 0.1 if variant == reporting else None
        tally.merge(counted([("c0", variant, "pass")], of, metrics=Metrics(cost_usd=cost)))
    assert tally.summary(of, MOMENT).warnings == []


@pytest.mark.parametrize(("errors", "told"), [(0, "2 of 3 answers"), (1, "at least 1 of 3 answers")])
def test_a_limit_of_costs_says_how_many_it_cannot_count(errors: int, told: str) -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=3 + errors, run=RunSettings(cost_limit_usd=1))
    tally = Tally.of(of)
    for number, cost in enumerate((0.1, None, None, 0.2)[: 3 + errors]):
        trace = a_trace(case_id=f"c{number}", variant_name="v0", metrics=Metrics(cost_usd=cost))
        trace.error = TraceError("timeout", "too late") if number == 3 else None
        tally.count(trace, [], "pass" if trace.error is None else "error")
    assert tally.summary(of, MOMENT).warnings == [
        f"v0: the cost of {told} is unknown, and run.cost_limit_usd does not count it"
    ]


def test_means_and_costs_are_those_of_what_was_measured() -> None:
    of = plan(variants=[Variant("v0", "replay")], cases_total=4)
    tally = Tally.of(of)
    measured = [("c0", 10, 0.5, 1.0, None), ("c1", 30, 0.25, 0.25, 0.125), ("c2", None, None, None, None)]
    for case, number, cost, score, judge_cost in measured:
        cell: dict[str, Any] = {"case_id": case, "variant_name": "v0"}
        metrics = Metrics(number, None if number is None else 2 * number, cost_usd=cost)
        row = a_result(**cell, evaluator="e0", score=score, cost_usd=judge_cost)
        tally.add(a_trace(**cell, latency_ms=number, metrics=metrics), [row], a_verdict(**cell))
    summary = tally.summary(of, MOMENT)
    (variant,) = summary.variants
    assert (variant.avg_latency_ms, variant.latency_n, variant.cost_total_usd) == (20, 2, 0.75)
    assert (variant.avg_tokens_input, variant.avg_tokens_output, variant.avg_cost_usd) == (20, 40, 0.375)
    assert variant.judge_cost_usd == 0.125
    rates = {evaluator.evaluator: evaluator.by_variant["v0"] for evaluator in summary.by_evaluator}
    assert (rates["e0"].avg_score, rates["e0"].scored, rates["e0"].n, rates["e0"].cost_usd) == (0.625, 2, 3, 0.125)
    assert (rates["e1"].avg_score, rates["e1"].n, rates["e1"].cost_usd) == (None, 0, None)
    without = counted([("c0", "v0", "pass")], of).summary(of, MOMENT).variants[0]
    assert (without.judge_cost_usd, without.cost_total_usd) == (None, None)
