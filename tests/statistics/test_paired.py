"""Reference numbers: statsmodels mcnemar."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import mcnemar, mcnemar_interval
from evalwright.statistics.paired import mcnemar_exact

few = st.integers(0, 60)


def test_mcnemar_has_the_reference_numbers() -> None:
    result = mcnemar(50, 4, 14, 32)
    assert result._asdict() == {
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
        ((2, 1, 1, 1), 0.75, (-0.464868350809, 0.464868350809)),  # too few pairs for a correlation
    ],
)
def test_mid_p_and_newcombe_of_other_tables(
    table: tuple[int, int, int, int], midp: float, newcombe: tuple[float, float]
) -> None:
    result = mcnemar(*table)
    assert result.p_midp == pytest.approx(midp)
    assert result.ci_newcombe_paired == pytest.approx(newcombe)


def test_no_odds_ratio_when_a_alone_never_passed() -> None:
    assert mcnemar(10, 0, 6, 4).discordant_odds_ratio is None


def test_p_is_1_without_a_pair_that_differs() -> None:
    result = mcnemar(30, 0, 0, 5)
    assert (result.p_exact, result.p_midp, result.diff_b_minus_a) == (1.0, 1.0, 0.0)
    assert (result.chi2, result.p_chi2_cc) == (None, None)


@given(few, few, few, st.sampled_from([0.1, 0.05, 0.01, 0.025]))
def test_interval_and_exact_test_never_contradict_each_other(worse: int, better: int, same: int, alpha: float) -> None:
    if worse + better + same == 0:
        return
    interval = mcnemar_interval(same, worse, better, 0, alpha)
    assert interval.ci is not None
    low, high = interval.ci
    assert low < high
    assert (interval.p_exact <= alpha) == (not low <= 0 <= high)
    assert interval.share_ci is None or (interval.p_exact <= alpha) == (
        not interval.share_ci[0] <= 0.5 <= interval.share_ci[1]
    )


def test_an_interval_has_a_width_though_no_pair_differs() -> None:
    assert mcnemar_interval(20, 0, 0, 5).ci == pytest.approx((-0.108103456934, 0.108103456934))


def test_the_interval_holds_0_where_the_exact_test_sees_nothing() -> None:
    interval = mcnemar_interval(45, 0, 5, 0)
    assert (interval.p_exact, interval.difference) == (pytest.approx(0.0625), pytest.approx(0.1))
    assert interval.ci == pytest.approx((-0.002519329182561, 0.1948270214903))


def test_the_interval_ends_beside_0_where_it_would_hold_what_the_exact_test_rules_out() -> None:
    better, worse = mcnemar_interval(200, 0, 8, 0, 0.01), mcnemar_interval(200, 8, 0, 0, 0.01)
    assert better.p_exact == worse.p_exact == pytest.approx(2 / 2**8)
    assert better.ci == pytest.approx((0.0, 0.07664289010955), abs=1e-8)
    assert worse.ci == pytest.approx((-0.07664289010955, 0.0), abs=1e-8)


def test_without_pairs_there_is_no_difference() -> None:
    result = mcnemar(0, 0, 0, 0)
    assert (result.diff_b_minus_a, result.se_wald, result.ci_wald, result.ci_newcombe_paired) == (
        None,
        None,
        None,
        None,
    )


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar(1, -1, 0, 0)


@given(few, few)
def test_exact_p_is_the_binomial_sum(worse: int, better: int) -> None:
    n = worse + better
    terms = 2 * sum(comb(n, i) for i in range(min(worse, better) + 1)) / 2**n
    assert mcnemar_exact(worse, better) == pytest.approx(min(1.0, terms), abs=1e-12)
