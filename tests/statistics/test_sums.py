"""Sums that do not depend on an order."""

import copy
from fractions import Fraction
from math import inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics.sums import ExactSum, Mean

FLOATS = st.floats(-1e15, 1e15, allow_nan=False)


def summed(values):
    found = ExactSum()
    for value in values:
        found.add(value)
    return found


@given(st.lists(FLOATS, max_size=60), st.randoms(use_true_random=False), st.integers(0, 60))
def test_any_order_and_any_parts_give_the_exact_sum_rounded_once(values, random, cut):
    exact = float(sum(map(Fraction, values)))
    random.shuffle(values)
    merged = summed(values[:cut])
    merged.merge(copy.deepcopy(summed(values[cut:])))
    assert merged.total == summed(values).total == exact


def test_many_values_are_condensed_without_loss():
    values = [0.1, 1e16, -1e16, 3e-9] * 2000
    assert summed(values).total == summed(sorted(values)).total == float(sum(map(Fraction, values)))


def test_what_is_beyond_floats_is_no_crash():
    assert summed([1.0, inf] * 2000).total == inf
    assert isnan(summed([1.0, inf, -inf]).total)
    assert isnan(summed([nan] * 2000).total)
    assert summed([1e308, 1e308]).total == inf
    assert summed([10**400, 1]).total == inf
    assert summed([-(10**400), 1]).total == -inf


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=60), st.integers(0, 60))
def test_a_mean_of_finite_numbers_is_finite_and_exact(values, cut):
    first, second = Mean(), Mean()
    first.add_all(values[:cut])
    second.add_all(values[cut:])
    first.merge(second)
    assert first.mean == pytest.approx(float(sum(map(Fraction, values)) / len(values)), rel=1e-15, abs=0)


def test_sums_that_leave_the_range_of_floats_may_come_back():
    assert summed([1e308] * 3000 + [-1e308] * 3000 + [1.0]).total == 1.0
    assert summed([1.5e308] * 3000).over(3000) == 1.5e308
