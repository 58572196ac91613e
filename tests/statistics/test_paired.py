"""Reference numbers: statsmodels mcnemar, scipy ttest_rel and permutation_test."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalwright.statistics import mcnemar, paired_difference
from evalwright.statistics.paired import mcnemar_exact, newcombe_paired, paired_t

A = [0.62, 0.71, 0.55, 0.8, 0.45, 0.9, 0.33, 0.67, 0.74, 0.51]
B = [0.7, 0.73, 0.61, 0.79, 0.58, 0.94, 0.36, 0.77, 0.69, 0.6]
few = st.integers(0, 60)


def test_mcnemar_has_the_reference_numbers() -> None:
    found = mcnemar(50, 4, 14, 32)
    assert found._asdict() == {
        "p_exact": pytest.approx(0.0308837890625),
        "p_midp": pytest.approx(0.01921081542969),
        "chi2": pytest.approx(5.555555555556),
        "p_chi2": pytest.approx(0.0184221254541),
        "chi2_cc": pytest.approx(4.5),
        "p_chi2_cc": pytest.approx(0.03389485352469),
        "diff_b_minus_a": pytest.approx(0.1),
        "se_wald": pytest.approx(0.04123105625618),
        "ci_wald": pytest.approx((0.01918861469335, 0.1808113853067)),
        "ci_newcombe_paired": pytest.approx((0.0167382485201, 0.180516693196)),
        "posterior_prob_b_better": pytest.approx(0.9903945922852),
        "discordant_odds_ratio": pytest.approx(3.5),
    }


@pytest.mark.parametrize(
    ("table", "midp", "newcombe"),
    [
        ((80, 1, 2, 17), 0.625, (-0.0342919489814, 0.0555661135)),
        ((10, 0, 6, 4), 0.015625, (0.06670089185284, 0.4912059083664)),
        ((20, 7, 7, 6), 0.895263671875, (-0.1838439547851, 0.1838439547851)),
    ],
)
def test_mid_p_and_newcombe_of_other_tables(
    table: tuple[int, int, int, int], midp: float, newcombe: tuple[float, float]
) -> None:
    found = mcnemar(*table)
    assert found.p_midp == pytest.approx(midp)
    assert found.ci_newcombe_paired == pytest.approx(newcombe)


def test_no_odds_ratio_when_a_alone_never_passed() -> None:
    assert mcnemar(10, 0, 6, 4).discordant_odds_ratio is None


def test_p_is_1_without_a_pair_that_differs() -> None:
    found = mcnemar(30, 0, 0, 5)
    assert (found.p_exact, found.p_midp, found.diff_b_minus_a) == (1.0, 1.0, 0.0)
    assert (found.chi2, found.p_chi2_cc) == (None, None)


def test_an_interval_has_a_width_though_no_pair_differs() -> None:
    ends = newcombe_paired(30, 0, 0, 5)
    assert ends is not None
    assert ends[0] < 0 < ends[1]


def test_without_pairs_there_is_no_difference() -> None:
    found = mcnemar(0, 0, 0, 0)
    assert (found.diff_b_minus_a, found.se_wald, found.ci_wald, found.ci_newcombe_paired) == (None, None, None, None)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar(1, -1, 0, 0)


@given(few, few)
def test_exact_p_is_the_binomial_sum(worse: int, better: int) -> None:
    n = worse + better
    terms = 2 * sum(comb(n, i) for i in range(min(worse, better) + 1)) / 2**n
    assert mcnemar_exact(worse, better) == pytest.approx(min(1.0, terms), abs=1e-12)


@given(few, few, few, few)
def test_newcombe_contains_the_difference(both: int, a_only: int, b_only: int, neither: int) -> None:
    ends = newcombe_paired(both, a_only, b_only, neither)
    n = both + a_only + b_only + neither
    difference = (b_only - a_only) / n if n else 0.0
    assert (n == 0) if ends is None else -1 <= ends[0] <= difference + 1e-12 <= ends[1] + 2e-12 <= 1 + 2e-12


@given(few, few, few, few)
def test_newcombe_turns_round_with_the_sides(both: int, a_only: int, b_only: int, neither: int) -> None:
    one, other = newcombe_paired(both, a_only, b_only, neither), newcombe_paired(both, b_only, a_only, neither)
    assert one is None or (other is not None and one == pytest.approx((-other[1], -other[0]), abs=1e-12))


def test_paired_difference_has_the_reference_numbers() -> None:
    assert paired_difference(A, B)._asdict() == {
        "n": 10,
        "mean_diff_b_minus_a": pytest.approx(0.049),
        "se_paired": pytest.approx(0.01715614564328),
        "se_unpaired": pytest.approx(0.0729969557965),
        "correlation": pytest.approx(0.9500979315447),
        "t": pytest.approx(2.856119376627),
        "df": 9,
        "p_two_sided": pytest.approx(0.01889961396031),
        "ci_t": pytest.approx((0.01019010224705, 0.08780989775295)),
        "ci_normal": pytest.approx((0.01537457242565, 0.08262542757435)),
        "p_normal_two_sided": pytest.approx(0.004288538571064),
        "cohens_dz": pytest.approx(0.9031842499482),
        "variance_reduction": pytest.approx(0.9447630168693),
        "n_improved": 8,
        "n_regressed": 2,
        "n_tied": 0,
        "p_sign_flip_exact_two_sided": pytest.approx(0.02734375),
    }


def test_a_difference_without_spread_has_no_test() -> None:
    found = paired_difference([0.25, 0.5], [0.5, 0.75])
    assert (found.mean_diff_b_minus_a, found.se_paired) == (0.25, 0.0)
    assert (found.t, found.p_two_sided, found.ci_t, found.cohens_dz) == (None, None, None, None)


def test_sides_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="found 1 and 2"):
        paired_difference([1.0], [1.0, 2.0])


def test_nothing_compared_is_undefined() -> None:
    assert paired_t([]) == (0, None, None, None, None, None)
    assert paired_difference([], []).p_sign_flip_exact_two_sided is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12))
@example([(0.0, 8.5e-103), (8.5e-103, 0.0)])
def test_paired_difference_turns_round_with_the_sides(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    one, other = paired_difference(a, b), paired_difference(b, a)
    assert one.p_sign_flip_exact_two_sided == other.p_sign_flip_exact_two_sided
    assert (one.n_improved, one.n_regressed, one.p_two_sided) == (
        other.n_regressed,
        other.n_improved,
        other.p_two_sided,
    )
