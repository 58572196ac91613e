"""Our own numerics against scipy, which is imported by these tests only."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalwright.statistics import cluster_jackknife, mcnemar_interval, proportion_interval
from evalwright.statistics.changes import fisher_exact
from evalwright.statistics.distributions import noncentral_t_above, t_quantile, t_two_sided
from evalwright.statistics.latency import quantile_ends, quantile_needs

degrees = st.floats(1.0, 500.0)


@pytest.fixture(scope="module")
def stats() -> Any:
    """A second to import, and each worker collects this file."""
    return pytest.importorskip("scipy.stats")


@pytest.mark.slow("thousands of values")
@given(st.floats(-30, 30), degrees)
@example(1.7e-7, 298.0)
def test_tails_of_t(stats: Any, t: float, df: float) -> None:
    assert t_two_sided(t, df) == pytest.approx(2 * stats.t.sf(abs(t), df), rel=1e-8, abs=1e-300)


@given(st.floats(0.001, 0.999), degrees)
def test_quantiles_of_t(stats: Any, p: float, df: float) -> None:
    assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-8, abs=1e-8)


@given(st.floats(0.5, 5), st.integers(1, 500), st.floats(0, 8))
def test_tails_of_noncentral_t(stats: Any, t: float, df: int, shift: float) -> None:
    assert noncentral_t_above(t, df, shift) == pytest.approx(stats.nct.sf(t, df, shift), abs=1e-7)


@given(st.integers(0, 30), st.integers(1, 30), st.integers(0, 30), st.integers(1, 30))
def test_fishers_exact_test(stats: Any, x: int, n: int, y: int, m: int) -> None:
    x, y = min(x, n), min(y, m)
    expected = stats.fisher_exact([[x, n - x], [y, m - y]])[1]
    assert fisher_exact(x, n, y, m) == pytest.approx(expected, rel=1e-6)


@given(st.integers(0, 200), st.integers(0, 200))
def test_exact_p_and_interval_of_changed_pairs(stats: Any, worse: int, better: int) -> None:
    if worse + better == 0:
        return
    found, expected = mcnemar_interval(10, worse, better, 10), stats.binomtest(better, worse + better)
    assert found.p_exact == pytest.approx(expected.pvalue, rel=1e-8)
    ends = expected.proportion_ci(method="exact")
    assert found.share_ci == pytest.approx((ends.low, ends.high), abs=1e-8)


@given(st.lists(st.integers(-10, 10).map(lambda x: x / 10), min_size=3, max_size=40))
def test_groups_of_one_are_the_paired_t_test(stats: Any, differences: list[float]) -> None:
    if len(set(differences)) == 1:
        return
    estimate, expected = cluster_jackknife(differences), stats.ttest_1samp(differences, 0.0)
    assert estimate.p_two_sided == pytest.approx(expected.pvalue, rel=1e-7, abs=1e-12)
    ends = expected.confidence_interval()
    assert estimate.ci == pytest.approx((ends.low, ends.high), abs=1e-8)


@given(st.integers(0, 300), st.integers(1, 300))
def test_wilsons_interval(stats: Any, k: int, n: int) -> None:
    ends = stats.binomtest(min(k, n), n).proportion_ci(method="wilson")
    assert proportion_interval(min(k, n), n).wilson == pytest.approx((ends.low, ends.high), abs=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99])
def test_a_quantile_lies_between_order_statistics_with_the_chance_that_is_said(stats: Any, share: float) -> None:
    least = quantile_needs(share)
    assert quantile_ends(range(least - 1), share) is None
    for n in (least, least + 1, 5 * least, 1000):
        low, high = quantile_ends(range(1, n + 1), share) or (0, 0)  # values are their own ranks
        assert stats.binom.cdf(low - 1, n, share) <= 0.025 < stats.binom.cdf(low, n, share)
        assert stats.binom.sf(high - 1, n, share) <= 0.025 < stats.binom.sf(high - 2, n, share)
