"""As many pairs as possible, with and without order."""

from __future__ import annotations

from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from evalwright.evaluators.tools.pairs import pair_any_order, pair_in_order

EXPECTED = st.lists(st.sets(st.integers(0, 3), max_size=3), max_size=4)
ACTUAL = st.lists(st.integers(0, 3), max_size=5)


def accepts(expected: set[int], actual: int) -> bool:
    return actual in expected


def most(expected: list[set[int]], actual: list[int], in_order: bool) -> int:
    """The size of the largest pairing, by trying every choice."""
    for size in range(min(len(expected), len(actual)), 0, -1):
        arrangements = combinations if in_order else permutations
        for chosen in combinations(expected, size):
            if any(all(map(accepts, chosen, others)) for others in arrangements(actual, size)):
                return size
    return 0


@given(EXPECTED, ACTUAL)
def test_any_order_finds_the_most_pairs(expected: list[set[int]], actual: list[int]) -> None:
    pairs = pair_any_order(expected, actual, accepts)
    assert len(pairs) == len(set(pairs.values())) == most(expected, actual, in_order=False)
    assert all(accepts(expected[i], actual[j]) for i, j in pairs.items())


@given(EXPECTED, ACTUAL)
def test_in_order_finds_the_most_pairs(expected: list[set[int]], actual: list[int]) -> None:
    pairs = pair_in_order(expected, actual, accepts)
    assert len(pairs) == most(expected, actual, in_order=True)
    assert list(pairs.values()) == sorted(set(pairs.values()))
    assert all(accepts(expected[i], actual[j]) for i, j in pairs.items())


def test_many_equal_calls_are_paired() -> None:
    assert len(pair_any_order([{1}] * 400, [1] * 400, accepts)) == 400


def test_a_thousand_calls_may_have_to_change_their_partners_for_one_more() -> None:
    expected = [{k, k + 1} for k in range(1000)] + [{0}]
    assert len(pair_any_order(expected, range(1001), accepts)) == 1001
