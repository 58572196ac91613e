from __future__ import annotations

from math import comb

import pytest

from evalwright.statistics import (
    e_value,
    flake_false_alarm,
    gate_characteristic,
    non_inferiority,
    wilson,
)

A = [0.62, 0.71, 0.55, 0.8, 0.45, 0.9, 0.33, 0.67, 0.74, 0.51]
B = [0.7, 0.73, 0.61, 0.79, 0.58, 0.94, 0.36, 0.77, 0.69, 0.6]


def test_non_inferiority_has_the_reference_numbers() -> None:
    gate = non_inferiority(A, B, 0.02)
    assert gate[:2] == pytest.approx((0.01755084754677, 0.001504759490282))
    assert gate[3:5] == pytest.approx((0.9373898810809, 0.9905501930198))
    assert (gate.non_inferior, gate.regression_significant) == (True, False)


def test_a_clear_regression_is_inferior() -> None:
    gate = non_inferiority(B, A, 0.02)
    assert (gate.non_inferior, gate.regression_significant) == (False, True)


@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5]])
def test_a_difference_without_spread_is_not_decided(values: list[float]) -> None:
    assert non_inferiority(values, values, 0.1).non_inferior is None


def test_gate_has_the_reference_characteristic() -> None:
    characteristic = gate_characteristic(50, 0.8, [0.8, 0.85, 0.9, 0.95, 0.98])
    assert characteristic.smallest_passing_count == 46
    assert characteristic.prob_gate_passes_at_true_rate == pytest.approx(
        [0.01849601506021, 0.112105208055, 0.4311984068291, 0.8963831898559, 0.9967902579739]
    )


def test_the_smallest_passing_count_is_the_first_to_pass() -> None:
    count = gate_characteristic(30, 0.6, []).smallest_passing_count
    assert count is not None
    passing, short = wilson(count, 30), wilson(count - 1, 30)
    assert passing is not None
    assert short is not None
    assert short[0] < 0.6 <= passing[0]


def test_too_few_cases_never_pass_a_gate() -> None:
    assert gate_characteristic(3, 0.9, [1.0]) == (None, [0.0])


def test_false_alarms_have_the_reference_numbers() -> None:
    alarm = flake_false_alarm(0.95, 100, 3, 3)
    assert alarm == pytest.approx((0.9940794707797, 0.999875, 0.99275, 0.5169527949477))


def test_e_value_has_the_reference_numbers() -> None:
    assert e_value(46, 50, 0.8) == pytest.approx((0.4233912916569, 1.527131732979, 0.6548223564508))


def test_e_values_mean_at_most_one_where_the_rate_is_true() -> None:
    mean = sum(comb(20, s) * 0.7**s * 0.3 ** (20 - s) * (e_value(s, 20, 0.7).e_value or 0) for s in range(21))
    assert mean == pytest.approx(1.0)


def test_overwhelming_evidence_has_no_number() -> None:
    value = e_value(10_000, 10_000, 0.5)
    assert (value.e_value, value.anytime_p) == (None, pytest.approx(0.0))
