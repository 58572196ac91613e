"""A gate on scores beside the totals of a format that has no such gate: they count, it decides."""

from __future__ import annotations

import pytest

from evalwright.model.plan import Plan
from evalwright.model.summary import RunSummary
from evalwright.scoring.tally import Tally
from evalwright.testing import a_plan, a_result, a_trace, a_verdict

GATE = {"kind": "simple", "metric_key": "says_hello", "aggregation": "avg_score", "op": "gte", "value": 0.5}
LEGACY = {**GATE, "kind": "legacy", "metric_key": "gone", "pass_op": "gt", "pass_value": 1}


def summary(plan: Plan, *scores: float, shares: int = 1) -> RunSummary:
    """Of a case for each score, which passes whatever the score is."""
    tallies = [Tally.of(plan) for _ in range(shares)]
    for number, score in enumerate(scores):
        name = f"c{number}"
        results = [a_result(case_id=name, score=score)]
        tallies[number % shares].add(a_trace(case_id=name), results, a_verdict(case_id=name, score=score))
    for other in tallies[1:]:
        tallies[0].merge(other)
    return tallies[0].summary(plan, plan.started_at)


@pytest.mark.parametrize("totals", ["agentv", "northstar", "pixie", "promptfoo", "skills"])
@pytest.mark.parametrize(("scores", "passed"), [((0.9, 0.3), True), ((0.5, 0.3), False)])
@pytest.mark.parametrize("shares", [1, 2])
def test_the_gate_decides_and_the_format_counts(
    totals: str, scores: tuple[float, ...], passed: bool, shares: int
) -> None:
    gated = summary(a_plan(totals=totals, gate=GATE, cases_total=2), *scores, shares=shares)
    free = summary(a_plan(totals=totals, cases_total=2), *scores)
    assert gated.gate is not None
    assert (gated.gate.passed, [part.n for part in gated.gate.parts]) == (passed, [2])
    assert gated.native == free.native
    assert gated.native


def test_what_verdicts_say_for_the_totals_reaches_them() -> None:
    plan = a_plan(totals="promptfoo", gate=GATE)
    tally = Tally.of(plan)
    tally.add(a_trace(), [a_result(score=1.0)], a_verdict(score=1.0, extra={"asserts": [1, 0], "sums": {"m": 2.0}}))
    counted = tally.summary(plan, plan.started_at)
    assert [(metric.metric, metric.value) for metric in counted.named_metrics or []] == [("m", 2.0)]


@pytest.mark.parametrize("gate", [None, LEGACY])
def test_letta_s_totals_need_no_evaluator_that_the_gate_names(gate: dict[str, object] | None) -> None:
    counted = summary(a_plan(totals="letta", gate=gate, evaluators=[]), 0.5)
    assert counted.gate is not None
    assert counted.native["total"] == 1
