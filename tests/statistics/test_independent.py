"""Reference numbers: statsmodels confint_proportions_2indep, scipy fisher_exact."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import two_proportions

shares = st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_two_proportions_have_the_reference_numbers() -> None:
    found = two_proportions((41, 60), (52, 60))
    assert found.diff_b_minus_a == pytest.approx(0.1833333333333)
    assert found.ci_newcombe == pytest.approx((0.03344183250177, 0.3244497555944), abs=1e-9)
    assert (found.z_pooled, found.p_z_pooled) == pytest.approx((2.404694731208, 0.01618598018597))
    assert found.p_fisher == pytest.approx(0.0276437069854)
    assert found.prob_b_better_uniform_priors == pytest.approx(0.9915515902236)


@given(shares, shares)
def test_score_interval_ends_where_the_score_test_begins_to_refuse(a: tuple[int, int], b: tuple[int, int]) -> None:
    ends = two_proportions(a, b).ci_miettinen_nurminen_score
    assert ends is not None
    for end in ends:
        if -0.999 < end < 0.999:
            assert abs(_score(a, b, end)) == pytest.approx(1.959963984540, rel=1e-4)


def _score(a: tuple[int, int], b: tuple[int, int], gap: float) -> float:
    """The statistic with its restricted estimate found where the slope of the likelihood is zero."""
    low, high = max(0.0, -gap), min(1.0, 1.0 - gap)

    def slope(p: float) -> float:
        terms = ((a[0], p), (b[0], p + gap), (-(a[1] - a[0]), 1 - p), (-(b[1] - b[0]), 1 - p - gap))
        return sum(count / max(share, 1e-15) for count, share in terms if count)

    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    p, q, n = low, low + gap, a[1] + b[1]
    variance = (p * (1 - p) / a[1] + q * (1 - q) / b[1]) * n / (n - 1)
    return (b[0] / b[1] - a[0] / a[1] - gap) / sqrt(variance)


@given(shares, shares)
def test_sides_turn_round(a: tuple[int, int], b: tuple[int, int]) -> None:
    one, other = two_proportions(a, b), two_proportions(b, a)
    assert one.p_fisher == pytest.approx(other.p_fisher)
    assert one.prob_b_better_uniform_priors == pytest.approx(1 - other.prob_b_better_uniform_priors, abs=1e-9)


def test_an_empty_side_leaves_only_what_is_defined() -> None:
    found = two_proportions((0, 0), (3, 4))
    assert (found.diff_b_minus_a, found.ci_newcombe, found.z_pooled) == (None, None, None)
    assert found.p_fisher == 1.0


def test_z_is_undefined_when_everything_passed() -> None:
    found = two_proportions((5, 5), (7, 7))
    assert (found.z_pooled, found.p_z_pooled) == (None, None)


def test_impossible_shares_are_refused() -> None:
    with pytest.raises(ValueError, match="found 3 of 2"):
        two_proportions((3, 2), (1, 2))
