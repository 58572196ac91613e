"""What people would have decided: a judge's verdicts on two runs, corrected by labels of some answers."""

from __future__ import annotations

from random import Random

import pytest

from evalwright.decisions.judged import JudgedCell, JudgedPair
from evalwright.decisions.runs import JudgedRuns, TwoRuns, two_runs
from evalwright.decisions.terms import Terms
from evalwright.model.decision import Decision
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.testing import a_trace
from scoring.histories import Record, plan, row_of, stored

PLAN = plan(variants=[Variant("v0", "replay")], evaluators=[EvaluatorSpec("e0", "contains_text")])
Side = dict[str, list[JudgedCell]]


def side(rate: float, tpr: float, tnr: float, labels: int, n: int = 400, seed: int = 0) -> Side:
    """A judge of known errors on answers of known quality; the first `labels` of them people judged, too."""
    rng, cells = Random(seed), {}
    for number in range(n):
        human = rng.random() < rate
        judge = rng.random() < (tpr if human else 1 - tnr)
        cells[f"c{number:03}"] = [JudgedCell(judge, human if number < labels else None)]
    return cells


def runs_of(a: Side, b: Side, terms: Terms) -> TwoRuns:
    records: list[list[Record]] = []
    for cells in (a, b):
        made: list[Record] = []
        for case, of_case in cells.items():
            for trial, cell in enumerate(of_case):
                trace = a_trace(case_id=case, variant_name="v0", trial=trial)
                made += [trace, row_of(trace, "e0", passed=cell.judge)]
        records.append(made)
    before, after = (stored(made, PLAN) for made in records)
    return two_runs(before, PLAN, after, PLAN, terms)


def decided(a: Side, b: Side, terms: Terms | None = None) -> Decision:
    runs = runs_of(a, b, terms or Terms())
    runs.judged = [JudgedRuns("e0", {"v0": a}, {"v0": b})]
    return runs.decision("v0", "v0")


def test_labels_of_both_answers_power_the_difference() -> None:
    decision = decided(side(0.6, 0.9, 0.85, 150, seed=1), side(0.8, 0.9, 0.85, 150, seed=2))
    judge = decision.judge
    assert judge is not None
    assert (judge.evaluator, judge.labels, judge.method, judge.refused) == ("e0", 300, "powered", None)
    assert judge.ci is not None
    assert judge.ci[0] < 0.2 < judge.ci[1]
    assert judge.difference is not None
    assert decision.difference is not None
    assert judge.difference > decision.difference  # a judge that errs sees less of a difference than there is
    assert (decision.verdict, judge.verdict) == ("ship", "ship")


def test_a_judge_that_people_contradict_decides_nothing() -> None:
    """The judge passes more of B's answers for what is no merit; people see no difference."""
    before, after = side(0.6, 0.9, 0.9, 120, seed=3), side(0.5, 0.98, 0.3, 120, seed=4)
    assert runs_of(before, after, Terms()).decision("v0", "v0").verdict == "ship"
    decision = decided(before, after)
    assert (decision.verdict, decision.reasons, decision.exit_code) == ("undecided", ["judge"], 3)
    assert decision.judge is not None
    assert decision.judge.turns


def test_only_labels_that_an_estimate_uses_are_counted() -> None:
    before, after = side(0.6, 0.9, 0.85, 100, seed=1), side(0.8, 0.9, 0.85, 150, seed=2)
    powered = decided(before, after).judge
    assert powered is not None
    assert (powered.method, powered.labels) == ("powered", 200)  # of the 100 cases with labels on both sides
    runs = runs_of(before, after, Terms())
    runs.judged = [JudgedRuns("e0", {"v0": before}, {"v0": after})]
    runs.identity.cases[:] = ["c000", "c120"]
    left_out = runs.decision("v0", "v0").judge
    assert left_out is not None
    assert left_out.labels == 198


def test_few_labels_that_agree_are_corrected_and_not_powered() -> None:
    decision = decided(side(0.6, 0.97, 0.97, 40, seed=5), side(0.62, 0.97, 0.97, 40, seed=5))
    assert decision.judge is not None
    assert (decision.judge.method, decision.judge.refused) == ("corrected", "disagreements")
    assert decision.judge.ci is not None
    assert decision.ci is not None
    assert decision.judge.ci[1] - decision.judge.ci[0] > decision.ci[1] - decision.ci[0]


def test_labels_of_one_run_alone_are_taken_for_both_and_it_is_said() -> None:
    decision = decided(side(0.6, 0.9, 0.9, 60, seed=6), side(0.7, 0.9, 0.9, 0, seed=7))
    assert decision.judge is not None
    assert (decision.judge.method, decision.judge.note) == ("corrected", "assumes the judge errs alike on both")
    assert any("errs alike on both" in line for line in decision.warnings)


def test_each_side_is_corrected_by_the_errors_of_its_own_labels() -> None:
    """The judge is lenient with A's answers and strict with B's; no answer is labelled on both sides."""
    before, after = side(0.6, 1.0, 0.6, 120, seed=10), side(0.6, 0.7, 1.0, 400, seed=11)
    after = {
        case: cells if number >= 280 else [JudgedCell(cells[0].judge)]
        for number, (case, cells) in enumerate(after.items())
    }
    decision = decided(before, after)
    assert decision.judge is not None
    assert (decision.judge.method, decision.judge.note) == ("corrected", "")
    assert decision.difference is not None
    assert decision.difference < -0.3
    assert decision.judge.ci is not None
    assert decision.judge.ci[0] < 0 < decision.judge.ci[1]
    assert decision.judge.turns


def test_labels_that_say_nothing_change_nothing_but_are_said() -> None:
    before, after = side(0.5, 1, 1, 3, seed=8), side(0.9, 1, 1, 3, seed=9)
    one_kind = {case: [JudgedCell(c.judge, None if c.human is None else True)] for case, (c,) in after.items()}
    decision = decided({case: [JudgedCell(c.judge)] for case, (c,) in before.items()}, one_kind)
    assert (decision.verdict, decision.judge and decision.judge.method) == ("ship", "")
    assert any("about its opinion" in line for line in decision.warnings)


def test_labels_that_show_a_judge_to_be_no_better_than_chance_undo_its_verdict() -> None:
    """People see no difference between the answers; the judge passes all of B's."""
    before, after = side(0.5, 1, 1, 40, n=40, seed=8), side(0.5, 1, 0, 40, n=40, seed=8)
    assert runs_of(before, after, Terms()).decision("v0", "v0").verdict == "ship"
    decision = decided(before, after)
    assert (decision.verdict, decision.reasons, decision.judge and decision.judge.refused) == (
        "undecided",
        ["judge"],
        "labels_of_a_kind",
    )
    assert "judge e0: no better than chance on the labels" in decision.warnings


def of_strata(cells: Side, each: int) -> Side:
    """Labels of as many answers that the judge passes as of those that it fails."""
    left = {True: each, False: each}
    strata: Side = {}
    for case, (cell,) in cells.items():
        drawn = left[cell.judge] > 0
        left[cell.judge] -= drawn
        strata[case] = [JudgedCell(cell.judge, cell.human if drawn else None, drawn)]
    return strata


def test_labels_of_several_trials_of_a_case_are_no_further_labels() -> None:
    before, after = side(0.6, 0.97, 0.97, 40, seed=5), side(0.62, 0.97, 0.97, 40, seed=5)
    once = decided(before, after).judge
    often = decided(*({case: cells * 10 for case, cells in one.items()} for one in (before, after))).judge
    assert once is not None
    assert often is not None
    assert (once.method, often.method, often.labels) == ("corrected", "corrected", 10 * once.labels)
    assert often.ci == pytest.approx(once.ci, abs=0.01)


def test_balanced_labels_are_weighted_on_each_side() -> None:
    before, after = side(0.9, 0.95, 0.8, 400, seed=11), side(0.95, 0.95, 0.8, 400, seed=12)
    truth = sum(bool(c.human) for (c,) in after.values()) / 400 - sum(bool(c.human) for (c,) in before.values()) / 400
    decision = decided(of_strata(before, 40), of_strata(after, 40))
    assert decision.judge is not None
    assert (decision.judge.method, decision.judge.refused) == ("stratified", None)
    assert decision.judge.ci is not None
    assert decision.judge.ci[0] < truth < decision.judge.ci[1]
    assert decision.judge.difference == pytest.approx(truth, abs=0.06)


def test_balanced_labels_of_one_side_alone_correct_nothing() -> None:
    before, after = side(0.9, 0.95, 0.8, 400, seed=11), side(0.95, 0.95, 0.8, 0, seed=12)
    decision = decided(of_strata(before, 40), after)
    assert decision.judge is not None
    assert (decision.judge.method, decision.judge.ci) == ("", None)
    assert any("needs labels of passes and failures of both sides" in line for line in decision.warnings)


def test_a_judge_without_labels_is_named() -> None:
    runs = runs_of(side(0.5, 1, 1, 0), side(0.9, 1, 1, 0), Terms())
    runs.uncalibrated = ["e0"]
    assert "judge e0 uncalibrated: verdict is about the judge's opinion" in runs.decision("v0", "v0").warnings


def test_labels_correct_no_other_metric() -> None:
    decision = decided(side(0.6, 0.9, 0.85, 150), side(0.8, 0.9, 0.85, 150), Terms(metric="e0"))
    assert decision.judge is None
    assert any("labels correct pass rates" in line for line in decision.warnings)


def test_only_some_cases_have_only_their_labels() -> None:
    pair = JudgedPair("e0", side(0.5, 1, 1, 10), side(0.5, 1, 1, 20))
    assert pair.labels() == 30
    assert pair.of({"c000", "c015"}).labels() == 3


@pytest.mark.slow("coverage of 150 simulated decisions")
def test_the_powered_difference_covers_the_true_one() -> None:
    hits = total = 0
    for seed in range(150):
        a, b = side(0.6, 0.9, 0.8, 80, seed=2 * seed), side(0.7, 0.85, 0.9, 80, seed=2 * seed + 1)
        judge = decided(a, b).judge
        if judge is not None and judge.ci is not None:
            total, hits = total + 1, hits + (judge.ci[0] <= 0.1 <= judge.ci[1])
    assert total > 100
    assert hits / total >= 0.9
