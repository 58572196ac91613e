"""Ranks and what is computed from them: Wilcoxon's signed-rank test, rank correlations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import fsum, sqrt
from typing import NamedTuple

__all__ = ["SignedRank", "average_ranks", "kendall_tau_b", "pearson", "spearman", "wilcoxon_signed_rank"]


class SignedRank(NamedTuple):
    """Wilcoxon's signed-rank test; None without a case that differs."""

    statistic_min: float | None
    p_two_sided: float | None


def wilcoxon_signed_rank(a: Sequence[float], b: Sequence[float], zero_differences: str = "dropped") -> SignedRank:
    """Wilcoxon's signed-rank test of B - A (Wilcoxon 1945), exact: every sign assignment of the ranks is counted.

    Equal differences share their mean rank; zero differences are dropped, the only rule offered.
    Raises ValueError for another rule, or unless A and B are of one length.
    """
    if zero_differences != "dropped":
        raise ValueError(f"expected zero_differences to be dropped, found {zero_differences!r}")
    if len(a) != len(b):
        raise ValueError(f"expected as many scores of A as of B, found {len(a)} and {len(b)}")
    # Decimal scores differ in their last bits where their differences are equal.
    differences = [round(y - x, 12) for x, y in zip(a, b, strict=True)]
    differences = [d for d in differences if d]
    if not differences:
        return SignedRank(None, None)
    doubled = [round(2 * rank) for rank in average_ranks([abs(d) for d in differences])]
    positive = sum(rank for rank, d in zip(doubled, differences, strict=True) if d > 0)
    least = min(positive, sum(doubled) - positive)
    ways = [1] + [0] * sum(doubled)
    for rank in doubled:
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return SignedRank(least / 2, min(1.0, 2 * sum(ways[: least + 1]) / 2 ** len(doubled)))


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
    """Kendall's rank correlation, corrected for ties (Kendall 1945); None where a side does not vary."""
    agreeing = untied_x = untied_y = 0
    for (x1, y1), (x2, y2) in combinations(zip(x, y, strict=True), 2):
        sign_x, sign_y = (x1 > x2) - (x1 < x2), (y1 > y2) - (y1 < y2)
        agreeing += sign_x * sign_y
        untied_x += sign_x != 0
        untied_y += sign_y != 0
    return agreeing / sqrt(untied_x * untied_y) if untied_x and untied_y else None
