from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import calibration, quantiles, repeated_runs

LATENCIES = [812, 943, 1020, 1130, 1180, 1205, 1333, 1410, 1502, 1644, 1710, 1980, 2210, 2975, 4120, 7900]


def test_quantiles_are_those_of_numpy() -> None:
    estimates = quantiles(LATENCIES)
    assert estimates[:4] == pytest.approx((1456.0, 3547.5, 5065.0, 7333.0))
    assert estimates.median_ci_order_statistics_1based == (4, 13)
    assert estimates.median_ci == (1130.0, 2210.0)
    assert estimates.median_ci_coverage == pytest.approx(0.9787292480469)


def test_few_values_have_a_median_without_interval() -> None:
    assert quantiles([3, 1, 2])[:1] + quantiles([3, 1, 2])[4:] == (2.0, None, None, None)
    assert quantiles([]) == (None,) * 7


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_quantiles_rise_and_stay_among_the_values(values: list[float]) -> None:
    p50, p90, p95, p99, *_ = quantiles(values)
    assert min(values) <= (p50 or 0) <= (p90 or 0) <= (p95 or 0) <= (p99 or 0) <= max(values)


def test_calibration_has_the_reference_numbers() -> None:
    stated = [0.95, 0.91, 0.88, 0.82, 0.75, 0.7, 0.65, 0.62, 0.55, 0.3]
    assert calibration(stated, [1, 1, 0, 1, 1, 0, 1, 0, 1, 0], 5) == pytest.approx((0.21693, 0.203))


def test_perfect_and_missing_predictions() -> None:
    assert calibration([1.0, 0.0], [1, 0]) == (0.0, 0.0)
    assert calibration([], []) == (None, None)
    with pytest.raises(ValueError, match="found 1 for 2"):
        calibration([0.5, 0.5], [1])


RUNS = [[1, 1, 1, 1], [1, 0, 1, 1], [0] * 4, [1, 1, 0, 1], [0, 1, 0, 0], [1] * 4, [1, 1, 1, 0], [0] * 4]


def test_repeated_runs_have_the_reference_numbers() -> None:
    assert repeated_runs(RUNS)._asdict() == {
        "mean": 0.5625,
        "se_over_case_means": pytest.approx(0.147524211088),
        "within_case_variance": 0.125,
        "between_case_variance_unclipped": pytest.approx(0.1428571428571),
        "between_case_variance": pytest.approx(0.1428571428571),
        "share_of_se2_due_to_repeats": pytest.approx(0.1794871794872),
        "icc1": pytest.approx(0.5333333333333),
        "case_pass_share": [1.0, 0.75, 0.0, 0.75, 0.25, 1.0, 0.75, 0.0],
        "flaky_cases": [1, 3, 4, 6],
    }


def test_without_repeats_nothing_is_said_of_them() -> None:
    runs = repeated_runs([[1], [0]])
    assert (runs.mean, runs.within_case_variance, runs.icc1) == (0.5, None, None)
    with pytest.raises(ValueError, match="without any"):
        repeated_runs([[1], []])
