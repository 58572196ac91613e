from __future__ import annotations

import pytest

from evalwright.statistics import mean_interval, mean_with_errors, stratified_mean

SCORES = [0.91, 0.42, 0.77, 0.65, 0.88, 0.3, 0.95, 0.71, 0.58, 0.83, 0.49, 0.79]


def test_mean_has_the_reference_intervals() -> None:
    found = mean_interval(SCORES)
    assert found.n == 12
    assert (found.mean, found.sd_ddof1, found.se) == pytest.approx((0.69, 0.2060891245863, 0.05949280577846))
    assert found.ci_normal == pytest.approx((0.573396243335, 0.806603756665), abs=1e-11)
    assert found.ci_t == pytest.approx((0.5590572173494, 0.8209427826506), abs=1e-10)


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


def test_errored_cases_are_left_out_or_count_as_failed() -> None:
    assert mean_with_errors([1, 0, None, 1], ["exclude", "count_as_fail"]) == {
        "exclude_mean": pytest.approx(2 / 3),
        "exclude_n": 3,
        "count_as_fail_mean": 0.5,
        "count_as_fail_n": 4,
    }


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="'ignore'"):
        mean_with_errors([1.0], ["ignore"])


def test_strata_are_weighted() -> None:
    found = stratified_mean(
        [
            {"name": "easy", "weight": 0.6, "scores": [1, 1, 1, 0, 1, 1]},
            {"name": "hard", "weight": 0.3, "scores": [0, 1, 0, 0]},
            {"name": "adversarial", "weight": 0.1, "scores": [0, 0, 1]},
        ]
    )
    assert found == pytest.approx((0.6083333333333, 0.1293681224688, 0.4722222222222, 0.5384615384615))


def test_an_empty_stratum_leaves_only_the_pooled_mean() -> None:
    found = stratified_mean([{"weight": 1, "scores": [1, 0]}, {"weight": 1, "scores": []}])
    assert found == (None, None, None, 0.5)
