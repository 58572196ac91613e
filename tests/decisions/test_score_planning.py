"""Plans for a mean score, from runs whose cells have scores."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from evalwright.decisions.planning import Aim, SuitePlan
from evalwright.decisions.score_planning import score_plan
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.errors import InputError
from evalwright.reports.planning import planning_lines
from evalwright.statistics import power_trials


def scored(*cases: list[float], width: float = 1.0) -> SideCounts:
    """A case for each list of scores of its trials; nothing passes."""
    side = SideCounts("v")
    side.scores["q"] = totals = {f"c{i}": CaseTotal() for i in range(len(cases))}
    for total, scores in zip(totals.values(), cases, strict=True):
        for score in scores:
            total.judged += 1
            total.add_score(score * width)
    side.passes = {case: CaseTotal(0.0, len(scores)) for case, scores in zip(totals, cases, strict=True)}
    side.range["q"] = (0.0, width)
    return side


def noisy(seed: int, trials: int = 3, n: int = 120) -> list[list[float]]:
    """The scores of a system: cases differ by what is the same in every run, trials by a uniform error."""
    rng = Random(seed)
    return [[0.2 + 0.4 * (case / n) + rng.uniform(0, 0.3) for _ in range(trials)] for case in range(n)]


HIGHER = Aim(0.04, 0.0, 0.05, 0.8)


def plan_of(*runs: SideCounts, aim: Aim = HIGHER) -> SuitePlan:
    return score_plan("s", 60, runs, [1, 3], aim, "q")


@pytest.mark.parametrize("trials", [1, 3])
def test_two_runs_show_how_many_cases_a_mean_score_takes(trials: int) -> None:
    """The variance of a uniform error, in both runs; nothing passes, which a plan for the pass rate would go by."""
    plan = plan_of(scored(*noisy(1, trials)), scored(*noisy(2, trials)))
    expected = [power_trials(60, 0.0, 0.0075, 0.0075, k, k, 0.04).n_required or 0 for k in (1, 3)]
    found = [row.needs[1].cases for row in plan.rows[:2]]
    assert found == [pytest.approx(n, rel=0.35, abs=4) for n in expected]
    assert plan.repeats is None


def test_a_plan_for_a_score_does_not_depend_on_its_unit() -> None:
    one = plan_of(scored(*noisy(1)), scored(*noisy(2)))
    ten = plan_of(scored(*noisy(1), width=10.0), scored(*noisy(2), width=10.0), aim=Aim(0.4, 0.0, 0.05, 0.8))
    for row, other in zip(one.rows, ten.rows, strict=True):
        assert (row.power, 10 * (row.detectable or 0)) == pytest.approx((other.power, other.detectable))
        assert msgspec.structs.replace(row, power=None, detectable=None, curve=[]) == msgspec.structs.replace(
            other, power=None, detectable=None, curve=[]
        )


def test_a_plan_for_a_score_says_so_in_its_units() -> None:
    lines = planning_lines(plan_of(scored(*noisy(1))), "a run")
    assert lines[0].startswith("To show that the mean score of q is 0.04 higher at alpha .05: s,")
    assert lines[3] == "  the same system"
    assert " ±0.0" in lines[5]
    [first, *_] = planning_lines(plan_of(scored(*noisy(1)), aim=Aim(0.0, 0.03, 0.05, 0.8)), "a run")
    assert first.startswith("To show that the mean score of q is not worse than −0.03, if it is as good, at")


@pytest.mark.parametrize(
    ("runs", "metric", "detect", "mistake"),
    [
        ([], "q", 0.1, "the plan for q needs a run"),
        ([scored([0.5, 0.7])], "p", 0.1, r"no metric 'p'.*there are: pass_rate, q"),
        ([scored([0.5, 0.7])], "q", 1.0, r"--detect  expected less than the range of q \(1\), found 1"),
        ([scored([0.5, 0.5], [0.7, 0.7])], "q", 0.1, "the scores of q do not vary"),
        ([scored([0.5, 0.7]), scored()], "q", 0.1, "no metric 'q'"),
    ],
)
def test_a_plan_for_a_score_needs_runs_that_show_it(
    runs: list[SideCounts], metric: str, detect: float, mistake: str
) -> None:
    with pytest.raises(InputError, match=mistake):
        score_plan("s", 60, runs, [1, 3], Aim(detect, 0.0, 0.05, 0.8), metric)
