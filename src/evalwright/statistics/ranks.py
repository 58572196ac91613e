"""Ranks, and rank correlations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import fsum, sqrt

__all__ = ["average_ranks", "kendall_tau_b", "pearson", "spearman"]


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


def kendall_tau_b(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Kendall's rank correlation, corrected for ties (Kendall 1945); None where a side does not vary.

    Takes n log n steps (Knight 1966).
    """
    points = sorted(zip(x, y, strict=True))
    pairs = len(points) * (len(points) - 1) // 2
    untied_x, untied_y = pairs - _tied_pairs(x), pairs - _tied_pairs(y)
    if not (untied_x and untied_y):
        return None
    untied = untied_x + untied_y - pairs + _tied_pairs(points)
    return (untied - 2 * _falling([y for _, y in points])) / sqrt(untied_x * untied_y)


def _tied_pairs(values: Iterable[Hashable]) -> int:
    """The number of pairs of equal values."""
    return sum(n * (n - 1) // 2 for n in Counter(values).values())


def _falling(values: Sequence[float]) -> int:
    """The number of pairs whose later value is the smaller one, by a tree of partial counts (Fenwick 1994)."""
    places = {value: place for place, value in enumerate(sorted(set(values)), 1)}
    counts = [0] * (len(places) + 1)
    rank = 0
    for seen, value in enumerate(values):
        place, at_most = places[value], 0
        while place:
            at_most += counts[place]
            place &= place - 1
        rank += seen - at_most
        place = places[value]
        while place < len(counts):
            counts[place] += 1
            place += place & -place
    return rank
