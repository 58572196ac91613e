"""Reference numbers: exhaustive enumeration and scipy's t distribution."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import fsum, sqrt
from statistics import variance

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalwright.statistics import decide_difference, guarded_difference, sign_flip
from evalwright.statistics.differences import TrialsOfCase, decide_suite
from evalwright.statistics.distributions import t_two_sided
from evalwright.statistics.units import units_of

tenths = st.integers(-10, 10).map(lambda x: x / 10)
cases = st.lists(st.tuples(tenths, st.sampled_from("abcdefghijklmnopqrstuvwxyz")), min_size=2, max_size=40)


@given(cases, st.booleans(), st.sampled_from([0.0, 0.02, 0.1, 0.3]), st.sampled_from([0.05, 0.1, 0.01]))
def test_test_and_interval_never_contradict_each_other(
    found: list[tuple[float, str]], grouped: bool, margin: float, alpha: float
) -> None:
    values, groups = [value for value, _ in found], [group for _, group in found]
    result = decide_difference(values, groups if grouped else None, alpha, margin)
    assert result.ci is not None
    assert result.p_value is not None
    assert result.p_margin is not None
    low, high = result.ci
    assert -1 <= low <= high <= 1
    assert (result.p_value <= alpha) == (not low <= 0 <= high)
    assert (result.p_margin <= alpha) == (not low <= -margin <= high)
    assert result.verdict == ("ship" if low > -margin else "dont" if high < -margin else "undecided")


@example([-1.0] * 11 + [1.0] * 3 + [0.0] * 6, 0.0)  # only McNemar's test sees nothing here
@example([-1.0] * 11 + [1.0] * 3 + [0.0] * 6, 0.01)
@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=80), st.sampled_from([0.0, 0.02, 0.1]))
def test_neither_do_they_with_one_trial(values: list[float], margin: float) -> None:
    result = decide_difference(values, margin=margin, one_trial=True)
    assert result.ci is not None
    assert result.p_value is not None
    assert result.p_margin is not None
    low, high = result.ci
    assert (result.p_value <= 0.05) == (not low <= 0 <= high)
    assert (result.p_margin <= 0.05) == (not low <= -margin <= high)


@pytest.mark.parametrize(
    ("values", "groups", "single", "method"),
    [
        ([1.0] * 5 + [0.0] * 5, None, True, "mcnemar"),
        ([0.1, 0.2] * 15, None, False, "t"),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], None, False, "sign_flip"),
        ([0.5] * 50, None, False, "guarded"),
        ([1.0] * 5 + [0.0] * 5, list("aabbccddee"), True, "guarded"),
    ],
)
def test_the_method_is_told_by_what_moved(
    values: list[float], groups: list[str] | None, single: bool, method: str
) -> None:
    assert decide_difference(values, groups, one_trial=single).method == method


def test_a_clear_win_has_an_interval_and_a_p() -> None:
    difference = decide_difference([1.0] * 50)
    assert difference.ci == pytest.approx((0.8849939001572, 1.0))
    assert difference.p_value == pytest.approx(9.682115993599e-30)


def test_one_case_says_nearly_nothing_and_none_nothing() -> None:
    assert decide_difference([0.5]).ci == (-1.0, 1.0)
    nothing = decide_difference([])
    assert (nothing.difference, nothing.ci, nothing.p_value, nothing.verdict) == (None, None, None, "undecided")


def test_values_without_any_range_have_no_spread() -> None:
    assert decide_difference([0.0, 0.0], scale=0.0).ci == (0.0, 0.0)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.sampled_from([0, 1, -2]))
def test_sign_flips_are_counted_exactly(values: list[int], null: int) -> None:
    """One-sided: 1 and the subsets whose mean is at most (at least) the null, of all sign assignments."""
    chosen = [pick for pick in product([0, 1], repeat=len(values)) if any(pick)]
    means = [Fraction(sum(v for v, used in zip(values, pick, strict=True) if used), sum(pick)) for pick in chosen]
    tails = [1 + sum(m <= null for m in means), 1 + sum(m >= null for m in means)]
    flip = sign_flip([float(v) for v in values], null=null, scale=5.0)
    assert flip.p_two_sided == pytest.approx(min(1.0, 2 * min(tails) / 2 ** len(values)))


def test_six_cases_that_all_rose_are_the_least_that_show_it() -> None:
    flip = sign_flip([0.31, 0.55, 0.5, 0.55, 0.18, 0.29])
    assert (flip.p_two_sided, flip.ci) == (0.03125, (0.18, 0.55))
    assert sign_flip([0.3] * 5).ci == (-1.0, 1.0)


def test_too_many_signs_are_refused() -> None:
    with pytest.raises(ValueError, match="1 to 20 units"):
        sign_flip([0.1] * 21)


@given(st.lists(tenths, min_size=1, max_size=30))
def test_guarding_pulls_towards_nothing(values: list[float]) -> None:
    difference = guarded_difference(values)
    assert abs(difference.centre) <= abs(fsum(values) / len(values)) + 1e-12
    assert difference.ci[0] < difference.ci[1]


def test_effective_units_are_those_of_kish() -> None:
    assert units_of([0.0] * 100, ["a"] * 50 + list(range(50))).effective == pytest.approx(100**2 / (50**2 + 50))


def test_of_a_whole_suite_only_the_trials_are_a_sample() -> None:
    """Of one case it is Welch's t-test; a second one that never varies halves difference and error alike."""
    suite = decide_suite([TrialsOfCase(1, 5, 3, 5)], margin=0.1)
    noise = 0.2 * 0.8 / 4 + 0.6 * 0.4 / 4
    df = noise**2 / ((0.2 * 0.8 / 4) ** 2 / 4 + (0.6 * 0.4 / 4) ** 2 / 4)
    assert suite.difference == pytest.approx(0.4)
    assert suite.p_value == pytest.approx(t_two_sided(0.4 / sqrt(noise), df))
    assert suite.p_margin == pytest.approx(t_two_sided(0.5 / sqrt(noise), df))
    two = decide_suite([TrialsOfCase(1, 5, 3, 5), TrialsOfCase(2, 2, 2, 2)])
    assert two.difference == pytest.approx(0.2)
    assert two.p_value == pytest.approx(suite.p_value)
    assert (suite.method, two.n, two.units) == ("satterthwaite", 2, 2)


def test_scores_of_a_suite_are_tested_by_their_squares() -> None:
    """Of one case it is Welch's t-test of the scores; scores that agree but for rounding have no variance."""
    a, b = [0.2, 0.5, 0.6, 0.9], [0.7, 0.8, 1.0]
    sides = [value for x in (a, b) for value in (sum(x), len(x))]
    suite = decide_suite([TrialsOfCase(*sides, *(sum(y * y for y in x) for x in (a, b)))])  # type: ignore[arg-type]
    noise = [variance(x) / len(x) for x in (a, b)]
    df = sum(noise) ** 2 / (noise[0] ** 2 / 3 + noise[1] ** 2 / 2)
    assert suite.p_value == pytest.approx(t_two_sided((sum(b) / 3 - sum(a) / 4) / sqrt(sum(noise)), df))
    same = decide_suite([TrialsOfCase(0.3 * 3, 3, 0.7 * 3, 3, 3 * 0.3**2, 3 * 0.7**2)] * 9, scale=2)
    assert same.method == "guarded"
    assert same.ci == pytest.approx(decide_difference([0.7 - 0.3] * 27, scale=2).ci)


def test_a_suite_whose_trials_all_agree_is_guarded_by_their_number() -> None:
    suite = decide_suite([TrialsOfCase(4, 4, 4, 4)] * 10, margin=0.1)
    assert (suite.method, suite.difference, suite.p_value) == ("guarded", 0.0, 1.0)
    assert suite.ci == decide_difference([0.0] * 40).ci
    with pytest.raises(ValueError, match="at least 2 trials"):
        decide_suite([TrialsOfCase(1, 1, 1, 2)])
    assert decide_suite([]).ci is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=20), st.floats(0, 0.5))
def test_of_a_suite_p_and_interval_agree(cases: list[tuple[int, int]], margin: float) -> None:
    suite = decide_suite([TrialsOfCase(a, 3, b, 4) for a, b in cases], margin=margin)
    assert suite.ci is not None
    assert suite.p_margin is not None
    inside = suite.ci[0] <= -margin <= suite.ci[1]
    near = min(abs(suite.ci[0] + margin), abs(suite.ci[1] + margin)) < 1e-9
    assert near or inside == (suite.p_margin > 0.05)
