"""How one measure changes with another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, t_quantile
from evalwright.statistics.units import require_finite

__all__ = ["Slope", "slope"]

_LEAST = 10
"""With fewer units than this, a line fits anything."""
_ROUNDING = 1e-9
"""Of a slope: an error below this share of it is that of computing with floats."""


class Slope(NamedTuple):
    """The change of y for one more of x; None where x does not vary or there are too few units. Points that are all on
    one line have no interval."""

    slope: float | None
    se: float | None
    ci: Interval | None
    units: int


def slope(
    x: Sequence[float], y: Sequence[float], groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Slope:
    """The least-squares line, its error by leaving out one unit at a time (CR3; Cameron and Miller 2015), df units - 2.

    Raises ValueError unless there is a y for each x, and all are finite.
    """
    require_finite(chain(x, y))
    members: dict[Hashable, list[tuple[float, float]]] = {}
    for place, pair in enumerate(zip(x, y, strict=True)):
        members.setdefault(place if groups is None else groups[place], []).append(pair)
    parts = [_sums(pairs) for pairs in members.values()]
    whole, number = _prefix_sums(parts), len(parts)
    middle = _line(whole)
    if middle is None or number < _LEAST:
        return Slope(None, None, None, number)
    left = [_line([a - b for a, b in zip(whole, part, strict=True)]) for part in parts]
    slopes = [value for value in left if value is not None]
    if len(slopes) < number:  # one unit alone makes x vary
        return Slope(middle, None, None, number)
    error = sqrt((number - 1) / number * fsum((value - middle) ** 2 for value in slopes))
    if error <= _ROUNDING * abs(middle):  # all on one line: an interval without width would mislead
        return Slope(middle, 0.0, None, number)
    half = t_quantile((1 + confidence) / 2, number - 2) * error
    return Slope(middle, error, (middle - half, middle + half), number)


def _sums(pairs: Sequence[tuple[float, float]]) -> list[float]:
    return [
        float(len(pairs)),
        fsum(x for x, _ in pairs),
        fsum(y for _, y in pairs),
        fsum(x * x for x, _ in pairs),
        fsum(x * y for x, y in pairs),
    ]


def _prefix_sums(parts: Sequence[Sequence[float]]) -> list[float]:
    return [fsum(values) for values in zip(*parts, strict=True)]


def _line(sums: Sequence[float]) -> float | None:
    n, x, y, xx, xy = sums or (0.0, 0.0, 0.0, 0.0, 0.0)
    spread = n * xx - x * x
    return (n * xy - x * y) / spread if spread > 1e-9 * max(1.0, n * xx) else None
