"""Scores in decisions: their scales, their margins, and numbers beyond floats."""

from __future__ import annotations

import pytest

from decisions.small_runs import PLAN, run, scored
from evalwright.decisions.claims import decided_rates
from evalwright.decisions.runs import one_run, two_runs
from evalwright.decisions.terms import Guard, Terms, margin_of
from evalwright.errors import InputError
from evalwright.model.decision import Decision
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.run.plan import score_rules
from scoring.histories import plan, stored


@pytest.mark.parametrize("margin", [None, 0.02])
@pytest.mark.parametrize("scores", [(-1.7e308, 1.7e308), (1.7e308, 1.7e308)])  # a difference, a sum of trials
def test_scores_whose_differences_are_beyond_floats_decide_nothing_and_are_named(
    scores: tuple[float, float], margin: float | None
) -> None:
    a, b = (run(("a", True), ("a", True), ("b", True)) for _ in range(2))
    for records, score in zip((a, b), scores, strict=True):
        for row in records[1::2]:
            row.score = score  # type: ignore[union-attr]
    by_score = two_runs(stored(a, PLAN), PLAN, stored(b, PLAN), PLAN, Terms(metric="e0", margin=margin))
    with pytest.raises(InputError, match=r"the scores of e0 .*are too large to be compared"):
        by_score.decision("v0", "v0")
    # nothing in the pass rate depends on them
    guards = (Guard("evaluator:e0", -0.01),)
    decision = two_runs(stored(a, PLAN), PLAN, stored(b, PLAN), PLAN, Terms(guards=guards)).decision("v0", "v0")
    (part,), (guard,) = decision.evaluators, decision.guards
    assert (decision.n, decision.difference, part.difference, part.rate_difference) == (2, 0.0, None, 0.0)
    assert "evaluator e0: its scores are too large to be compared" in decision.warnings
    assert (guard.state, guard.reason) == ("undecided", "its scores are too large to be compared")


def test_a_claim_about_scores_that_are_too_large_is_undecided() -> None:
    claim = {"at_least": 0.5, "metric": "e0", "alpha": 0.05, "on_undecided": "fail", "group": None, "rule": "interval"}
    gate = decided_rates(claim, one_run(stored(scored(1e200, 2e200, 1e200), PLAN), PLAN, Terms(metric="e0")))
    assert (gate.undecided, gate.reason) == (True, "the scores are too large for an interval")


def test_scores_of_0_and_1_on_a_wider_scale_are_no_passes() -> None:
    spec = EvaluatorSpec(
        "e0", "llm_judge", {"model": "openai/m", "rubric": "r", "pass_threshold": 1, "scale": {"min": 0, "max": 10}}
    )
    of = plan(variants=[Variant("v0", "replay")], evaluators=[spec], score_rules=score_rules([spec]))
    records = run(*((f"c{i}", True) for i in range(30)))
    for row in records[1::2]:
        row.score = 1.0  # type: ignore[union-attr]
    decision = two_runs(stored(records, of), of, stored(records, of), of, Terms(metric="e0")).decision("v0", "v0")
    assert (decision.method, decision.verdict) == ("guarded", "undecided")
    assert decision.ci is not None
    assert decision.ci[1] > decision.margin == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("config", "score", "margin", "least"),
    [
        ({"scale": {"min": 1, "max": 5}}, 5.0, 0.08, 1.0),
        ({"scale": {"min": 0, "max": 10}}, 0.5, 0.2, 2.5),  # also where no score lies above 1
        (None, 5.0, 0.0, 0.0),  # no range is declared, and none seen
    ],
)
def test_scores_lie_on_the_scale_that_the_evaluator_declares(
    config: dict[str, object] | None, score: float, margin: float, least: float
) -> None:
    rubric = {"model": "openai/m", "rubric": "r", "pass_threshold": 1, **(config or {})}
    spec = EvaluatorSpec("e0", "llm_judge" if config else "promptfoo", rubric if config else {})
    of = plan(variants=[Variant("v0", "replay")], evaluators=[spec], score_rules=score_rules([spec]))
    records = [*run(*((f"c{i}", True) for i in range(5)))]
    for row in records[1::2]:
        row.score = score  # type: ignore[union-attr]
    decision = two_runs(stored(records, of), of, stored(records, of), of, Terms(metric="e0")).decision("v0", "v0")
    assert decision.margin == pytest.approx(margin)
    assert decision.ci is not None
    assert decision.ci[1] == -decision.ci[0] >= least
    assert any(line.startswith("no spread") for line in decision.warnings) is (config is None)


def test_scores_that_are_the_same_throughout_a_run_have_the_range_of_both_runs() -> None:
    def decided(before: float, after: float) -> Decision:
        a, b = (stored(scored(*[score] * 30), PLAN) for score in (before, after))
        return two_runs(a, PLAN, b, PLAN, Terms(metric="e0", margin=0.5)).decision("v0", "v0")

    assert (decided(5.0, 4.0).verdict, decided(5.0, 5.0).verdict) == ("dont", "ship")
    with pytest.raises(InputError, match=r"expected less than the range of e0 \(0.4\)"):
        decided(5.0, 4.6)


def test_a_margin_of_a_score_is_in_its_units() -> None:
    assert (margin_of("2", metric="e0"), margin_of("2pp", metric="e0"), margin_of("2pp")) == (2.0, 0.02, 0.02)
    with pytest.raises(InputError, match=r"2pp or 0\.02, found '2'"):
        margin_of("2")
    with pytest.raises(InputError, match="in the units of e0"):
        margin_of("9" * 400, metric="e0")
