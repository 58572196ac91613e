"""Reference numbers: CR3 by refitting without each group, in numpy."""

from __future__ import annotations

import pytest

from evalwright.statistics import cluster_jackknife

SCORES = [0.031, 0.189, 0.552, 0.006, 0.215, 0.278, 0.056, -0.173, -0.121, 0.479, 0.109, -0.309, -0.076, -0.338]
GROUPS = [f"g{i}" for i, size in enumerate((2, 3, 4, 5)) for _ in range(size)]


def test_groups_of_unequal_size_have_the_reference_numbers() -> None:
    estimate = cluster_jackknife(SCORES, GROUPS)
    assert estimate._asdict() == {
        "mean": pytest.approx(0.06414285714286),
        "se": pytest.approx(0.06639081131343),
        "df": pytest.approx(2.62962962963),
        "effective_units": pytest.approx(3.62962962963),
        "units": 4,
        "t": pytest.approx(0.9661405829195),
        "p_two_sided": pytest.approx(0.4142034065008),
        "ci": pytest.approx((-0.1650169352649, 0.2933026495506)),
    }


def test_groups_of_one_are_the_ordinary_t_test() -> None:
    alone, together = cluster_jackknife(SCORES), cluster_jackknife(SCORES, range(len(SCORES)))
    assert alone == together
    assert alone.df == len(SCORES) - 1


def test_a_single_group_says_nothing_about_the_error() -> None:
    estimate = cluster_jackknife([1, 0, 1], ["a", "a", "a"])
    assert (estimate.units, estimate.se, estimate.ci) == (1, None, None)


def test_nothing_has_no_mean() -> None:
    assert cluster_jackknife([]).mean is None


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        cluster_jackknife([0.0, float("nan")])
    with pytest.raises(ValueError, match="found 1 for 2"):
        cluster_jackknife([1.0, 0.0], ["a"])
