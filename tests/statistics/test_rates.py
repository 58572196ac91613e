from __future__ import annotations

from collections import Counter
from math import nextafter
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import flake_rate, rate_with_design_effect, ratio_of_means, wilson
from evalwright.statistics.rates import rate_of_counts, score_ends
from evalwright.statistics.units import units_of

shares = st.lists(st.integers(0, 4).map(lambda x: x / 4), min_size=1, max_size=40)


def test_one_trial_without_groups_is_wilsons_interval() -> None:
    rate = rate_with_design_effect([1.0] * 20)
    assert (rate.rate, rate.effective_n, rate.ci) == (1.0, 20.0, wilson(20, 20))


def test_a_few_large_groups_count_as_few() -> None:
    values, groups = [1.0] * 30 + [0.0] * 30, [f"g{i // 3}" for i in range(60)]
    alone, together = rate_with_design_effect(values), rate_with_design_effect(values, groups)
    assert alone.ci is not None
    assert together.ci is not None
    assert together.units == 20
    assert together.ci[1] - together.ci[0] > 1.4 * (alone.ci[1] - alone.ci[0])


def test_trials_earn_their_price() -> None:
    varied = [0.6 + 0.1 * (i % 3) for i in range(100)]
    rate = rate_with_design_effect(varied)
    assert rate.effective_n > 1000
    assert rate.rate == pytest.approx(sum(varied) / 100)


def test_few_cases_pay_for_the_spread_that_they_had_to_estimate() -> None:
    """(z/t)² with Student's t of 13 degrees of freedom (Korn and Graubard 1998)."""
    shares = [i / 20 for i in range(14)]
    rate, variance = mean(shares), stdev(shares) ** 2 / 14
    price = (1.959963984540054 / 2.160368656461013) ** 2
    found = rate_with_design_effect(shares)
    assert found.effective_n == pytest.approx(rate * (1 - rate) / variance * price)


def test_the_usual_interval_is_one_like_others() -> None:
    assert wilson(3, 7) == pytest.approx(wilson(3, 7, nextafter(0.95, 1)), rel=1e-12)


def test_nothing_has_no_rate() -> None:
    assert rate_with_design_effect([])[:3] == (None, 0.0, None)


@given(shares)
def test_intervals_of_rates_are_rates(values: list[float]) -> None:
    rate = rate_with_design_effect(values)
    assert rate.ci is not None
    assert rate.rate is not None
    assert 0 <= rate.ci[0] <= rate.rate <= rate.ci[1] <= 1


def test_ratios_turn_round_with_their_sides() -> None:
    a, b = [1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 3.5, 4.5]
    there, back = ratio_of_means(a, b), ratio_of_means(b, a)
    assert there.ratio == pytest.approx(1.15)
    assert there.ci is not None
    assert back.ci is not None
    assert there.ci == pytest.approx((1 / back.ci[1], 1 / back.ci[0]))


def test_no_ratio_to_nothing() -> None:
    assert ratio_of_means([0.0, 0.0], [1.0, 1.0]).ratio is None
    assert ratio_of_means([1.0, 0.0], [1.0, 1.0]) == (2.0, None, None, None)
    with pytest.raises(ValueError, match="at least 0"):
        ratio_of_means([-1.0], [1.0])


def test_flakiness_is_the_chance_that_two_trials_disagree() -> None:
    rate = flake_rate([1, 3, 2, 0, 5], [3, 3, 3, 1, 5])
    assert (rate.rate, rate.mixed_cases) == (pytest.approx(1 / 3), 2)
    assert flake_rate([1], [1]).rate is None


@pytest.mark.parametrize(("moved", "by_spread"), [(11, False), (12, True)])
def test_from_twelve_units_that_differ_from_the_rest_their_spread_counts(moved: int, by_spread: bool) -> None:
    values = [0.5 + n / 100 for n in range(1, moved + 1)] + [0.5] * 20
    for found in (rate_with_design_effect(values), rate_of_counts(Counter(values))):
        assert (found.effective_n > 1.5 * len(values)) == by_spread
        assert by_spread or found.effective_n == len(values)
    ends = score_ends(units_of(values))
    assert ends is not None
    assert (ends[1] - ends[0] < 0.05) == by_spread
