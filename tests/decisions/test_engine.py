"""What holds of every decision, whatever the runs were."""

from __future__ import annotations

import random
from math import isfinite
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from decisions.small_runs import of_passes
from evalwright.decisions.engine import decision_of
from evalwright.decisions.identity import Identity
from evalwright.decisions.measures import MeasuredValues
from evalwright.decisions.pairing import CaseGroups
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Guard, Terms
from evalwright.model.decision import Decision, GuardPart
from evalwright.reports.decision import decision_lines
from evalwright.reports.text import Paint

GUARDS = (
    *(Guard("cost", 1.1), Guard("latency", 1.2), Guard("latency_p95", 1.3)),
    *(Guard("tokens", 1.0), Guard("evaluator:rates", -0.01)),
)
SCORES = ((0.0, 1.0), (0.0, 0.0), (5.0, 5.0), (1.0, 5.0), (-3.0, 1e60))
TAKEN = ((), (0.0,), (0.0, 5.0), (0.3, 0.7), (1.0, 1.0, 1e30))


def side(pick: random.Random, cases: list[str], groups: dict[str, str], rate: float, errors: float) -> SideCounts:
    made = SideCounts("v", groups={case: groups[case] for case in cases if case in groups})
    most, low_high, taken = pick.choice([1, 1, 2, 6]), pick.choice(SCORES), pick.choice(TAKEN)
    for case in cases:
        one, score = made.passes.setdefault(case, CaseTotal()), CaseTotal()
        for _ in range(pick.choice([most, pick.randint(1, most)])):
            if pick.random() < errors:
                missing = pick.choice(["target_errors", "not_run"])
                for outcome in (one, score):
                    setattr(outcome, missing, getattr(outcome, missing) + 1)
                continue
            value = pick.choice([*low_high, pick.uniform(*low_high)])
            one.judged, one.total = one.judged + 1, one.total + (pick.random() < rate)
            score.judged, score.total, score.squares = score.judged + 1, score.total + value, score.squares + value**2
            if taken:
                made.measures[pick.choice(["cost", "latency", "tokens"])].add(case, pick.choice(taken))
        made.scores.setdefault("rates", {})[case] = score
    made.range["rates"] = low_high
    return made


def a_decision(seed: int) -> tuple[Decision, Terms]:
    pick = random.Random(seed)
    cases = [f"c{i}" for i in range(pick.choice([1, 2, 3, 5, 6, 11, 12, 13, 40]))]
    kind = pick.choice(["none", "all", "own", "two", "half"])
    groups = {
        case: {"all": "g", "own": case, "two": f"g{i % 2}"}.get(kind, "g" if i < len(cases) // 2 else case)
        for i, case in enumerate(cases if kind != "none" else [])
    }
    rate, errors = pick.choice([0, 0.5, 0.9, 1]), pick.choice([0, 0, 0, 0.2, 1])
    a = side(pick, cases, groups, rate, pick.choice([0, errors]))
    b = side(pick, [*cases, "new"], groups, pick.choice([rate, 0, 1]), errors)
    terms = Terms(
        metric=pick.choice(["pass_rate", "pass_rate", "rates"]),
        margin=pick.choice([None, None, 0.0, 0.1, 0.999]),
        alpha=pick.choice([0.05, 0.05, 0.01, 0.2, 0.5, 0.001]),
        better=pick.random() < 0.3,
        guards=tuple(pick.sample(GUARDS, pick.randint(0, 3))),
        errors=pick.choice(["exclude", "fail", "strict"]),
        population=pick.choice(["cases", "cases", "cases", "suite"]),
        family=pick.choice([1, 3]),
        slice_margin=pick.choice([None, 0.05]),
    )
    slices = {("k", "x"): cases[::2], ("k", "y"): cases[1::2], ("k", "rare"): cases[:1]}
    known = CaseGroups(groups, slices if pick.random() < 0.5 else {})
    return decision_of(a, b, terms, Identity(shared=len(cases)), known), terms


def agree(ends: tuple[float, float], p: float | None, alpha: float, null: float) -> bool:
    """Whether p is at most alpha exactly where the null lies outside; at an end, either."""
    rounding = 1e-9 * max(1.0, *map(abs, ends))
    if min(abs(end - null) for end in ends) <= rounding:
        return p is not None
    return p is not None and (p <= alpha) == (not ends[0] < null < ends[1])


def numbers_of(value: Any) -> list[float]:
    if isinstance(value, dict | list | tuple):
        return [number for one in (value.values() if isinstance(value, dict) else value) for number in numbers_of(one)]
    return [value] if isinstance(value, float) else []


@example(1553263)  # all scores are the same, and none of 0 to 1
@given(st.integers(0, 2**32))
def test_no_decision_lacks_a_number_or_contradicts_itself(seed: int) -> None:
    found, terms = a_decision(seed)
    alpha, states = found.alpha / found.family, [guard.state for guard in found.guards]
    assert all(map(isfinite, numbers_of(msgspec.to_builtins(found))))
    for part in (found, *found.evaluators, *found.slices):
        p = part.p_better if isinstance(part, Decision) else part.p
        assert (part.ci is None) == (part.n == 0)
        assert part.ci is None or agree(part.ci, p, alpha, 0.0)
    for guard in found.guards:
        assert bool(guard.reason) >= (guard.ci is None)
        assert not guard.reason or guard.state == "undecided"
    text = "undecided"
    if found.ci is not None:
        low, high = found.ci
        assert agree(found.ci, found.p_margin, alpha, -found.margin)
        text = "ship" if low > (0 if terms.better else -found.margin) else "dont" if high < -found.margin else text
    if found.verdict == "ship":
        assert text == "ship"
        assert set(states) <= {"holds"}
    elif found.verdict == "dont":
        assert text == "dont" or "broken" in states or found.reasons[0].startswith("slice ")
    else:
        assert found.reasons
    assert all(len(line) <= 80 for line in decision_lines(found, Paint()))


def test_measures_of_several_trials_are_averaged_by_case() -> None:
    cost = MeasuredValues()
    for case, value in (("a", 1.0), ("b", 2.0), ("a", 3.0), ("a", 5.0)):
        cost.add(case, value)
    assert (cost.means(), cost.values()) == ({"a": 3.0, "b": 2.0}, [1.0, 3.0, 5.0, 2.0])
    assert (cost.mean(), cost.mean_of_cases()) == ((11 / 4, 4), 2.5)


def test_errors_that_are_failures_are_so_in_the_rates_too() -> None:
    a, b = of_passes(1, 0, 1, 1), of_passes(1, 1, 1, 1)
    b.passes = {**b.passes, "c0": CaseTotal(0.0, 0, 1), "c3": CaseTotal(2.0, 2, 1, 1)}
    decision = decision_of(a, b, Terms(errors="fail"), Identity(), CaseGroups())
    assert (decision.a.rate, decision.b.rate, decision.b.n) == (0.75, pytest.approx((0 + 1 + 1 + 2 / 3) / 4), 4)
    assert decision.difference == pytest.approx((decision.b.rate or 0) - 0.75)
    plain = decision_of(a, b, Terms(), Identity(), CaseGroups())
    assert (plain.b.rate, plain.b.n) == (1.0, 3)


def judged_by_a_guard(judged: int, passed: int, *, erred: int = 0, not_run: int = 0) -> SideCounts:
    """Cases that all pass; `safe` has judged some of them, erred at others, and not seen the rest."""
    totals = [CaseTotal(float(i < passed), 1) for i in range(judged)]
    totals += [CaseTotal(evaluator_errors=1)] * erred + [CaseTotal(not_run=1)] * not_run
    made = of_passes(*[1] * len(totals))
    made.scores["safe"] = {f"c{i}": total for i, total in enumerate(totals)}
    return made


@pytest.mark.parametrize(
    ("passed", "limit", "missing", "state"),
    [
        (10, -0.3, {"erred": 290}, "undecided"),
        (100, -0.3, {"not_run": 200}, "undecided"),
        (298, -0.3, {"erred": 2}, "holds"),
        (0, -0.3, {"erred": 200}, "undecided"),
        (0, -0.3, {"erred": 2}, "broken"),
    ],
)
def test_a_guard_on_an_evaluator_is_open_if_its_missing_results_could_turn_it(
    passed: int, limit: float, missing: dict[str, int], state: str
) -> None:
    judged = 300 - sum(missing.values())
    a, b = judged_by_a_guard(300, 300), judged_by_a_guard(judged, passed, **missing)
    guard = Guard("evaluator:safe", limit)
    decision = decision_of(a, b, Terms(guards=(guard,)), Identity(), CaseGroups())
    verdict = {"holds": "ship", "broken": "dont", "undecided": "undecided"}[state]
    assert ([one.state for one in decision.guards], decision.verdict) == ([state], verdict)
    if state == "undecided":
        assert decision.reasons == ["guard"]
        assert decision.next is None
        assert "its missing results could turn it" in " ".join(" ".join(decision_lines(decision, Paint())).split())


@pytest.mark.parametrize(("limit", "state"), [(-0.3, "holds"), (-0.2, "undecided"), (-0.1, "broken")])
def test_a_guard_on_scores_limits_the_part_of_their_range_that_is_lost(limit: float, state: str) -> None:
    sides = []
    for lost in (0, 2):
        made = of_passes(*[1] * 300)
        made.scores["safe"] = {f"c{i}": CaseTotal(9.0 + i % 2 - lost, 1) for i in range(300)}
        made.range["safe"] = (0.0, 10.0)
        sides.append(made)
    decision = decision_of(*sides, Terms(guards=(Guard("evaluator:safe", limit),)), Identity(), CaseGroups())
    (guard,) = decision.guards
    assert (guard.value, guard.state) == (pytest.approx(-0.2), state)
    assert guard.ci is not None
    assert -0.3 < guard.ci[0] <= -0.2 <= guard.ci[1] < -0.1


def timed(*latencies: float, units: int = 400, erred: int = 0) -> SideCounts:
    """Cases that all pass, some of them in these times and the rest in 100 ms; the last ones erred."""
    made = SideCounts("v")
    for i in range(units):
        if i >= units - erred:
            made.passes[f"c{i}"] = CaseTotal(target_errors=1)
            continue
        made.passes[f"c{i}"] = CaseTotal(1.0, 1)
        made.measures["latency"].add(f"c{i}", latencies[i] if i < len(latencies) else 100.0 + i % 2)
    return made


AGAIN = pytest.mark.slow("draws thousands of samples")


@pytest.mark.parametrize(
    ("guard", "slow", "erred", "state"),
    [
        ("latency", 0, 0, "holds"),
        ("latency", 1, 1, "holds"),
        ("latency", 1, 40, "undecided"),
        pytest.param("latency_p95", 1, 2, "holds", marks=AGAIN),
        ("latency_p95", 1, 40, "undecided"),
        ("latency_p95", 60, 2, "broken"),
        pytest.param("latency_p95", 24, 240, "undecided", marks=AGAIN),
    ],
)
def test_a_guard_on_a_measure_is_open_if_its_missing_trials_could_turn_it(
    guard: str, slow: int, erred: int, state: str
) -> None:
    a, b = timed(), timed(*[1000.0] * slow, erred=erred)
    terms = Terms(margin=0.9, guards=(Guard(guard, 1.2),))
    decision = decision_of(a, b, terms, Identity(), CaseGroups())
    (found,) = decision.guards
    assert found.state == state
    text = f"{erred} trials without measured latency could turn it"
    assert found.reason == (text if state == "undecided" else "")
    assert (text in " ".join(" ".join(decision_lines(decision, Paint())).split())) == (state == "undecided")


def test_a_guard_on_a_measure_is_open_if_cells_that_were_not_run_could_turn_it() -> None:
    a, b = timed(), timed(1000.0, erred=40)
    b.passes = {case: CaseTotal(not_run=1) if one.target_errors else one for case, one in b.passes.items()}
    terms = Terms(margin=0.9, guards=(Guard("latency", 1.2),))
    (found,) = decision_of(a, b, terms, Identity(), CaseGroups()).guards
    assert (found.state, found.reason) == ("undecided", "40 trials without measured latency could turn it")


def test_a_guard_that_is_kept_exactly_holds() -> None:
    (found,) = decision_of(timed(), timed(), Terms(guards=(Guard("latency", 1.0),)), Identity(), CaseGroups()).guards
    assert (found.ci, found.state) == ((1.0, 1.0), "holds")


@pytest.mark.parametrize(("name", "needs"), [("latency_p50", 20), ("latency_p95", 72), ("latency_p99", 368)])
def test_a_quantile_of_few_units_is_not_judged(name: str, needs: int) -> None:
    """With so many, 97.5 % of samples have a value beyond the quantile."""
    terms = Terms(guards=(Guard(name, 1.2),))
    enough, short = (
        decision_of(timed(units=n), timed(units=n), terms, Identity(), CaseGroups()).guards[0]
        for n in (needs, needs - 1)
    )
    assert (enough.state, short.state, short.ci) == ("holds", "undecided", None)
    what = "units that both sides measured" if name == "latency_p50" else "independent trials of each side"
    assert short.reason == f"needs {needs} {what}, found {needs - 1}"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ((0, 0, 0), (1, 2, 3), "a side is 0"),
        ((1, 2, 3), (0, 0, 0), "a side is 0"),
        ((2,), (3,), "measured of a single case"),
        ((1, 0, 0), (1, 0, 0), "the cost of one unit is all of a side, or too large to compare"),
        ((), (1, 2, 3), "not measured on both sides"),
    ],
)
def test_a_guard_says_why_its_ratio_has_no_interval(
    before: tuple[float, ...], after: tuple[float, ...], reason: str
) -> None:
    sides = timed(units=3), timed(units=3)
    for one, costs in zip(sides, (before, after), strict=True):
        for i, cost in enumerate(costs):
            one.measures["cost"].add(f"c{i}", cost)
    (guard,) = decision_of(*sides, Terms(guards=(Guard("cost", 1.2),)), Identity(), CaseGroups()).guards
    assert (guard.ci, guard.state, guard.reason) == (None, "undecided", reason)


def p95(before: SideCounts, after: SideCounts, limit: float = 1.3) -> GuardPart:
    (found,) = decision_of(before, after, Terms(guards=(Guard("latency_p95", limit),)), Identity(), CaseGroups()).guards
    return found


def test_a_tail_that_is_hardly_too_small_to_be_the_quantile_leaves_it_open() -> None:
    """2.5 % of answers are ten times slower: of a system with 5 %, more than one sample in 40 has so few of them."""
    assert p95(timed(units=200), timed(*[1000.0] * 5, units=200)).state == "undecided"
    assert p95(timed(units=200), timed(*[1000.0] * 2, units=200)).state == "holds"


def test_a_quantile_between_fast_and_slow_answers_on_both_sides_is_open() -> None:
    """Whether A's quantile is one of its slow answers is not known: B might be ten times slower."""
    guard = p95(timed(*[1000.0] * 16, units=200), timed(*[1000.0] * 9, units=200))
    assert guard.ci is not None
    assert guard.ci[1] < 1.3
    assert (guard.state, guard.reason) == (
        "undecided", "the latency at this quantile jumps 9.9-fold: too few trials to tell where"
    )  # fmt: skip


def test_a_quantile_that_must_be_lower_is_not_open_for_times_that_hardly_jump() -> None:
    """Neighbouring times differ by less than the limit demands, wherever the quantile of either side is."""
    a, b = timed(*[80 + i / 10 for i in range(400)]), timed(*[0.79 * (80 + i / 10) for i in range(400)])
    guard = p95(a, b, limit=0.8)
    assert guard.value == pytest.approx(0.79)
    assert guard.ci is not None
    assert guard.ci[1] < 0.8
    assert (guard.state, guard.reason) == ("holds", "")


def test_trials_of_one_case_are_not_so_many_independent_ones() -> None:
    """40 cases with 3 trials that take the same time: 40 times, and not 120."""
    sides = []
    for _ in range(2):
        made = SideCounts("v")
        for i in range(40):
            made.passes[f"c{i}"] = CaseTotal(3.0, 3)
            for _ in range(3):
                made.measures["latency"].add(f"c{i}", 100.0 + i)
        sides.append(made)
    assert p95(*sides).reason == "needs 72 independent trials of each side, found 40"


def test_slices_of_a_family_are_lost_at_the_level_of_their_intervals() -> None:
    """Several variants are decided together: a slice counts against one if its interval, of the same level, does."""
    a, b = of_passes(*[1] * 7, *[0] * 193), of_passes(*[0] * 7, *[0] * 193)
    b.passes = {case: CaseTotal(1.0, 1) if i >= 150 else found for i, (case, found) in enumerate(b.passes.items())}
    known = CaseGroups({}, {("lang", "es"): [f"c{i}" for i in range(20)]})
    terms = Terms(slices=("lang",), slice_margin=0.05)
    alone = decision_of(a, b, terms, Identity(), known)
    together = decision_of(a, b, msgspec.structs.replace(terms, family=20), Identity(), known)
    assert [one.p_margin for one in alone.slices] == [one.p_margin for one in together.slices]
    assert (alone.verdict, together.verdict) == ("dont", "ship")
    (part,) = together.slices
    assert part.ci is not None
    assert part.ci[1] > -0.05


def test_a_change_beyond_noise_is_named_however_few_trials_show_it() -> None:
    """3 trials a side tell where every case changed; "trials too few to tell" would deny what is listed."""
    all_failed, all_passed = (
        SideCounts("v", passes={f"c{i}": CaseTotal(total, 3) for i in range(20)}) for total in (0.0, 3.0)
    )
    changed = decision_of(all_failed, all_passed, Terms(), Identity(), CaseGroups()).changed
    assert (len(changed.beyond_noise), changed.too_few_trials) == (20, False)
    all_passed.passes = {**all_passed.passes, "c0": CaseTotal(0.0, 3)}
    changed = decision_of(all_failed, all_passed, Terms(), Identity(), CaseGroups()).changed
    assert (len(changed.beyond_noise), changed.too_few_trials) == (0, True)


@pytest.mark.parametrize(("errors", "verdict"), [("exclude", "ship"), ("strict", "undecided")])
def test_strictly_the_errors_of_one_side_passed_and_those_of_the_other_failed(errors: str, verdict: str) -> None:
    a, b = of_passes(*[1] * 300), of_passes(*[1] * 300)
    a.passes = {**a.passes, **{f"c{i}": CaseTotal(target_errors=1) for i in range(5)}}
    b.passes = {**b.passes, **{f"c{i}": CaseTotal(target_errors=1) for i in range(5, 10)}}
    decision = decision_of(a, b, Terms(errors=errors, margin=0.03), Identity(), CaseGroups())  # type: ignore[arg-type]
    assert decision.verdict == verdict
