"""Reference numbers: statsmodels proportion_confint, scipy binomtest and beta."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import proportion_interval, wilson, zero_failures_bound


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (17, 20, (0.6395811352592, 0.9476312541038)),
        (0, 12, (0.0, 0.2424940066552)),
        (25, 25, (0.866807749061, 1.0)),
        (84, 100, (0.7557973061073, 0.899047115112)),
        (1, 3, (0.0614919447204, 0.792340399198)),
    ],
)
def test_wilson_has_the_reference_ends(k: int, n: int, expected: tuple[float, float]) -> None:
    assert wilson(k, n) == pytest.approx(expected, abs=1e-11)


def test_wilson_is_undefined_without_observations() -> None:
    assert wilson(0, 0) is None


@given(st.integers(1, 10_000), st.floats(0, 1), st.sampled_from([0.5, 0.8, 0.95, 0.999]))
def test_wilson_contains_the_share_and_lies_within_0_and_1(n: int, share: float, confidence: float) -> None:
    ends = wilson(share * n, n, confidence)
    assert ends is not None
    assert 0 <= ends[0] <= share * n / n + 1e-12
    assert share * n / n - 1e-12 <= ends[1] <= 1


@given(st.integers(1, 1000), st.data())
def test_wilson_treats_successes_and_failures_alike(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    one, other = wilson(k, n), wilson(n - k, n)
    assert one is not None
    assert other is not None
    assert one == pytest.approx((1 - other[1], 1 - other[0]), abs=1e-12)


def test_every_interval_has_the_reference_ends() -> None:
    interval = proportion_interval(17, 20)
    assert (interval.p, interval.se_bernoulli) == pytest.approx((0.85, 0.07984359711336))
    assert interval.wilson_cc == pytest.approx((0.6113748781567, 0.9604337282974), abs=1e-10)
    assert interval.clopper_pearson == pytest.approx((0.6210731734547, 0.9679290628145), abs=1e-10)
    assert interval.jeffreys == pytest.approx((0.6514222891415, 0.9558686580248), abs=1e-10)
    assert interval.wald == pytest.approx((0.6935094252617, 1.006490574738), abs=1e-10)
    assert interval.bayes_uniform == pytest.approx((0.636576012983, 0.9455364318216), abs=1e-10)
    assert interval.posterior_mean_uniform == pytest.approx(0.8181818181818)


def test_intervals_are_pinned_where_nothing_or_everything_succeeded() -> None:
    none, every = proportion_interval(0, 12), proportion_interval(25, 25)
    assert none.jeffreys == pytest.approx((0.0, 0.1853059383125), abs=1e-10)
    assert none.clopper_pearson == pytest.approx((0.0, 0.2646484693971), abs=1e-10)
    assert every.wilson_cc == pytest.approx((0.8342269925117, 1.0), abs=1e-10)
    assert every.bayes_uniform == pytest.approx((0.8677253955022, 0.9990267121067), abs=1e-10)


def test_without_observations_only_the_prior_is_left() -> None:
    assert proportion_interval(0, 0) == (None, None, None, None, None, None, None, None, 0.5)


@pytest.mark.parametrize(("k", "n"), [(3, 2), (-1, 2), (0, -1)])
def test_impossible_counts_are_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="expected 0 <= successes <= n"):
        proportion_interval(k, n)


@given(st.integers(0, 60), st.integers(0, 60))
def test_exact_interval_contains_the_share(k: int, rest: int) -> None:
    ends = proportion_interval(k, k + rest).clopper_pearson
    assert (ends is None) if k + rest == 0 else (ends is not None and ends[0] <= k / (k + rest) <= ends[1])


def test_no_failures_in_40_bound_the_rate() -> None:
    assert zero_failures_bound(0, 40, 0.95) == pytest.approx((0.07215752450551, 0.075))


def test_rule_of_three_is_for_no_failures_only() -> None:
    bound = zero_failures_bound(1, 40)
    assert bound.rule_of_three is None
    assert bound.exact_upper == pytest.approx(0.1133, abs=5e-4)


@pytest.mark.parametrize(("failures", "n", "upper"), [(0, 0, None), (5, 5, 1.0)])
def test_bound_at_the_edges(failures: int, n: int, upper: float | None) -> None:
    assert zero_failures_bound(failures, n).exact_upper == upper
