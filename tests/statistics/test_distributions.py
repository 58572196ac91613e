from __future__ import annotations

from math import comb, pi, sqrt, tan
from statistics import NormalDist

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalwright.statistics import distributions as d

inside = st.floats(min_value=1e-12, max_value=1 - 1e-12)


@given(inside)
def test_normal_quantile_is_that_of_the_standard_library(p: float) -> None:
    assert d.normal_quantile(p) == pytest.approx(NormalDist().inv_cdf(p), abs=1e-12, rel=1e-12)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, float("nan")])
def test_quantiles_refuse_what_is_no_probability(p: float) -> None:
    with pytest.raises(ValueError, match="expected 0 < p < 1"):
        d.normal_quantile(p)
    with pytest.raises(ValueError, match="expected 0 < p < 1"):
        d.t_quantile(p, 3)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.01, 0.99))
def test_binomial_cdf_is_the_sum_of_its_terms(n: int, k: int, p: float) -> None:
    terms = sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(min(k, n) + 1))
    assert d.binomial_cdf(k, n, p) == pytest.approx(terms, abs=1e-12)


@pytest.mark.parametrize("n", [10_000, 1_000_000])
def test_binomial_cdf_of_many_tries_is_symmetrical(n: int) -> None:
    below = d.binomial_cdf(n // 2 - 1, n, 0.5)
    assert below + d.binomial_mass(n // 2, n, 0.5) / 2 == pytest.approx(0.5, abs=1e-8)


@given(st.floats(0.001, 0.999), st.floats(0.5, 500), st.floats(0.5, 500))
def test_beta_quantile_turns_the_cdf_round(p: float, a: float, b: float) -> None:
    assert d.beta_cdf(d.beta_quantile(p, a, b), a, b) == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize(
    ("df", "quantile"),
    [(1, 12.706204736175), (2, 4.302652729912), (9, 2.262157162854), (30, 2.042272456301), (1000, 1.962339080792)],
)
def test_student_quantiles_are_those_of_the_tables(df: int, quantile: float) -> None:
    assert d.t_quantile(0.975, df) == pytest.approx(quantile, rel=1e-9)


@given(st.floats(0.001, 0.999), st.integers(1, 5000))
def test_student_quantile_turns_the_two_sided_p_round(p: float, df: int) -> None:
    t = d.t_quantile(1 - p / 2, df)
    assert d.t_two_sided(t, df) == pytest.approx(p, rel=1e-6)


@pytest.mark.parametrize("p", [1e-3, 1e-6, 1e-9, 1e-12, 1e-30])
def test_student_quantiles_are_exact_far_out(p: float) -> None:
    """Those of one and two degrees of freedom have a formula."""
    assert d.t_quantile(p, 1) == pytest.approx(-1 / tan(pi * p), rel=1e-12)
    assert d.t_quantile(p, 2) == pytest.approx((2 * p - 1) / sqrt(2 * p * (1 - p)), rel=1e-12)
    if p > 1e-15:  # else 1 - p is 1
        assert d.t_quantile(1 - p, 1) == pytest.approx(1 / tan(pi * p), rel=1e-15 / p + 1e-12)


@given(st.floats(0.1, 6), st.integers(1, 3000))
@example(2.0, 40)
@example(2.0, 41)
def test_noncentral_t_without_a_shift_is_students_t(t: float, df: int) -> None:
    assert d.noncentral_t_above(t, df, 0.0) == pytest.approx(d.t_two_sided(t, df) / 2, abs=1e-8)


@given(st.floats(0.1, 6), st.integers(41, 3000), st.floats(0, 8))
def test_tails_of_noncentral_t_add_up(t: float, df: int, shift: float) -> None:
    """The tail beyond t and, seen from the other side, the rest."""
    both = d.noncentral_t_above(t, df, shift) + d.noncentral_t_above(-t, df, -shift)
    assert both == pytest.approx(1, abs=1e-10)
