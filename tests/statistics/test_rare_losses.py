"""The chance that a loss which falls wholly on a few units is taken for none."""

from __future__ import annotations

from random import Random

import pytest

from evalwright.statistics.differences import decide_difference
from evalwright.statistics.distributions import binomial_mass
from evalwright.statistics.rare_losses import rare_loss_risk
from evalwright.statistics.units import units_of


@pytest.mark.parametrize("cases", [50, 150, 200, 300, 600])
def test_without_noise_it_is_the_chance_that_the_guarded_interval_ships(cases: int) -> None:
    ships = [
        binomial_mass(lost, cases, 0.02)
        for lost in range(cases + 1)
        if decide_difference([-1.0] * lost + [0.0] * (cases - lost), margin=0.02).verdict == "ship" and lost < 12
    ]
    assert rare_loss_risk(units_of([0.0] * cases), -0.02, 0.02, 0.05, guarded=True) == pytest.approx(sum(ships))


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_without_noise_it_is_the_chance_of_so_few_losses(seen: int) -> None:
    values = [-1.0] * seen + [0.0] * (300 - seen)
    measured = decide_difference(values, margin=0.02)
    assert (measured.method, measured.ci is not None) == ("guarded", True)
    at_most = sum(binomial_mass(lost, 300, 0.02) for lost in range(seen + 1))
    risk = rare_loss_risk(units_of(values), measured.ci[0], 0.02, 0.05, guarded=True)  # type: ignore[index]
    assert risk == pytest.approx(at_most)


def test_with_noise_it_is_about_what_simulated_systems_show() -> None:
    random, runs, ships = Random(1), 400, 0
    for _ in range(runs):
        values = [-1.0 if random.random() < 0.02 else random.choice((0.2, -0.2, *[0.0] * 8)) for _ in range(200)]
        ships += decide_difference(values, margin=0.02).verdict == "ship"
    risk = rare_loss_risk(units_of([0.2, -0.2, *[0.0] * 8] * 20), -0.02, 0.02, 0.05)
    assert risk == pytest.approx(0.06, abs=0.01)
    assert ships / runs == pytest.approx(risk, abs=0.03)


def test_large_noise_leaves_half_of_alpha() -> None:
    assert rare_loss_risk(units_of([1.0, -1.0] * 5000), -0.02, 0.02, 0.05) == pytest.approx(0.025, abs=0.001)


def test_losses_are_not_taken_for_noise() -> None:
    steady, lossy = units_of([0.0] * 300), units_of([0.0] * 297 + [-1.0] * 3)
    assert rare_loss_risk(lossy, -0.02, 0.02, 0.05) == rare_loss_risk(steady, -0.02, 0.02, 0.05)


def test_a_loss_that_undoes_a_gain_of_the_others_is_missed_as_often_as_chance_has_none_of_it() -> None:
    units = units_of([0.03] * 50)
    share = 0.03 / 1.03  # 1.03 × share is the gain
    assert rare_loss_risk(units, 0.03, 0.0, 0.05, gain=0.03) == pytest.approx((1 - share) ** 50)


def test_units_that_can_fall_less_must_be_more_to_undo_a_gain() -> None:
    units = units_of([0.03] * 50)
    assert rare_loss_risk(units, 0.03, 0.0, 0.05, gain=0.03, fall=0.2) == pytest.approx((1 - 0.03 / 0.23) ** 50)
    assert rare_loss_risk(units, 0.03, 0.3, 0.05, fall=0.2) == 0


def test_the_guarded_interval_of_a_gain_misses_a_loss_where_it_excludes_0() -> None:
    share = 0.2 / 1.2
    units = units_of([0.2] * 300)
    low = decide_difference([0.2] * 300).ci[0]  # type: ignore[index]
    assert low > 0
    assert rare_loss_risk(units, low, 0.0, 0.05, gain=0.2, guarded=True) == pytest.approx((1 - share) ** 300)
    better = [
        binomial_mass(lost, 60, share)
        for lost in range(12)
        if (decide_difference([-1.0] * lost + [0.2] * (60 - lost)).ci or (0.0,))[0] > 0
    ]
    assert rare_loss_risk(units_of([0.2] * 60), 1e-9, 0.0, 0.05, gain=0.2, guarded=True) == pytest.approx(sum(better))


def test_a_scale_multiplies_everything() -> None:
    values = [0.2, -0.2, *[0.0] * 8] * 20
    shares, points = units_of(values), units_of([10 * value for value in values])
    assert rare_loss_risk(points, -0.1, 0.2, 0.05, 10.0) == pytest.approx(rare_loss_risk(shares, -0.01, 0.02, 0.05))


def test_there_must_be_units() -> None:
    with pytest.raises(ValueError, match="expected values"):
        rare_loss_risk(units_of([]), -0.02, 0.02, 0.05)
