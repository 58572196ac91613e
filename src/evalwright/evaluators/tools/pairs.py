"""Pairs what was expected with what happened, giving as many as possible a partner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    partner: dict[int, int] = {}
    for i in range(len(expected)):
        free, reached_from = _nearest_free(i, candidates, owner)
        while free is not None:  # each on the way gives its partner up for the next one
            giver = reached_from[free]
            owner[free], freed = giver, partner.get(giver)
            partner[giver], free = free, freed
    return partner


def _nearest_free(
    start: int, candidates: Sequence[Sequence[int]], owner: Mapping[int, int]
) -> tuple[int | None, dict[int, int]]:
    """The actual one without an owner that is nearest to an expected one, by paths from one to a candidate and from
    there to its owner; and from which expected one each was reached."""
    reached_from: dict[int, int] = {}
    queue = [start]
    for node in queue:  # grows meanwhile
        for j in candidates[node]:
            if j not in reached_from:
                reached_from[j] = node
                if j not in owner:
                    return j, reached_from
                queue.append(owner[j])
    return None, reached_from
