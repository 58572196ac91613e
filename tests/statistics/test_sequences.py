from __future__ import annotations

from math import prod
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import betting_sequence, changed_pairs_e_value
from evalwright.statistics.sequences import BettingWager


def test_a_clear_win_is_decided_after_ten_units() -> None:
    sequence = betting_sequence([1.0] * 20, [0.0, 0.02], [5, 11, 20])
    assert (sequence.stop_above, sequence.stop_below) == ([10, 9], [None, None])
    assert sequence.log_capital_above[0] == pytest.approx([2.027325540541, 4.46011618919, 8.109302162163])
    assert sequence.ci_last == pytest.approx((0.4233870385744, 1.0), abs=1e-6)


def test_sides_mirror_each_other() -> None:
    rng = Random(3)
    values = [rng.choice([-1.0, 0.0, 0.5, 1.0]) for _ in range(60)]
    there, back = (betting_sequence([sign * v for v in values], [0.0], [60]) for sign in (1, -1))
    assert there.log_capital_above == [pytest.approx(back.log_capital_below[0])]
    assert there.ci_last == pytest.approx((-back.ci_last[1], -back.ci_last[0]))


def test_an_unchanged_system_is_rarely_called_worse_or_better_however_often_one_looks() -> None:
    rng, alarms = Random(7), 0
    for _ in range(60):
        values = [float(rng.random() < 0.7) - float(rng.random() < 0.7) for _ in range(120)]
        sequence = betting_sequence(values, [0.0], [])
        alarms += sequence.stop_above[0] is not None or sequence.stop_below[0] is not None
    assert alarms <= 6


def test_large_units_weigh_more() -> None:
    values = [1.0, -1.0] * 10
    equal = betting_sequence(values, [0.0], [20])
    light = betting_sequence(values, [0.0], [20], weights=[1.0, 0.1] * 10)
    assert light.log_capital_above[0][0] > equal.log_capital_above[0][0]


def test_impossible_units_are_refused() -> None:
    with pytest.raises(ValueError, match="-1 to 1"):
        betting_sequence([2.0], [0.0], [])
    with pytest.raises(ValueError, match="weight"):
        betting_sequence([0.5], [0.0], [], weights=[0.0])


def test_e_values_of_changed_pairs() -> None:
    nights = [changed_pairs_e_value(0, 6), changed_pairs_e_value(3, 14)]
    assert [night.e_value for night in nights] == pytest.approx([9.142857142857, 10.70849673203])
    assert not any(night.reject for night in nights)
    assert prod(night.e_value or 0.0 for night in nights) > 20


@given(st.lists(st.tuples(st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0]), st.sampled_from([0.25, 1.0])), max_size=40))
def test_bets_one_by_one_are_those_of_the_whole_sequence(units: list[tuple[float, float]]) -> None:
    differences, weights = [d for d, _ in units], [w for _, w in units]
    whole = betting_sequence(differences, [0.1], [len(units)], weights=weights)
    wager = BettingWager(0.1)
    verdicts = []
    for difference, weight in units:
        wager.add(difference, difference, weight)
        verdicts.append(wager.verdict)
    assert (wager.above, wager.below) == (whole.log_capital_above[0][0], whole.log_capital_below[0][0])
    assert wager.interval() == whole.ci_last
    first = next((i for i, verdict in enumerate(verdicts, 1) if verdict == "ship"), None)
    assert first == whole.stop_above[0]
