"""The dates of a run's records, and results of evaluators that said nothing."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import monotonic

import pytest

from evalwright.model.plan import EvaluatorSpec
from evalwright.model.trace import TraceError
from evalwright.run.records import Clock, result_of
from evalwright.testing import a_trace


def test_dates_move_as_the_monotonic_clock_does_in_whatever_order_they_are_asked_for():
    clock, start = Clock(), monotonic()
    microseconds = [0, 1, 2, 999, 1000, 1998, 5000, 4999, 4000, 4000, 10_000_000, 9_999_999, 3]
    dates = [clock.date(start + number / 1e6) for number in microseconds]
    for (before, date), (earlier, number) in zip(pairwise(dates), pairwise(microseconds), strict=True):
        assert (date - before) / timedelta(microseconds=1) == pytest.approx(number - earlier, abs=2)


def test_dates_begin_with_that_of_the_wall():
    before = datetime.now(UTC)
    assert before - timedelta(seconds=1) <= Clock().now() <= datetime.now(UTC) + timedelta(seconds=1)


def test_an_evaluator_that_said_nothing_has_passed_nothing():
    now = datetime.now(UTC)
    row = result_of(EvaluatorSpec("e", "contains_text"), a_trace(), None, TraceError("timeout", "late"), now, now)
    assert (row.passed, row.score, row.skipped, row.latency_ms) == (False, None, False, 0)
    assert row.error is not None
