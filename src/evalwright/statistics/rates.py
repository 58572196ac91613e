"""The rate of one run from the shares of its cases: repeated trials and groups are paid their true price."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from evalwright.statistics.clusters import jackknife_error
from evalwright.statistics.distributions import t_quantile, two_sided_z
from evalwright.statistics.proportions import Interval, wilson
from evalwright.statistics.units import FEW_UNITS, units_of

__all__ = ["DesignRate", "rate_with_design_effect"]


class DesignRate(NamedTuple):
    """A rate with as many independent cases as its spread is worth; None without cases."""

    rate: float | None
    effective_n: float
    ci: Interval | None
    units: int


def rate_with_design_effect(
    shares: Sequence[float], groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> DesignRate:
    """Wilson's interval with n* = p(1 - p)/se² (z/t)² for n (Korn and Graubard 1998), se by leaving out units.

    `shares` are the shares of passed trials by case. Where fewer than 12 units differ from the most common share, or
    nothing varies, n* is the effective number of units. Raises ValueError for values that are not finite.
    """
    units = units_of(shares, groups)
    number, rate = len(units.parts), min(1.0, max(0.0, units.mean))
    if not number:
        return DesignRate(None, 0.0, None, 0)
    effective = units.effective
    if units.moved() >= FEW_UNITS and (error := jackknife_error(units)) > 0:
        price = two_sided_z(confidence) / t_quantile((1 + confidence) / 2, units.df)
        effective = rate * (1 - rate) / error**2 * price**2
    return DesignRate(rate, effective, wilson(rate * effective, effective, confidence), number)
