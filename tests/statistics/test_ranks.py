"""Reference numbers: scipy.stats."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import wilcoxon_signed_rank
from evalwright.statistics.ranks import average_ranks, kendall_tau_b, spearman

A = [0.62, 0.71, 0.55, 0.8, 0.45, 0.9, 0.33, 0.67, 0.74, 0.51]
B = [0.7, 0.73, 0.61, 0.79, 0.58, 0.94, 0.36, 0.77, 0.69, 0.6]
HUMAN = [1, 2, 3, 4, 5, 3, 3, 2, 1, 4, 5, 5, 2, 3, 4, 1, 2, 4, 5, 3]
JUDGE = [1, 2, 3, 5, 5, 3, 4, 2, 2, 4, 5, 4, 2, 3, 4, 1, 3, 4, 5, 2]


def test_signed_ranks_have_the_reference_numbers() -> None:
    assert wilcoxon_signed_rank(A, B) == pytest.approx((6.0, 0.02734375))


@given(st.lists(st.integers(-4, 4), max_size=8))
def test_signed_rank_p_is_the_share_of_sign_assignments(differences: list[int]) -> None:
    found = wilcoxon_signed_rank([0.0] * len(differences), differences)
    ranks = average_ranks([abs(d) for d in differences if d])
    sums = [
        sum(rank for rank, up in zip(ranks, signs, strict=True) if up) for signs in product((0, 1), repeat=len(ranks))
    ]
    if not ranks:
        assert found == (None, None)
    else:
        assert found.statistic_min is not None
        share = sum(total <= found.statistic_min for total in sums) / len(sums)
        assert found.p_two_sided == pytest.approx(min(1.0, 2 * share))


def test_other_rules_for_zero_differences_are_refused() -> None:
    with pytest.raises(ValueError, match="'pratt'"):
        wilcoxon_signed_rank([1.0], [2.0], "pratt")


def test_equal_values_share_their_mean_rank() -> None:
    assert average_ranks([3, 1, 3, 2, 3]) == [4.0, 1.0, 4.0, 2.0, 4.0]


def test_rank_correlations_have_the_reference_numbers() -> None:
    assert spearman(HUMAN, JUDGE) == pytest.approx(0.9174887357261)
    assert kendall_tau_b(HUMAN, JUDGE) == pytest.approx(0.8544474935117)


@pytest.mark.parametrize("values", [[], [1], [2, 2, 2]])
def test_correlation_is_undefined_where_nothing_varies(values: list[float]) -> None:
    assert spearman(values, values) is None
    assert kendall_tau_b(values, values) is None
