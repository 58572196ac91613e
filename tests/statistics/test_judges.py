"""Reference numbers: Rogan and Gladen 1978 by hand; ppi-python."""

from __future__ import annotations

import pytest

from evalwright.statistics import corrected_difference, corrected_rate_interval, powered_rate, rogan_gladen
from evalwright.statistics.judges import LabelledUnits

HUMAN = [1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1]
JUDGE = [1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1]
REST = [1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1]


def test_corrected_rate_has_the_reference_numbers() -> None:
    corrected = rogan_gladen(312, 400, 88, 7, 41, 9)
    assert corrected[:5] == pytest.approx((0.78, 0.9263157894737, 0.82, 0.8039492242595, 0.04251642451797))
    assert corrected.ci_normal == pytest.approx((0.7206185634529, 0.8872798850662))


@pytest.mark.parametrize("table", [(1, 1, 1, 1), (0, 0, 1, 1), (1, 9, 1, 9)])
def test_a_judge_no_better_than_chance_corrects_nothing(table: tuple[int, int, int, int]) -> None:
    assert rogan_gladen(5, 10, *table).corrected_rate is None


def test_the_interval_for_few_labels_is_that_of_lang_and_reiczigel() -> None:
    """By hand: 20 of 50 positive, sensitivity 18 of 20, specificity 27 of 30."""
    assert corrected_rate_interval(20, 50, 18, 2, 27, 3) == pytest.approx((0.16637, 0.59652), abs=1e-5)


def test_a_judge_without_a_mistake_on_few_labels_is_not_taken_for_perfect() -> None:
    few, many = corrected_rate_interval(70, 100, 5, 0, 5, 0), corrected_rate_interval(70, 100, 500, 0, 500, 0)
    assert few is not None
    assert many is not None
    assert few[1] - few[0] > 1.5 * (many[1] - many[0])


@pytest.mark.parametrize("table", [(1, 1, 1, 1), (0, 0, 5, 0), (30, 70, 1, 0)])
def test_without_skill_there_is_no_interval(table: tuple[int, int, int, int]) -> None:
    assert corrected_rate_interval(50, 100, *table) is None


def test_few_disagreements_power_nothing() -> None:
    people = [1.0] * 10 + [0.0] * 10
    rate = powered_rate(people, [0.0, *people[1:]], [1.0, 0.0] * 20)
    assert (rate.refused, rate.estimate, rate.ci) == ("disagreements", None, None)
    rate = powered_rate([1.0] * 20, [0.0] * 6 + [1.0] * 14, [1.0, 0.0] * 20)
    assert rate.refused == "labels_of_a_kind"


def test_a_judge_that_never_varies_has_no_weight() -> None:
    rate = powered_rate([1.0] * 30 + [0.0] * 20, [1.0] * 50, [1.0] * 70)
    assert (rate.weight, rate.estimate) == (0.0, pytest.approx(0.6))
    assert rate.ci is not None
    assert rate.ci[0] < 0.6 < rate.ci[1]


def test_a_good_judge_narrows_the_interval() -> None:
    people = [1.0] * 60 + [0.0] * 40
    judge = [0.0] * 4 + [1.0] * 56 + [1.0] * 4 + [0.0] * 36
    powered, alone = (powered_rate(people, judge, rest).ci for rest in ([1.0, 0.0, 1.0] * 300, []))
    assert powered is not None
    assert alone is not None
    assert powered[1] - powered[0] < 0.8 * (alone[1] - alone[0])


def test_labels_without_judgements_are_refused() -> None:
    with pytest.raises(ValueError, match="found 1 for 2"):
        powered_rate([1.0, 0.0], [1.0], [])


def test_each_side_is_corrected_by_its_own_labels() -> None:
    one = {"judge_pass": 120, "n": 200, "tp": 45, "fn": 5, "tn": 40, "fp": 10}
    other = {"judge_pass": 150, "n": 200, "tp": 47, "fn": 3, "tn": 38, "fp": 12}
    difference = corrected_difference(one, other)
    assert difference.difference == pytest.approx(0.1571428571429)
    assert difference.ci == pytest.approx((-0.03027282936285, 0.3531784327596))
    blind = {**one, "tp": 25, "fn": 25, "tn": 25, "fp": 25}
    assert corrected_difference(blind, other).ci is None


def test_answers_of_one_case_are_one_unit_of_the_powered_rate() -> None:
    human, judge = [1.0, 0.0, 1.0, 1.0] * 10, [1.0, 1.0, 0.0, 1.0] * 10
    rest = [1.0, 0.0, 1.0] * 40
    alone = powered_rate(human, judge, rest)
    same = LabelledUnits([*range(40)], [*range(100, 220)])
    as_cases = powered_rate(human, judge, rest, units=same)
    assert as_cases.estimate == alone.estimate
    assert as_cases.se == pytest.approx(alone.se, rel=0.05)
    five = LabelledUnits([n // 8 for n in range(40)], [100 + n // 24 for n in range(120)])
    assert powered_rate(human, judge, rest, units=five).df == 4


def test_no_interval_has_the_width_0() -> None:
    assert corrected_rate_interval(100, 100, 12, 18, 29, 1) is None
    human, judge = [0.0] * 5 + [1.0] * 15, [1.0] * 5 + [1.0] * 10 + [0.0] * 5
    for rest in ([1.0] * 500, [0.0] * 500, [0.0, 1.0] * 5):
        rate = powered_rate(human, judge, rest)
        assert rate.refused or (rate.ci is not None and rate.ci[0] < rate.ci[1])
