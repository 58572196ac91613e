"""Costs, tokens and latencies of two runs as ratios: B costs 1.04 times what A costs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from itertools import accumulate, chain
from math import exp, fsum, isfinite, log, sqrt
from random import Random
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, t_quantile
from evalwright.statistics.latency import QuantileByUnit
from evalwright.statistics.paired import joined_error
from evalwright.statistics.units import by_group, units_of

__all__ = ["LEAST_UNITS", "QuantileRatio", "RatioOfMeans", "quantile_ratio", "ratio_of_means"]


class RatioOfMeans(NamedTuple):
    """Σ b/Σ a; the ratio is None where a sum is 0, the rest also where leaving out a unit makes one 0.

    None also where a number is beyond the range of floats.
    """

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
    try:
        return _ratio_of_sums(_totals(a, groups), _totals(b, groups), units_of(a, groups).df, confidence)
    except OverflowError:
        return RatioOfMeans(None, None, None, None)


def _ratio_of_sums(before: Sequence[float], after: Sequence[float], df: float, confidence: float) -> RatioOfMeans:
    """For the totals of units. Raises OverflowError if a number is beyond the range of floats."""
    sum_a, sum_b = fsum(before), fsum(after)
    if not sum_a or not sum_b:
        return RatioOfMeans(None, None, None, None)
    middle, number = log(sum_b / sum_a), len(before)
    rest = [(sum_a - one, sum_b - other) for one, other in zip(before, after, strict=True)]
    if number < 2 or any(left <= 0 or right <= 0 for left, right in rest):
        return RatioOfMeans(sum_b / sum_a, None, None, None)
    squares = fsum((log(right / left) - middle) ** 2 for left, right in rest)
    error = sqrt((number - 1) / number * squares)
    half = t_quantile((1 + confidence) / 2, df) * error
    return RatioOfMeans(sum_b / sum_a, error, df, (exp(middle - half), exp(middle + half)))


def _totals(values: Sequence[float], groups: Sequence[Hashable] | None) -> list[float]:
    """For each unit, in the order in which they first appear; no digit depends on the order of its cases."""
    return list(values) if groups is None else list(map(fsum, by_group(values, groups).values()))


class QuantileRatio(NamedTuple):
    """A quantile of B over the same quantile of A; None where one is 0 or there are too few units."""

    ratio: float | None
    ci: Interval | None
    widest: Interval | None = None
    """The ratios if the quantiles of both sides are at opposite ends of their own intervals."""
    jump: float = 1.0
    """The largest ratio of neighbouring values within these: where it is large, `ci` holds only if `widest` does."""
    worth: int = 0
    """As how many independent values those of a side count, at least."""


LEAST_UNITS = 20
"""Fewer have too few different draws."""
_DRAWS = 2_000
_MOST_DRAWN = 10_000
"""Values of both sides from which units are drawn: that takes some seconds."""


def quantile_ratio(
    a: Sequence[Sequence[float]],
    b: Sequence[Sequence[float]],
    level: float,
    groups: Sequence[Hashable] | None,
    confidence: float,
) -> QuantileRatio:
    """The ratio of the order statistics at `level` of all values of the cases; interval by drawing whole units again.

    The percentile bootstrap (Efron 1979) with a fixed seed, widened to hold the interval of each side alone between
    order statistics (Hahn and Meeker 1991), which is valid whatever the distribution: if 5.5 % of answers are ten times
    slower, draws take a sample with 4 % of them for certain. With very many values, for which draws take too long, the
    intervals of both sides are joined by recovering variances instead (Zou and Donner 2008). Quantiles are those of the
    empirical distribution. There is no interval with fewer than 20 units, or values too few for a side's own.
    Raises ValueError unless A and B are of one length.
    """
    many = sum(map(len, chain(a, b))) > _MOST_DRAWN
    places = _numbered(a, b, groups, by_value=not many)
    number = max(places, default=-1) + 1
    sides = []
    for side in (a, b):
        pairs = sorted((value, place) for values, place in zip(side, places, strict=True) for value in values)
        sides.append(([value for value, _ in pairs], [place for _, place in pairs]))
    ratio = _ratio(sides, level, [1] * number)
    own = [QuantileByUnit.of(*side, level, 1 - confidence) for side in sides]
    worth = min(side.worth for side in own)
    if ratio is None or number < LEAST_UNITS or own[0].ends is None or own[1].ends is None:
        return QuantileRatio(ratio, None, worth=worth)
    if not own[0].ends[0]:
        return QuantileRatio(None, None, worth=worth)
    (low_a, high_a), (low_b, high_b) = own[0].ends, own[1].ends
    ends = [
        *(_recovered(ratio, own, sides) if many else _drawn(sides, level, number, confidence)),
        *(ratio * end / own[1].quantile for end in own[1].ends if own[1].quantile),
        *(ratio * own[0].quantile / end for end in own[0].ends),
    ]
    jump = max(own[0].jump, own[1].jump)
    return QuantileRatio(ratio, (min(ends), max(ends)), (low_b / high_a, high_b / low_a), jump, worth)


def _numbered(
    a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], groups: Sequence[Hashable] | None, *, by_value: bool
) -> list[int]:
    """The number of each case's unit, `by_value` where units are drawn by number: the cases of a run are in the order
    in which they ended, and an interval must not depend on that."""
    members: dict[Hashable, list[int]] = {}
    for case in range(len(a)):
        members.setdefault(case if groups is None else groups[case], []).append(case)

    def values(cases: Sequence[int]) -> list[list[float]]:
        return [sorted(chain.from_iterable(side[case] for case in cases)) for side in (a, b)]

    units = sorted(members.values(), key=values) if by_value else members.values()
    numbers = {case: number for number, cases in enumerate(units) for case in cases}
    return [numbers[case] for case in range(len(a))]


_Side = tuple[list[float], list[int]]
"""Sorted values, and the number of the unit of each."""


def _recovered(ratio: float, own: Sequence[QuantileByUnit], sides: Sequence[_Side]) -> Interval | tuple[()]:
    """The interval of the ratio by those of both quantiles and their correlation; nothing where one ends at 0."""
    (a, b), (ends_a, ends_b) = [side.quantile for side in own], [side.ends for side in own]
    if ends_a is None or ends_b is None or ends_b[0] <= 0:
        return ()
    rho = _correlation([(one.quantile, side) for one, side in zip(own, sides, strict=True)])
    below = joined_error(log(b / ends_b[0]), log(ends_a[1] / a), rho)
    above = joined_error(log(ends_b[1] / b), log(a / ends_a[0]), rho)
    return ratio * exp(-below), ratio * exp(above)


def _correlation(sides: Sequence[tuple[float, _Side]]) -> float:
    """Of how many values of a unit are beyond the quantile on either side, relative to its number of values."""
    scores: list[dict[int, float]] = []
    for quantile, (values, places) in sides:
        share = (len(values) - bisect_right(values, quantile)) / len(values)
        ratios: dict[int, float] = {}
        for value, place in zip(values, places, strict=True):
            ratios[place] = ratios.get(place, 0.0) + (value > quantile) - share
        scores.append(ratios)
    one, other = scores
    spread = fsum(x * x for x in one.values()) * fsum(y * y for y in other.values())
    return fsum(x * other.get(place, 0.0) for place, x in one.items()) / sqrt(spread) if spread else 0.0


def _drawn(sides: Sequence[_Side], level: float, units: int, confidence: float) -> Sequence[float]:
    """The ends of the percentile interval; none if no draw has a ratio."""
    rng = Random(0)
    drawn = []
    for _ in range(_DRAWS):
        weights = [0] * units
        for place in rng.choices(range(units), k=units):
            weights[place] += 1
        if (ratio := _ratio(sides, level, weights)) is not None:
            drawn.append(ratio)
    drawn.sort()
    tail = int((1 - confidence) / 2 * len(drawn))
    return (drawn[tail], drawn[-1 - tail]) if drawn else ()


def _ratio(sides: Sequence[_Side], level: float, weights: Sequence[int]) -> float | None:
    quantiles = []
    for values, places in sides:
        counts = list(accumulate(map(weights.__getitem__, places)))
        if not counts or not counts[-1]:
            return None
        quantiles.append(values[bisect_left(counts, level * counts[-1])])
    ratio = quantiles[1] / quantiles[0] if quantiles[0] > 0 else None
    return ratio if ratio is not None and isfinite(ratio) else None
