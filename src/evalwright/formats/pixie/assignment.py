"""The one-to-one pairing of rows and columns with the greatest sum (the Hungarian algorithm, cubic in time)."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

__all__ = ["best_pairs"]


def best_pairs(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """(row, column) pairs, as many as the shorter side has, sorted by row."""
    rows, columns = len(weights), len(weights[0])
    if rows > columns:
        turned = [[weights[i][j] for i in range(rows)] for j in range(columns)]
        return sorted((i, j) for j, i in best_pairs(turned))
    by_row, by_column = [0.0] * (rows + 1), [0.0] * (columns + 1)
    owner = [0] * (columns + 1)  # the row of each column, from 1; column 0 holds the row that is being placed
    for row in range(1, rows + 1):
        owner[0] = row
        _place(weights, owner, by_row, by_column)
    return sorted((owner[j] - 1, j - 1) for j in range(1, columns + 1) if owner[j])


def _place(weights: Sequence[Sequence[float]], owner: list[int], by_row: list[float], by_column: list[float]) -> None:
    """Find the cheapest path that gives the new row a column, and move the rows along it."""
    columns = len(owner) - 1
    least, way, seen = [inf] * (columns + 1), [0] * (columns + 1), [False] * (columns + 1)
    at = 0
    while owner[at]:
        seen[at] = True
        row, step, following = owner[at], inf, 0
        for j in range(1, columns + 1):
            if seen[j]:
                continue
            cost = -weights[row - 1][j - 1] - by_row[row] - by_column[j]
            if cost < least[j]:
                least[j], way[j] = cost, at
            if least[j] < step:
                step, following = least[j], j
        for j in range(columns + 1):
            if seen[j]:
                by_row[owner[j]] += step
                by_column[j] -= step
            else:
                least[j] -= step
        at = following
    while at:
        owner[at], at = owner[way[at]], way[at]
