"""Warnings where a decision errs more often than its alpha says."""

from __future__ import annotations

import pytest

from decisions.small_runs import PLAN, scored
from evalwright.decisions.engine import decision_of
from evalwright.decisions.identity import Identity
from evalwright.decisions.pairing import CaseGroups
from evalwright.decisions.runs import two_runs
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Terms, guards_of
from evalwright.model.decision import Decision
from evalwright.reports.decision import decision_lines
from evalwright.reports.text import Paint
from scoring.histories import stored


def side(shares: list[float], trials: int) -> SideCounts:
    passes = {f"c{i}": CaseTotal(float(round(share * trials)), trials) for i, share in enumerate(shares)}
    return SideCounts("v", passes=passes)


def scores(values: list[float]) -> SideCounts:
    return SideCounts("v", scores={"s": {f"c{i}": CaseTotal(value, 1) for i, value in enumerate(values)}})


def decided(a: SideCounts, b: SideCounts, **terms: object) -> Decision:
    return decision_of(a, b, Terms(**terms), Identity(), CaseGroups())  # type: ignore[arg-type]


def lines(found: Decision, start: str) -> list[str]:
    return [line for line in found.warnings if line.startswith(start)]


SOME_OF_TEN_FAIL = [0.9, 1.0] * 15
ONE_IN_30_FAILS = [1.0] * 29 + [0.0]


@pytest.mark.parametrize("turned", [False, True])
def test_few_trials_against_many_at_a_rate_near_one_are_named(turned: bool) -> None:
    few, many = side(ONE_IN_30_FAILS, 1), side(SOME_OF_TEN_FAIL, 10)
    decision = decided(many, few) if turned else decided(few, many)
    assert decision.method == "t"
    assert lines(decision, "trials") == [
        f"trials: {'B' if turned else 'A'} has only 30, the other side 300, and most end alike (pass rate 95.2 %): "
        "error rates may be three times alpha"
    ]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (side([1.0, 0.0] * 20, 1), side([0.5, 0.6] * 20, 10)),  # both outcomes are common
        (side([1.0] * 450 + [0.0] * 50, 1), side([0.9] * 500, 10)),  # many cases
        (side(SOME_OF_TEN_FAIL, 10), side([*SOME_OF_TEN_FAIL[1:], 0.9], 10)),  # as many trials
        (side([0.8, 1.0] * 15, 5), side(SOME_OF_TEN_FAIL, 10)),  # not more than twice as many
        (side([1.0] * 30, 1), side([1.0] * 29 + [0.9], 10)),  # the guarded interval is wide enough
    ],
)
def test_trials_that_differ_harmlessly_are_not_named(a: SideCounts, b: SideCounts) -> None:
    assert not lines(decided(a, b), "trials")


def test_cases_of_one_side_are_no_trials_of_a_pair() -> None:
    few, many = side(ONE_IN_30_FAILS, 1), side(SOME_OF_TEN_FAIL, 10)
    few.passes = {**few.passes, **{f"more{i}": CaseTotal(0.0, 1) for i in range(500)}}
    assert lines(decided(few, many), "trials")


def test_cases_that_would_miss_a_rare_failure_are_named_where_they_let_ship() -> None:
    a, b = side([0.9, 1.0] * 50, 10), side([1.0, 0.9] * 50, 10)
    decision = decided(a, b, margin=0.02)
    assert (decision.method, decision.verdict) == ("t", "ship")
    assert lines(decision, "cases") == [
        "cases: if 2 % of all cases failed in every trial with B, 100 cases that otherwise vary as little as these "
        "would show an interval as good as this with a chance of 7.6 %"
    ]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (side([0.9, *[1.0] * 9] * 20, 10), side([1.0, 0.9, *[1.0] * 8] * 19 + [1.0, 0.9, *[1.0] * 7, 0.0], 10)),  # t
        (side([1.0] * 300, 5), side([1.0] * 298 + [0.0] * 2, 5)),  # guarded
        (side([1.0] * 300, 1), side([1.0] * 298 + [0.0] * 2, 1)),
    ],
)
def test_a_sample_that_holds_some_rare_failures_is_named_if_few_are_taken_for_none(
    a: SideCounts, b: SideCounts
) -> None:
    decision = decided(a, b, margin=0.02)
    assert decision.verdict == "ship"
    assert lines(decision, "cases")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (side([0.8, *[1.0] * 9] * 20, 5), side([1.0, 0.8, *[1.0] * 8] * 20, 5)),  # Student's t
        (side([1.0] * 200, 5), side([1.0] * 200, 5)),  # guarded
        (side([1.0] * 200, 1), side([1.0] * 200, 1)),
    ],
)
def test_an_interval_that_rare_failures_would_seldom_show_is_not_in_doubt(a: SideCounts, b: SideCounts) -> None:
    decision = decided(a, b, margin=0.02)
    assert decision.verdict == "ship"
    assert not lines(decision, "cases")


@pytest.mark.parametrize("terms", [{"margin": 0.0}, {"margin": 0.02, "better": True}, {"margin": 0.02}])
def test_gains_that_a_rare_failure_would_undo_are_named_where_b_is_better(terms: dict[str, object]) -> None:
    """Simulated with 20 cases that gain 0.025 but for 3 % of them that fall to 0: 49 % are shown to be better."""
    before = [0.8 + 0.01 * (i % 5) for i in range(40)]
    a, b = scores(before), scores([value + 0.02 + 0.01 * (i % 2) for i, value in enumerate(before)])
    decision = decided(a, b, metric="s", **terms)
    assert decision.verdict == "ship"
    assert lines(decision, "cases") == [
        "cases: if 2.89 % of all cases fell from the best score to the worst, B would be no better, and 40 cases that "
        "otherwise gain as much as these would show an interval as good as this with a chance of 15 %"
    ]


@pytest.mark.parametrize(
    ("margin", "share", "no_worse"), [(0.0, "2.37 %", "no worse"), (0.01, "1.39 %", "no worse than the margin")]
)
def test_losses_that_a_rare_gain_would_make_up_for_are_named_where_b_is_worse(
    margin: float, share: str, no_worse: str
) -> None:
    """Simulated with 20 or 50 cases that lose 0.03 but for 3 % of them that rise from 0 to 1: 54 or 22 % are shown to
    be worse."""
    before = [0.0, *[0.8 + 0.01 * (i % 5) for i in range(39)]]
    after = [0.0, *[value - 0.02 - 0.01 * (i % 2) for i, value in enumerate(before[1:])]]
    decision = decided(scores(before), scores(after), metric="s", margin=margin)
    assert decision.verdict == "dont"
    (line,) = lines(decision, "cases")
    assert f"if {share} of all cases rose from the worst score to the best, B would be {no_worse}, and 40" in line


def test_losses_that_no_rare_gain_would_make_up_for_are_not_in_doubt() -> None:
    """Either the loss is too large, or no case of A has a score from which it could rise so far."""
    large = decided(scores([0.5] * 40), scores([0.2, 0.3] * 20), metric="s", margin=0.0)
    at_the_top = decided(scores([1.0] * 40), scores([0.97, 0.98] * 20), metric="s", margin=0.0)
    for decision in (large, at_the_top):
        assert (decision.verdict, lines(decision, "cases")) == ("dont", [])


def test_cases_fall_no_further_than_they_were_up() -> None:
    """Scores of an unknown range that are all below 0.001."""
    before = [0.0003 + 0.00001 * (i % 5) for i in range(60)]
    a, b = scores(before), scores([value + 0.00004 + 0.00001 * (i % 2) for i, value in enumerate(before)])
    decision = decided(a, b, metric="s")
    assert (decision.verdict, lines(decision, "cases")) == ("ship", [])


def test_gains_that_no_rare_failure_would_undo_are_not_in_doubt() -> None:
    a, b = scores([0.5] * 40), scores([0.7, 0.8] * 20)
    decision = decided(a, b, metric="s", margin=0.0)
    assert decision.verdict == "ship"
    assert not lines(decision, "cases")


@pytest.mark.parametrize(
    ("cases", "terms"),
    [
        (1000, {"margin": 0.02}),  # enough rare failures would be among them
        (100, {"margin": 0.0}),
        (100, {"margin": 0.02, "better": True}),
        (100, {"margin": 0.02, "population": "suite"}),
    ],
)
def test_enough_cases_and_other_claims_are_not_in_doubt(cases: int, terms: dict[str, object]) -> None:
    a, b = side([0.9, 1.0] * (cases // 2), 10), side([1.0] * cases, 10)
    decision = decided(a, b, **terms)
    assert decision.verdict == "ship"
    assert not lines(decision, "cases")


def test_flips_of_an_unchanged_system_are_at_least_those_of_the_shares_that_were_seen() -> None:
    """Cases that passed in all trials count as if they always did, so that more are to be expected."""
    a, b = side([0.75, 1.0] * 20, 4), side([1.0, 0.75] * 20, 4)
    assert any("40 flipped, at least 22" in line for line in decision_lines(decided(a, b), Paint()))


def with_skips(*cases: tuple[int, int, int]) -> SideCounts:
    """Cases by passed, judged and skipped trials."""
    return SideCounts("v", {f"c{i}": CaseTotal(float(p), n, skipped=s) for i, (p, n, s) in enumerate(cases)})


def test_skipped_trials_that_would_turn_the_decision_are_named() -> None:
    """B skips each of the 12 cases that it would fail; A fails one of them."""
    a = with_skips(*[(1, 1, 0)] * 239, (0, 1, 0))
    b = with_skips(*[(1, 1, 0)] * 228, *[(0, 0, 1)] * 12)
    decision = decided(a, b)
    assert (decision.verdict, decision.n) == ("ship", 228)
    assert lines(decision, "skipped") == [
        "skipped: 0 of A's trials and 12 of B's count for nothing; if they had failed, B − A would be −4.6 pp, and the "
        "verdict another"
    ]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([(1, 1, 0)] * 128 + [(0, 0, 1)] * 12, [(1, 1, 0)] * 128 + [(0, 0, 1)] * 12),  # the same cases in both
        ([(1, 1, 0)] * 400, [(1, 1, 0)] * 399 + [(0, 0, 1)]),  # too few to matter
        ([(1, 1, 0)] * 10, [(1, 1, 0)] * 5 + [(0, 0, 1)] * 5),  # nothing is decided
    ],
)
def test_skipped_trials_that_turn_nothing_are_not_named(
    a: list[tuple[int, int, int]], b: list[tuple[int, int, int]]
) -> None:
    assert not lines(decided(with_skips(*a), with_skips(*b)), "skipped")


def test_skipped_trials_do_not_turn_what_a_guard_has_decided() -> None:
    a, b = with_skips(*[(1, 1, 0)] * 400), with_skips(*[(1, 1, 0)] * 399, (0, 0, 1))
    a.scores["s"], b.scores["s"] = ({case: CaseTotal(score, 1) for case in a.passes} for score in (1.0, 0.0))
    decision = decided(a, b, guards=guards_of("evaluator:s=-1pp", ["s"]))
    assert (decision.verdict, decision.guards[0].state) == ("dont", "broken")
    assert not lines(decision, "skipped")


def test_scores_that_were_skipped_are_named_too() -> None:
    records = scored(*[0.9] * 200), scored(*[0.9] * 200)
    for row in records[1][1:60:2]:
        row.skipped = True  # type: ignore[union-attr]
    runs = [stored(some, PLAN) for some in records]
    decision = two_runs(runs[0], PLAN, runs[1], PLAN, Terms(metric="e0")).decision("v0", "v0")
    assert decision.verdict == "ship"
    [line] = lines(decision, "skipped")
    assert "30 of B's count for nothing; if they had got the worst score, B − A would be −0.135," in line


@pytest.mark.parametrize(
    ("sizes", "few"),
    [([10], "1 group"), ([10] * 4, "4 groups"), ([30, 2, 2, 2], "1.4 effective groups of 4"), ([5] * 8, "")],
)
def test_few_groups_are_named(sizes: list[int], few: str) -> None:
    groups: dict[str, str] = {}
    for group, size in enumerate(sizes):
        groups |= {f"c{len(groups) + i}": f"g{group}" for i in range(size)}
    a, b = (side([share] * len(groups), 2) for share in (0.5, 1.0))
    decision = decision_of(a, b, Terms(), Identity(), CaseGroups(groups))
    assert lines(decision, "units") == ([f"units: only {few}: error rates are approximate"] if few else [])


@pytest.mark.parametrize(
    ("paired", "said"),
    [
        (0, "none of the 10 cases of A is paired"),
        (1, "only 1 of the 10 cases of A is paired"),
        (4, "only 4 of the 10 cases of A are paired"),
        (5, ""),
    ],
)
def test_a_side_of_which_few_cases_are_paired_is_named(paired: int, said: str) -> None:
    decision = decided(side([1.0] * 10, 1), side([1.0] * paired, 1))
    assert [line for line in decision.warnings if "paired" in line] == ([said] if said else [])
