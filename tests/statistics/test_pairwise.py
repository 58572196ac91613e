from __future__ import annotations

import pytest

from evalwright.statistics import bradley_terry, pairwise_swap

AB = ["A", "A", "B", "B", "A", "tie", "B", "A", "A", "B", "A", "B", "B", "A", "B", "A"]
BA = ["A", "B", "B", "B", "B", "tie", "B", "A", "B", "B", "A", "A", "B", "B", "B", "B"]
WINS = [[0, 12, 15, 18], [8, 0, 11, 14], [5, 9, 0, 12], [2, 6, 8, 0]]


def test_swapped_pairs_have_the_reference_numbers() -> None:
    swapped = pairwise_swap(AB, BA)
    assert swapped[:5] == (16, 0.625, 3, 6, 7)
    assert swapped[5:9] == pytest.approx((0.59375, 0.09375, 0.5078125, 0.6333333333333))
    assert swapped[9:] == (5, 1, pytest.approx(0.21875))


def test_no_pairs_are_undefined() -> None:
    swapped = pairwise_swap([], [])
    assert (swapped.consistency_rate, swapped.win_rate_b_ties_half, swapped.first_position_win_share) == (
        None,
        None,
        None,
    )
    with pytest.raises(ValueError, match="found 1 and 0"):
        pairwise_swap(["A"], [])


def test_strengths_have_the_reference_numbers() -> None:
    strengths = bradley_terry(["m1", "m2", "m3", "m4"], WINS)
    assert strengths.log_strength_centred == pytest.approx(
        [0.8528940752555, 0.1611820858942, -0.2204463077775, -0.7936298533722], abs=1e-8
    )
    assert strengths.elo_scale_centred == pytest.approx(
        [148.1628762126, 28.0001961942, -38.29544600949, -137.8676263973], abs=1e-5
    )


@pytest.mark.parametrize("wins", [[[0, 3], [0, 0]], [[0, 1, 0], [1, 0, 0], [0, 0, 0]]])
def test_who_never_lost_has_no_likeliest_strength(wins: list[list[int]]) -> None:
    assert bradley_terry([str(i) for i in range(len(wins))], wins) == (None, None)


def test_a_table_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="2 by 2"):
        bradley_terry(["a", "b"], [[0, 1]])
