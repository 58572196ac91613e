"""Rates from labels that were drawn apart by the judge's verdict: weighted by hand, and covering the truth."""

from __future__ import annotations

from random import Random

import pytest

from evalwright.statistics.rates import wilson
from evalwright.statistics.strata import Stratum, stratified_rates


def stratum(judge: bool, size: int, passed: int, failed: int) -> Stratum:
    return Stratum(judge, size, [True] * passed + [False] * failed, range(passed + failed))


def test_each_label_stands_for_the_answers_of_its_stratum() -> None:
    """160 passed answers, of which people pass 0.9; 40 failed ones, of which people pass 0.2."""
    rates = stratified_rates([stratum(True, 160, 18, 2), stratum(False, 40, 4, 16)], 200)
    assert rates is not None
    assert rates.tpr is not None
    assert rates.tnr is not None
    assert rates.passed.value == pytest.approx((144 + 8) / 200)
    assert rates.accuracy.value == pytest.approx((144 + 32) / 200)
    assert (rates.tpr.value, rates.tnr.value) == (pytest.approx(144 / 152), pytest.approx(32 / 48))
    for rate in (rates.passed, rates.accuracy, rates.tpr, rates.tnr):
        assert 0 < rate.ci[0] < rate.value < rate.ci[1] < 1


def test_labels_of_all_answers_say_what_a_rate_without_a_judge_says() -> None:
    rates = stratified_rates([stratum(True, 60, 50, 10), stratum(False, 40, 10, 30)], 100)
    assert rates is not None
    assert rates.passed.value == pytest.approx(0.6)
    assert rates.passed.ci == pytest.approx(wilson(60, 100), abs=0.02)


def test_a_stratum_without_labels_or_answers() -> None:
    assert stratified_rates([stratum(True, 60, 5, 5), stratum(False, 40, 0, 0)], 100) is None
    assert stratified_rates([], 0) is None
    rates = stratified_rates([stratum(True, 60, 5, 5), stratum(False, 0, 0, 0)], 60)
    assert rates is not None
    assert (rates.passed.value, rates.tpr and rates.tpr.value, rates.tnr and rates.tnr.value) == (0.5, 1.0, 0.0)


def test_labels_that_agree_with_the_judge_leave_its_errors_open() -> None:
    rates = stratified_rates([stratum(True, 900, 10, 0), stratum(False, 100, 0, 10)], 1000)
    assert rates is not None
    assert rates.tpr is not None
    assert rates.tnr is not None
    assert (rates.tpr.value, rates.tpr.ci[1], rates.tnr.value, rates.tnr.ci[1]) == (1.0, 1.0, 1.0, 1.0)
    assert rates.tnr.ci[0] < 0.5 < rates.tpr.ci[0] < 1  # 900 answers may hide more wrong passes than 100 failures


def test_without_a_person_who_passes_there_is_no_tpr() -> None:
    rates = stratified_rates([stratum(True, 60, 0, 5), stratum(False, 40, 0, 5)], 100)
    assert rates is not None
    assert (rates.passed.value, rates.tpr) == (0.0, None)


def test_intervals_cover_the_truth() -> None:
    """20 and 20 labels of 200 answers; 300 times, of which 6 more may miss than expected of 93.5 %."""
    random, truth, hits = Random(5), {"passed": 0.8, "accuracy": 0.88, "tpr": 0.9, "tnr": 0.8}, dict.fromkeys("patn", 0)
    for _ in range(300):
        human = [random.random() < 0.8 for _ in range(200)]
        judge = [random.random() < (0.9 if passed else 0.2) for passed in human]
        parts = []
        for verdict in (True, False):
            of = [passed for passed, said in zip(human, judge, strict=True) if said is verdict]
            parts.append(Stratum(verdict, len(of), random.sample(of, 20), range(20)))
        rates = stratified_rates(parts, 200)
        assert rates is not None
        for name, key in zip(truth, hits, strict=True):
            rate = getattr(rates, name)
            hits[key] += rate.ci[0] <= truth[name] <= rate.ci[1]
    assert min(hits.values()) >= 275
