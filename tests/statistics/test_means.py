from __future__ import annotations

import pytest

from evalwright.statistics import mean_interval

SCORES = [0.91, 0.42, 0.77, 0.65, 0.88, 0.3, 0.95, 0.71, 0.58, 0.83, 0.49, 0.79]


def test_mean_has_the_reference_intervals() -> None:
    interval = mean_interval(SCORES)
    assert interval.n == 12
    assert (interval.mean, interval.sd_ddof1, interval.se) == pytest.approx((0.69, 0.2060891245863, 0.05949280577846))
    assert interval.ci_normal == pytest.approx((0.573396243335, 0.806603756665), abs=1e-11)
    assert interval.ci_t == pytest.approx((0.5590572173494, 0.8209427826506), abs=1e-10)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], (0, None, None, None, None, None)),
        ([0.5], (1, 0.5, None, None, None, None)),
        ([1.0, 1.0, 1.0], (3, 1.0, 0.0, 0.0, None, None)),
    ],
)
def test_what_is_undefined_is_none(scores: list[float], expected: tuple[float | None, ...]) -> None:
    assert mean_interval(scores) == expected
