"""Ratios of quantiles with their intervals."""

from __future__ import annotations

from math import exp, log, sqrt
from random import Random

import pytest

from evalwright.statistics.latency import quantile_ends
from evalwright.statistics.ratios import QuantileRatio, quantile_ratio, ratio_of_means


def ends_of_ratio(n: int, shared: float) -> tuple[QuantileRatio, float]:
    """The ratio of the 95th percentiles of lognormal times, of which cases share a part, and the width of its interval
    in units of that of a single quantile."""
    rng = Random(7)
    a, b = [], []
    for _ in range(n):
        case = shared * rng.gauss(0, 1)
        rest = sqrt(1 - shared**2)
        a.append([exp(case + rest * rng.gauss(0, 1))])
        b.append([exp(case + rest * rng.gauss(0, 1))])
    ratio = quantile_ratio(a, b, 0.95, None, 0.95)
    assert ratio.ci is not None
    own = quantile_ends([value for (value,) in b], 0.95)
    assert own is not None
    return ratio, log(ratio.ci[1] / ratio.ci[0]) / log(own[1] / own[0])


def test_the_ratio_of_quantiles_of_many_values_is_as_certain_as_by_draws() -> None:
    """Independent sides: by the root of 2 less than one alone; the more they have in common, the less that matters."""
    (drawn, by_draws), (found, alone) = ends_of_ratio(500, 0.0), ends_of_ratio(6_000, 0.0)
    for one in (drawn, found):
        assert one.ci is not None
        assert one.ci[0] < 1 < one.ci[1]
    assert (by_draws, alone) == (pytest.approx(sqrt(2), abs=0.25), pytest.approx(sqrt(2), abs=0.1))
    assert 1 <= ends_of_ratio(6_000, 0.95)[1] < 1.25


def test_half_of_all_draws_lie_within_an_interval_of_one_half() -> None:
    """Of two independent sides, the ratio varies more than either quantile: its interval is not just that of one."""
    rng = Random(3)
    a, b = ([[exp(rng.gauss(0, 1))] for _ in range(60)] for _ in range(2))
    ratio = quantile_ratio(a, b, 0.5, None, 0.5)
    assert ratio.ci is not None
    own = [quantile_ends([value for (value,) in side], 0.5, 0.5) for side in (a, b)]
    assert log(ratio.ci[1] / ratio.ci[0]) > 1.1 * max(log(ends[1] / ends[0]) for ends in own if ends is not None)


@pytest.mark.parametrize("grouped", [False, True])
def test_no_digit_of_a_ratio_depends_on_the_order_in_which_cases_ended(grouped: bool) -> None:
    rng = Random(3)
    a, b = ([[exp(rng.gauss(0, 1)) for _ in range(3)] for _ in range(120)] for _ in range(2))
    groups = [i // 3 for i in range(120)]
    order = rng.sample(range(120), 120)
    found = []
    for places in (range(120), order):
        one, other = [a[i] for i in places], [b[i] for i in places]
        units = [groups[i] for i in places] if grouped else None
        means = ratio_of_means([sum(values) for values in one], [sum(values) for values in other], units)
        found.append((quantile_ratio(one, other, 0.5, units, 0.95), means))
    assert found[0] == found[1]
    assert found[0][0].ci is not None
