"""Tests and intervals of a mean difference where few units moved: exact sign flips, and two guarding pseudo-units.

The p-value of a null is at most alpha exactly when the null lies outside of the interval.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, t_quantile, t_two_sided
from evalwright.statistics.units import Units, units_of

__all__ = ["GuardedDifference", "SignFlip", "guarded_difference", "guarded_units", "sign_flip", "sign_flip_units"]

_MOST_FLIPPED = 20
"""The most units whose 2^n sums are all computed; a million of them take a second."""
_DIGITS = 12
"""Means of the same units differ in their last digits when summed in another order."""


class SignFlip(NamedTuple):
    """The exact test of a mean; `smallest_p` is the best that so few units can reach."""

    p_two_sided: float
    ci: Interval
    smallest_p: float


def sign_flip(
    differences: Sequence[float],
    groups: Sequence[Hashable] | None = None,
    null: float = 0.0,
    alpha: float = 0.05,
    scale: float = 1.0,
) -> SignFlip:
    """Every sign of every unit's total minus `null` times its size; ends of the interval by subset means.

    Hartigan 1969; Tritchler 1984. Where no interval of the level exists, it is the whole scale.
    Raises ValueError without units, above 20 of them, and for values that are not finite.
    """
    return sign_flip_units(units_of(differences, groups), null, alpha, scale)


def sign_flip_units(units: Units, null: float, alpha: float, scale: float) -> SignFlip:
    """As `sign_flip`, of units that are counted already."""
    if not 0 < units.number <= _MOST_FLIPPED:
        raise ValueError(f"expected 1 to {_MOST_FLIPPED} units, found {units.number}")
    sums = [(0.0, 0)]
    for unit in (unit for unit, times in units.parts.items() for _ in range(times)):
        sums += [(total + unit.total, size + unit.size) for total, size in sums]
    means = sorted(round(total / size, _DIGITS) for total, size in sums if size)
    signs, at = len(sums), round(null, _DIGITS)
    rank = int(signs * alpha / 2)
    ends = (max(-scale, means[rank - 1]), min(scale, means[-rank])) if rank else (-scale, scale)
    below, above = sum(mean <= at for mean in means), sum(mean >= at for mean in means)
    return SignFlip(min(1.0, 2 * (1 + min(below, above)) / signs), ends, min(1.0, 2 / signs))


class GuardedDifference(NamedTuple):
    """A mean pulled towards 0; estimate and p-value never look more certain than the number of units allows."""

    centre: float
    se: float
    df: float
    p_two_sided: float
    ci: Interval


def guarded_difference(
    differences: Sequence[float],
    groups: Sequence[Hashable] | None = None,
    null: float = 0.0,
    alpha: float = 0.05,
    scale: float = 1.0,
) -> GuardedDifference:
    """The mean with a pseudo-unit added at either end of the scale, Student's t, cut at the ends.

    Bonett and Price 2012 for 0 and 1, extended to shares and groups. `scale` is the range of the values; where it is 0
    everything is. Raises ValueError without values and for values that are not finite.
    """
    return guarded_units(units_of(differences, groups), null, alpha, scale)


def guarded_units(units: Units, null: float, alpha: float, scale: float) -> GuardedDifference:
    """As `guarded_difference`, of units that are counted already."""
    if not units.n:
        raise ValueError("expected values, found none")
    weight = units.effective + 2
    square = fsum(times * unit.total**2 / unit.size for unit, times in units.parts.items()) / units.n
    centre = units.mean * units.effective / weight
    variance = ((units.effective * square + 2 * scale**2) / weight - centre**2) / weight
    error, df = sqrt(max(0.0, variance)), units.df
    if error == 0:
        return GuardedDifference(centre, 0.0, df, float(centre == null), (centre, centre))
    half = t_quantile(1 - alpha / 2, df) * error
    ends = max(-scale, centre - half), min(scale, centre + half)
    return GuardedDifference(centre, error, df, t_two_sided((centre - null) / error, df), ends)
