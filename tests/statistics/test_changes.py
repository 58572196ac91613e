from __future__ import annotations

from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import changed_cases, error_bounds
from evalwright.statistics.changes import fisher_exact, flip_chance


@given(st.integers(0, 8), st.integers(1, 8), st.integers(0, 8), st.integers(1, 8))
def test_fishers_test_is_the_sum_over_tables(x: int, n: int, y: int, m: int) -> None:
    x, y = min(x, n), min(y, m)
    tables = {k: comb(n, k) * comb(m, x + y - k) for k in range(max(0, x + y - m), min(n, x + y) + 1)}
    expected = sum(count for count in tables.values() if count <= tables[x]) / comb(n + m, x + y)
    assert fisher_exact(x, n, y, m) == pytest.approx(expected)


def test_cases_change_beyond_noise_only_with_enough_trials() -> None:
    assert changed_cases([[10, 10], [9, 10], [5, 10]], [[9, 10], [0, 10], [6, 10]]).changed == [1]
    assert changed_cases([[3, 3]] * 6, [[0, 3]] + [[3, 3]] * 5).changed == []


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_an_unchanged_case_flips_as_often_as_two_draws_differ(n: int, m: int, data: st.DataObject) -> None:
    x, y = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    rate = (x + y) / (n + m)
    chance = sum(
        rate ** (sum(one) + sum(other)) * (1 - rate) ** (n + m - sum(one) - sum(other))
        for one in product([0, 1], repeat=n)
        for other in product([0, 1], repeat=m)
        if sum(one) * m != sum(other) * n
    )
    assert flip_chance(x, n, y, m) == pytest.approx(chance, abs=1e-12)


def test_errors_are_left_out_and_bounded() -> None:
    bounds = error_bounds([[1, 1, 0]] * 50, [[1, 1, 0]] * 42 + [[0, 1, 0]] * 2 + [[0, 0, 1]] * 6)
    assert (bounds.n, bounds.errors_a, bounds.errors_b) == (44, 0, 6)
    assert bounds.difference == pytest.approx(-2 / 44)
    assert (bounds.all_failed, bounds.all_passed) == (pytest.approx(-0.16), pytest.approx(-0.04))
    assert (bounds.lowest, bounds.highest) == (bounds.all_failed, bounds.all_passed)


def test_bounds_of_nothing_are_undefined() -> None:
    assert error_bounds([], [])[:2] == (None, 0)
