"""Costs, tokens and latencies of two runs as ratios: B costs 1.04 times what A costs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import exp, fsum, log, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import t_quantile
from evalwright.statistics.proportions import Interval
from evalwright.statistics.units import units_of

__all__ = ["RatioOfMeans", "ratio_of_means"]


class RatioOfMeans(NamedTuple):
    """Σ b/Σ a; the ratio is None where a sum is 0, the rest also where leaving out a unit makes one 0."""

    ratio: float | None
    se_log: float | None
    df: float | None
    ci: Interval | None


def ratio_of_means(
    a: Sequence[float], b: Sequence[float], groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> RatioOfMeans:
    """The ratio of the means of the same cases, B/A; its logarithm has the error of leaving out one unit at a time.

    Raises ValueError unless A and B are of one length and their values finite and not negative.
    """
    if len(a) != len(b):
        raise ValueError(f"expected as many values of A as of B, found {len(a)} and {len(b)}")
    if any(value < 0 for value in (*a, *b)):
        raise ValueError("expected values of at least 0")
    before, after = units_of(a, groups), units_of(b, groups)
    sum_a, sum_b = fsum(a), fsum(b)
    if not sum_a or not sum_b:
        return RatioOfMeans(None, None, None, None)
    middle, number = log(sum_b / sum_a), len(before.parts)
    rest = [(sum_a - one.total, sum_b - other.total) for one, other in zip(before.parts, after.parts, strict=True)]
    if number < 2 or any(left <= 0 or right <= 0 for left, right in rest):
        return RatioOfMeans(sum_b / sum_a, None, None, None)
    squares = fsum((log(right / left) - middle) ** 2 for left, right in rest)
    error, df = sqrt((number - 1) / number * squares), before.df
    half = t_quantile((1 + confidence) / 2, df) * error
    return RatioOfMeans(sum_b / sum_a, error, df, (exp(middle - half), exp(middle + half)))
