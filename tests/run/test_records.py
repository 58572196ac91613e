"""The dates of a run's records, which of its traces count, and results of evaluators that said nothing."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import monotonic

import pytest

from evalwright.errors import InputError
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import Evaluation
from evalwright.model.trace import Span, TraceError
from evalwright.run.newest import newest_of
from evalwright.run.records import Clock, result_of
from evalwright.run.stored_run import case_finder
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import MemoryStore, a_case, a_plan, a_trace


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


@pytest.mark.parametrize(
    ("score", "passed", "given", "reason"),
    [
        (0.5, True, "fine", "required, at least 0.8; fine"),
        (0.5, False, "", "required, at least 0.8; score 0.5"),
        (None, True, "", "required, at least 0.8; passed"),
        (0.8, True, "fine", "fine"),
    ],
)
def test_the_reason_begins_with_a_required_score_that_was_missed(score, passed, given, reason):
    now, spec = datetime.now(UTC), EvaluatorSpec("e", "contains_text", required=0.8)
    evaluation = Evaluation(passed, score, given)
    assert result_of(spec, a_trace(), evaluation, None, now, now).reason == reason
    assert result_of(spec, a_trace(), None, TraceError("timeout", "late"), now, now).reason == "late"


@pytest.mark.parametrize("score", [-0.01, 1.01, 2])
def test_a_score_outside_of_0_to_1_is_an_error_where_no_other_range_is_known(score):
    now = datetime.now(UTC)
    row = result_of(EvaluatorSpec("e", "contains_text"), a_trace(), Evaluation(True, score), None, now, now)
    assert (row.passed, row.score, row.error.type) == (False, None, "evaluator_error")
    assert "expected a number from 0 to 1" in row.error.message


@pytest.fixture(params=["memory", "folder"])
def run(request, tmp_path):
    store = MemoryStore() if request.param == "memory" else LocalFiles(tmp_path)
    with closing(store.create(a_plan(), [a_case()], {})) as writer:
        yield writer


@pytest.mark.parametrize("case", ["c1", 'the "first"', "c\u2028"])
def test_of_two_traces_of_one_attempt_the_last_is_the_cells(run, case):
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    for date in (early, late):
        run.append_trace(a_trace(case_id=case, started_at=date))
    newest, key = newest_of(run), (case, "v1", 0)
    assert [newest.superseded(key, 1, date) for date in (early, late)] == [True, False]
    assert newest.count == 1


@pytest.mark.parametrize("attempts", [(1, 2), (2, 1)])
def test_of_two_attempts_the_second_is_the_cells(run, attempts):
    for attempt in attempts:
        run.append_trace(a_trace(attempt=attempt))
    newest = newest_of(run)
    assert [newest.superseded(("c1", "v1", 0), attempt, a_trace().started_at) for attempt in (1, 2)] == [True, False]
    assert newest.count == 1


def test_traces_of_other_cases_variants_and_trials_are_of_cells_of_their_own(run):
    inner = Span("s", "agent", attributes={"case_id": "c1", "trial": 0, "attempt": 1, "case_index": None, "spans": []})
    for differs in ({}, {"case_id": "c2"}, {"variant_name": "v2"}, {"trial": 1}, {"trial": 10}, {"occurrence": 2}):
        run.append_trace(a_trace(**differs))
        newest = newest_of(run)
        assert not newest.winners
    run.append_trace(a_trace(spans=[inner], trial=11))
    assert (newest.count, newest_of(run).count) == (6, 7)


def test_a_trace_of_a_case_that_is_not_in_the_run_is_refused():
    run = MemoryStore().create(a_plan(), [a_case()], {})
    with pytest.raises(InputError, match="not among its cases"):
        case_finder(run, run.plan)(a_trace(case_id="another", case_index=0))
    run.close()
