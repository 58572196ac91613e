"""What it would take to decide what is undecided."""

from __future__ import annotations

import pytest

from decisions.small_runs import of_passes
from evalwright.decisions.engine import decision_of
from evalwright.decisions.identity import Identity
from evalwright.decisions.pairing import CaseGroups
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Guard, Terms
from evalwright.model.decision import Decision
from evalwright.reports.decision import decision_lines
from evalwright.reports.decision_words import units_line
from evalwright.reports.next_step import next_step
from evalwright.reports.text import Paint


def test_sides_of_unequal_trials_are_said_to_be_so_and_only_those_of_b_cost() -> None:
    a, b = (SideCounts("v", passes={f"c{i}": CaseTotal(float(n * (i % 4 > 0)), n) for i in range(40)}) for n in (5, 1))
    b.passes = {**b.passes, "c0": CaseTotal(1.0, 1)}
    for case in b.passes:
        b.measures["cost"].add(case, 0.5)
    decision = decision_of(a, b, Terms(), Identity(), CaseGroups())
    assert units_line(decision) == "40 cases × 5 and 1 trials"
    needed = decision.next
    assert needed is not None
    assert (needed.trials, needed.cost_usd) == (1, pytest.approx((needed.cases - 40) * 0.5))


def test_further_trials_of_the_suite_are_counted_from_those_that_b_has() -> None:
    a, b = (SideCounts("v", passes={f"c{i}": CaseTotal(n / 2, n) for i in range(40)}) for n in (10, 4))
    for case in b.passes:
        b.measures["cost"].add(case, 0.5)
    needed = decision_of(a, b, Terms(population="suite", margin=0.02), Identity(), CaseGroups()).next
    assert needed is not None
    assert (needed.cases, needed.cost_usd) == (40, (needed.trials - 4) * 40 * 0.5)


@pytest.mark.parametrize(("lost", "claim"), [(10, "better"), (20, None), (21, None), (30, "worse")])
def test_what_it_would_take_to_be_better_or_worse_is_to_pass_the_limit_of_that_verdict(
    lost: int, claim: str | None
) -> None:
    """Of 200 cases 20 are won. Where the loss stays within the margin, B never gets better, nor DON'T."""
    a, b = of_passes(*[0] * 20, *[1] * 180), of_passes(*[1] * 200)
    b.passes = {**b.passes, **{f"c{i}": CaseTotal(0.0, 1) for i in range(20, 20 + lost)}}
    decision = decision_of(a, b, Terms(better=True, margin=0.02), Identity(), CaseGroups())
    assert decision.verdict == "undecided"
    assert (decision.next and decision.next.claim) == claim
    step = next_step(decision) or ""
    assert ("neither better, nor worse by more than the margin" in step) is (claim is None)
    if claim == "worse":  # as without --better: its limit is the margin, too
        plain = decision_of(a, b, Terms(margin=0.02), Identity(), CaseGroups())
        assert decision.next == plain.next


def test_what_is_undecided_says_what_it_would_take() -> None:
    """Also where no case changed, and where only a guard is open."""
    same = of_passes(*[1] * 40)
    decision = decision_of(same, same, Terms(), Identity(), CaseGroups())
    assert (decision.verdict, decision.reasons, decision.method) == ("undecided", ["data"], "mcnemar")
    assert decision.next is not None
    enough, short = (
        decision_of(side, side, Terms(), Identity(), CaseGroups())
        for n in (decision.next.cases, decision.next.cases - 1)
        for side in [of_passes(*[1] * n)]
    )
    assert (enough.verdict, short.verdict) == ("ship", "undecided")
    a, b = of_passes(*[1] * 300), of_passes(*[1] * 300)
    for one, cost in ((a, 1.0), (b, 1.05)):
        for i in range(300):
            one.measures["cost"].add(f"c{i}", cost * (1 + i % 7) ** (2 if one is b else 1.9))
    (known,) = decision_of(a, b, Terms(guards=(Guard("cost", 9.0),)), Identity(), CaseGroups()).guards
    assert known.ci is not None
    between = Guard("cost", ((known.value or 0.0) + known.ci[1]) / 2)
    guarded = decision_of(a, b, Terms(guards=(between,)), Identity(), CaseGroups())
    assert guarded.reasons == ["guard"]
    assert guarded.next is not None
    assert (guarded.next.claim, guarded.next.cases > 300) == ("guard cost", True)
    exact = decision_of(of_passes(1, 1, 0, 0), of_passes(1, 0, 1, 0), Terms(margin=0.0), Identity(), CaseGroups())
    assert exact.next is None
    assert "no number of cases would show it" in " ".join(decision_lines(exact, Paint()))


def test_few_groups_take_as_many_more_as_their_own_number_says() -> None:
    """The degrees of freedom are those of 5 groups, not of 50 cases, by which 120 would do: that is 12 groups, which
    showed nothing in 800 simulated runs; 15 did in 70 %."""
    values = [0.8, 0.6, 0.6, 0.5, 0.5]
    a, b = (SideCounts("v", {f"c{i}": CaseTotal(0.0, 10) for i in range(50)}) for _ in range(2))
    a.passes = {case: CaseTotal(5.0, 10) for case in a.passes}
    b.passes = {case: CaseTotal(round(10 * values[i // 10]), 10) for i, case in enumerate(b.passes)}
    b.groups = {case: f"g{i // 10}" for i, case in enumerate(b.passes)}
    known = CaseGroups(groups=b.groups)
    decision = decision_of(a, b, Terms(better=True, margin=0.0), Identity(), known)
    assert decision.next is not None
    assert decision.next.cases == pytest.approx(145, abs=6)
    assert next_step(decision) == (
        f'about {decision.next.cases} cases × 10 in {decision.next.cases / 10:.0f} groups like these for "better" at '
        "80 % if +10.0 holds"
    )


FEW = {
    "3 cases × 5 trials": ([0.0, 0.2, 0.4], [0.6, 0.8, 0.8], {}),
    "3 ratings": ([1.0, 2.0, 3.0], [5.0, 5.0, 5.0], {"metric": "s"}),
    "5 scores, lower": ([0.9, 0.8, 0.7, 0.8, 0.9], [0.3, 0.4, 0.25, 0.3, 0.6], {"metric": "s"}),
    "10 cases of which 4 moved": ([1.0] * 6 + [0.2, 0.4, 0.6, 0.8], [1.0] * 10, {}),
}


@pytest.mark.parametrize(("a", "b", "terms"), FEW.values(), ids=FEW)
def test_as_many_cases_like_these_as_it_would_take_do_decide(
    a: list[float], b: list[float], terms: dict[str, str]
) -> None:
    """Student's t would need 4 ratings, where the guarded interval of 5 shows nothing, whatever they are."""

    def decided(times: int) -> Decision:
        one, other = (_repeated(values, times, **terms) for values in (a, b))
        return decision_of(one, other, Terms(**terms), Identity(), CaseGroups())  # type: ignore[arg-type]

    few = decided(1)
    assert (few.verdict, few.method) == ("undecided", "guarded")
    assert few.next is not None
    assert few.next.cases <= 40
    more = decided(-(-few.next.cases // len(a)))
    assert more.verdict == ("dont" if few.next.claim == "worse" else "ship")


def _repeated(values: list[float], times: int, metric: str = "") -> SideCounts:
    """A case for each value, repeatedly; the scores of repetitions differ a little, as those of other cases would."""
    if metric:
        scores = [value * (1 + i / 1000) for i in range(times) for value in values]
        cases = {f"c{i}": CaseTotal(score, 1) for i, score in enumerate(scores)}
        return SideCounts("v", scores={metric: cases}, range={metric: (0.0, max(1.0, max(values)))})
    return SideCounts("v", passes={f"c{i}": CaseTotal(round(5 * value), 5) for i, value in enumerate(values * times)})
