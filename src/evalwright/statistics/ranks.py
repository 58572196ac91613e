"""Ranks, and rank correlations."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

__all__ = ["average_ranks", "pearson", "spearman"]


def average_ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    ranks = [0.0] * len(values)
    order = sorted(range(len(values)), key=values.__getitem__)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] != values[order[start]]:
            for place in order[start:end]:
                ranks[place] = (start + 1 + end) / 2
            start = end
    return ranks


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation; None where a side does not vary."""
    n = len(x)
    if n < 2:
        return None
    mean_x, mean_y = fsum(x) / n, fsum(y) / n
    square_x, square_y = fsum((v - mean_x) ** 2 for v in x), fsum((v - mean_y) ** 2 for v in y)
    if not square_x or not square_y:
        return None
    return fsum((v - mean_x) * (w - mean_y) for v, w in zip(x, y, strict=True)) / sqrt(square_x * square_y)


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None where a side does not vary."""
    return pearson(average_ranks(x), average_ranks(y))
