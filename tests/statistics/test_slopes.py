"""A line through points: by hand, and with whole groups left out."""

from __future__ import annotations

import pytest

from evalwright.statistics import slope


@pytest.mark.parametrize("rise", [3.0, -1 / 7, 0.0])
def test_a_line_without_scatter_is_found_exactly_and_has_no_interval_without_width(rise: float) -> None:
    x = [n / 3 for n in range(20)]
    fitted = slope(x, [rise * value - 1 for value in x])
    assert (fitted.slope, fitted.se, fitted.ci) == (pytest.approx(rise), 0.0, None)


def test_the_error_is_that_of_leaving_out_one_point() -> None:
    x, y = [float(n % 7) for n in range(30)], [float(n * n % 11) for n in range(30)]
    fitted = slope(x, y)
    left = [slope(x[:i] + x[i + 1 :], y[:i] + y[i + 1 :]).slope or 0.0 for i in range(30)]
    assert fitted.slope is not None
    squares = sum((one - fitted.slope) ** 2 for one in left)
    assert fitted.se == pytest.approx((29 / 30 * squares) ** 0.5)


def test_points_of_one_group_count_once() -> None:
    x, y = [float(n % 7) for n in range(30)], [float(n * n % 11) for n in range(30)]
    alone, doubled = slope(x, y), slope(x * 2, y * 2, [*range(30), *range(30)])
    assert doubled.units == 30
    assert doubled.ci == pytest.approx(alone.ci)


def test_where_x_does_not_vary_or_few_units_are_there_is_no_line() -> None:
    assert slope([2.0] * 20, list(range(20))).slope is None
    assert slope([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).ci is None
    assert slope([], []).units == 0


def test_a_line_takes_two_degrees_of_freedom() -> None:
    """Student's t of 10 degrees of freedom for 12 points."""
    found = slope(list(range(12)), [i % 5 for i in range(12)])
    assert found.ci is not None
    assert found.se is not None
    assert (found.ci[1] - found.ci[0]) / (2 * found.se) == pytest.approx(2.2281388519649385)
