from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import pass_at_k, pass_at_k_table, pass_hat_k

tasks = st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


def test_table_has_the_reference_numbers() -> None:
    table = pass_at_k_table([(8, 8), (8, 5), (8, 1), (8, 0), (6, 3)], [1, 2, 4])
    assert table["pass_at_2_per_task"] == pytest.approx([1.0, 0.8928571428571, 0.25, 0.0, 0.8])
    assert table["pass_hat_4_per_task"] == pytest.approx([1.0, 0.07142857142857, 0.0, 0.0, 0.0])
    assert table["pass_at_4"] == pytest.approx(0.7)
    assert table["pass_hat_2"] == pytest.approx(0.3114285714286)
    assert table["pass_hat_4_se_over_tasks"] == pytest.approx(0.1969149821727)
    assert table["plugin_pass_at_4_biased"] == pytest.approx(0.66630859375)


def test_table_leaves_out_tasks_with_too_few_trials() -> None:
    table = pass_at_k_table([(4, 2), (1, 1)], [2])
    assert table["pass_at_2_per_task"] == [pytest.approx(5 / 6), None]
    assert table["pass_at_2"] == pytest.approx(5 / 6)
    assert table["pass_at_2_se_over_tasks"] is None


def test_more_tries_than_trials_are_undefined() -> None:
    assert pass_at_k(2, 1, 3) == (None, None)
    assert pass_hat_k(2, 1, 3) is None


@pytest.mark.parametrize("arguments", [(2, 3, 1), (2, -1, 1), (2, 1, 0)])
def test_impossible_counts_are_refused(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="expected 0 <= c <= n and k >= 1"):
        pass_at_k(*arguments)


@given(tasks)
def test_all_of_k_is_no_likelier_than_one_try_and_that_no_likelier_than_any_of_k(task: tuple[int, int, int]) -> None:
    n, c, k = task
    any_of, all_of = pass_at_k(n, c, k)
    assert any_of is not None
    assert all_of is not None
    assert all_of <= c / n + 1e-12 <= any_of + 2e-12


@given(tasks)
def test_all_of_k_is_the_mirror_image_of_any_of_k(task: tuple[int, int, int]) -> None:
    n, c, k = task
    mirrored = pass_at_k(n, n - c, k).pass_at_k
    assert mirrored is not None
    assert pass_hat_k(n, c, k) == pytest.approx(1 - mirrored, abs=1e-12)
