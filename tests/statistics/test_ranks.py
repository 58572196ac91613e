"""Reference numbers: scipy.stats."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics.ranks import average_ranks, kendall_tau_b, spearman

A = [0.62, 0.71, 0.55, 0.8, 0.45, 0.9, 0.33, 0.67, 0.74, 0.51]
B = [0.7, 0.73, 0.61, 0.79, 0.58, 0.94, 0.36, 0.77, 0.69, 0.6]
HUMAN = [1, 2, 3, 4, 5, 3, 3, 2, 1, 4, 5, 5, 2, 3, 4, 1, 2, 4, 5, 3]
JUDGE = [1, 2, 3, 5, 5, 3, 4, 2, 2, 4, 5, 4, 2, 3, 4, 1, 3, 4, 5, 2]


def test_equal_values_share_their_mean_rank() -> None:
    assert average_ranks([3, 1, 3, 2, 3]) == [4.0, 1.0, 4.0, 2.0, 4.0]


def test_rank_correlations_have_the_reference_numbers() -> None:
    assert spearman(HUMAN, JUDGE) == pytest.approx(0.9174887357261)
    assert kendall_tau_b(HUMAN, JUDGE) == pytest.approx(0.8544474935117)


numbers = st.integers(0, 5) | st.floats(0, 1)


@given(st.lists(st.tuples(numbers, numbers), max_size=30))
def test_kendalls_tau_is_that_of_all_pairs(points: list[tuple[float, float]]) -> None:
    agreeing = untied_x = untied_y = 0
    for (x1, y1), (x2, y2) in combinations(points, 2):
        sign_x, sign_y = (x1 > x2) - (x1 < x2), (y1 > y2) - (y1 < y2)
        agreeing, untied_x, untied_y = agreeing + sign_x * sign_y, untied_x + abs(sign_x), untied_y + abs(sign_y)
    tau = kendall_tau_b([x for x, _ in points], [y for _, y in points])
    assert tau == (agreeing / sqrt(untied_x * untied_y) if untied_x and untied_y else None)


@pytest.mark.parametrize("values", [[], [1], [2, 2, 2]])
def test_correlation_is_undefined_where_nothing_varies(values: list[float]) -> None:
    assert spearman(values, values) is None
    assert kendall_tau_b(values, values) is None
