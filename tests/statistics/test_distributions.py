from __future__ import annotations

from math import comb
from statistics import NormalDist

import pytest
from hypothesis import given
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
