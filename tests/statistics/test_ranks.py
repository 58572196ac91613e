"""Reference numbers: scipy.stats."""

from __future__ import annotations

import pytest

from evalwright.statistics.ranks import average_ranks, spearman

A = [0.62, 0.71, 0.55, 0.8, 0.45, 0.9, 0.33, 0.67, 0.74, 0.51]
B = [0.7, 0.73, 0.61, 0.79, 0.58, 0.94, 0.36, 0.77, 0.69, 0.6]
HUMAN = [1, 2, 3, 4, 5, 3, 3, 2, 1, 4, 5, 5, 2, 3, 4, 1, 2, 4, 5, 3]
JUDGE = [1, 2, 3, 5, 5, 3, 4, 2, 2, 4, 5, 4, 2, 3, 4, 1, 3, 4, 5, 2]


def test_equal_values_share_their_mean_rank() -> None:
    assert average_ranks([3, 1, 3, 2, 3]) == [4.0, 1.0, 4.0, 2.0, 4.0]


def test_rank_correlation_has_the_reference_number() -> None:
    assert spearman(HUMAN, JUDGE) == pytest.approx(0.9174887357261)


@pytest.mark.parametrize("values", [[], [1], [2, 2, 2]])
def test_correlation_is_undefined_where_nothing_varies(values: list[float]) -> None:
    assert spearman(values, values) is None
