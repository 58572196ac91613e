"""Pairs what was expected with what happened, giving as many as possible a partner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["pair_any_order", "pair_in_order"]

E = TypeVar("E")
A = TypeVar("A")


def pair_in_order(expected: Sequence[E], actual: Sequence[A], same: Callable[[E, A], bool]) -> dict[int, int]:
    """Positions in `expected` to positions in `actual`: a longest common subsequence.

    Taking the first partner each time would not do: one surplus call could hide all later ones.
    """
    equal = [[same(one, other) for other in actual] for one in expected]
    longest = [[0] * (len(actual) + 1) for _ in range(len(expected) + 1)]
    for i in reversed(range(len(expected))):
        row, below = longest[i], longest[i + 1]
        for j in reversed(range(len(actual))):
            row[j] = below[j + 1] + 1 if equal[i][j] else max(below[j], row[j + 1])
    pairs: dict[int, int] = {}
    i = j = 0
    while i < len(expected) and j < len(actual):
        if equal[i][j]:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def pair_any_order(expected: Sequence[E], actual: Sequence[A], same: Callable[[E, A], bool]) -> dict[int, int]:
    """Positions in `expected` to positions in `actual`: a maximum matching, by augmenting paths.

    Taking the first partner each time would not do: it could be the only partner of a stricter expectation.
    """
    candidates = [[j for j, other in enumerate(actual) if same(one, other)] for one in expected]
    owner: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        for j in candidates[i]:
            if j not in owner:
                owner[j] = i
                return True
        for j in candidates[i]:
            if j not in tried:
                tried.add(j)
                if place(owner[j], tried):
                    owner[j] = i
                    return True
        return False

    for i in range(len(expected)):
        place(i, set())
    return {i: j for j, i in owner.items()}
