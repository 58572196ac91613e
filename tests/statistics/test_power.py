"""Reference numbers: Miller 2024; statsmodels TTestPower and NormalIndPower."""

from __future__ import annotations

import pytest

from evalwright.statistics import (
    power_mcnemar_exact,
    power_paired_difference,
    power_paired_t,
    power_proportions,
    power_trials,
)
from evalwright.statistics.changes import flip_chance_at
from evalwright.statistics.power import detectable_difference, power_of_cases


def test_cases_for_a_paired_difference() -> None:
    difference = power_paired_difference(0.05, 0.8, 1 / 9, 1 / 6, 1 / 6, 1, 1, 0.03, 198)
    assert difference == pytest.approx((3875.989992271, 3876, 0.132733327874))


def test_spread_of_differences_stands_in_for_its_parts() -> None:
    whole = power_paired_difference(sd_diff=0.5, delta=0.1)
    assert whole.n_required_exact == pytest.approx(power_paired_difference(omega2=0.25, delta=0.1).n_required_exact)
    assert whole.mde_at_n is None


def test_more_trials_need_fewer_cases() -> None:
    one, four = (power_paired_difference(omega2=0.1, sigma2_a=0.2, k_a=k, delta=0.1) for k in (1, 4))
    assert (one.n_required_ceil or 0) > (four.n_required_ceil or 0)


def test_power_without_a_spread_is_refused() -> None:
    with pytest.raises(ValueError, match="found neither"):
        power_paired_difference(delta=0.1)
    with pytest.raises(ValueError, match=r"found 0\.0 and 1\.0"):
        power_paired_t(0.0, 1.0)


def test_pairs_for_the_t_test() -> None:
    power = power_paired_t(0.03, 0.45)
    assert power == pytest.approx((1767.915305236, 1768, 1765.997940229), rel=1e-6)


def test_few_pairs_need_more_than_the_normal_approximation() -> None:
    power = power_paired_t(1.0, 1.0)
    assert power.n_required_exact == pytest.approx(9.93785, rel=1e-4)


def test_cases_for_two_shares() -> None:
    proportions = power_proportions(0.78, 0.84, 0.14)
    assert proportions == pytest.approx((669.8990711351, 667.2937621581, 0.1533768346589, 302.8655954799), rel=1e-5)


def test_equal_shares_and_impossible_pairs_have_no_number() -> None:
    assert power_proportions(0.5, 0.5, 0.1)[:2] == (None, None)
    assert power_proportions(0.5, 0.8, 0.1).n_pairs_mcnemar is None


def test_power_of_trials_has_the_reference_numbers() -> None:
    trials = power_trials(100, 0.02, 0.15, 0.15, 5, 5, 0.05)
    assert trials == pytest.approx((0.2828427124746, 0.417088047355, 254, 0.0800198742125), abs=1e-6)
    assert power_trials(300, 0.01, 0.12, 0.1, 3, 3, 0.02, 0.02).power == pytest.approx(0.667246108779, abs=1e-6)


def test_no_number_of_cases_shows_that_a_loss_is_none() -> None:
    trials = power_trials(100, 0.02, 0.15, 0.15, 1, 1, -0.03, 0.02)
    assert trials.n_required is None
    assert power_trials(10, 0.0, 0.0, 0.0, 1, 1, 0.1).power == 1.0


def test_exact_power_of_mcnemar_has_the_reference_numbers() -> None:
    assert power_mcnemar_exact(100, 0.2, 0.1) == pytest.approx((0.5444454279352, 154.5985695602))
    assert power_mcnemar_exact(40, 0.05, 0.05).power == pytest.approx(0.0138769492133)
    assert power_mcnemar_exact(20_000, 0.2, 0.01).power == pytest.approx(0.8854, abs=0.005)


def test_a_difference_beyond_the_changed_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match="p_discordant"):
        power_mcnemar_exact(100, 0.1, 0.2)


@pytest.mark.parametrize(
    ("n", "trials", "rate", "delta", "margin", "simulated"),
    [
        (20, 3, 0.95, 0.0, 0.05, 0.001),
        (60, 3, 0.98, 0.0, 0.02, 0.012),
        (50, 3, 0.95, 0.0, 0.03, 0.123),
        (30, 5, 0.9, 0.0, 0.05, 0.275),
        (100, 5, 0.95, 0.02, 0.0, 0.374),
        (10, 1, 0.7, 0.25, 0.0, 0.03),
        (50, 1, 0.9, 0.0, 0.1, 0.348),
    ],
)
def test_power_of_cases_is_that_of_simulated_decisions(
    n: int, trials: int, rate: float, delta: float, margin: float, simulated: float
) -> None:
    """Of 1,500 to 2,000 pairs of runs, decided as `decide_difference` does."""
    variance = (rate * (1 - rate) + (rate + delta) * (1 - rate - delta)) / trials
    power = power_of_cases(n, variance, delta, margin, flip_chance_at(rate, trials, trials), single=trials == 1)
    assert power == pytest.approx(simulated, abs=0.03)


def test_a_difference_is_not_detectable_by_fewer_cases_than_a_test_needs() -> None:
    """Of 30 single trials at 97 %, McNemar's test needs 6 that all change in one way: 20 points at least."""
    difference = detectable_difference(30, 0.0, 0.97 * 0.03, 1, 0.0)
    assert difference is not None
    assert power_mcnemar_exact(30, difference, difference).power == pytest.approx(0.8, abs=0.001)
    assert detectable_difference(4, 0.0, 0.1, 1, 0.0) is None


def test_detectable_differences_of_many_changing_cases_are_those_of_students_t() -> None:
    expected = power_trials(188, 0.0, 0.2, 0.2, 3, 3, 0.1).detectable_difference
    assert detectable_difference(188, 0.0, 0.2, 3, 0.6) == pytest.approx(expected)
