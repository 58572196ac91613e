"""How often, and when, the call of a cell is repeated."""

import msgspec
import pytest

from evalwright.model.plan import RetryRule
from evalwright.model.trace import TraceError
from evalwright.run.addresses import requested_pause
from evalwright.run.attempts import pause_before_next, retriable
from evalwright.run.start import run_suite
from run.suites import suite


def error(status: int, seconds: float | None = None) -> TraceError:
    kind = "http_5xx" if status >= 500 else "adapter_error"
    found = TraceError(kind, "no", status=status)
    return found if seconds is None else TraceError(kind, "no", status=status, retry_after_seconds=seconds)


@pytest.mark.parametrize(
    ("rule", "failure", "tries"),
    [
        (RetryRule(), error(429, 1.0), 5),
        (RetryRule(), error(503, 0.0), 5),
        (RetryRule(max_attempts=2), error(503, 1.0), 2),
        (RetryRule(max_attempts=3), error(503, 1.0), 3),
        (RetryRule(max_attempts=1, once=True), error(503, 1.0), 1),
        (RetryRule(), error(429), 5),
        (RetryRule(), error(503), 5),
        (RetryRule(max_attempts=1, once=True), error(429), 1),
        (RetryRule(), error(500, 1.0), 1),
        (RetryRule(max_attempts=4), error(500), 4),
        (RetryRule(max_attempts=4, on=["adapter_error"]), error(429), 4),
        (RetryRule(max_attempts=4, on=["*"]), error(400), 1),
        (RetryRule(max_attempts=4, on=["adapter_error"]), error(401, 1.0), 1),
        (RetryRule(max_attempts=4, on=["adapter_error"]), TraceError("adapter_error", "of no service"), 4),
        (RetryRule(max_attempts=4, on=["*"]), TraceError("adapter_error", "of no service"), 4),
        (RetryRule(max_attempts=4), TraceError("adapter_error", "of no service"), 1),
        (RetryRule(max_attempts=4), TraceError("timeout", "late"), 4),
        (RetryRule(max_attempts=4, on=["timeout"]), error(500), 1),
    ],
)
def test_how_often_a_cell_is_called(rule, failure, tries):
    assert [retriable(rule, failure, n) for n in range(1, 8)] == [n < tries for n in range(1, 8)]


def test_no_other_refusal_is_called_again_whatever_the_suite_says():
    rule = RetryRule(max_attempts=4, on=["*"])
    others = [status for status in range(400, 500) if status != 429]
    assert [status for status in others if retriable(rule, error(status, 1.0), 1)] == []
    assert [status for status in others if requested_pause(error(status, 1.0)) is not None] == []


def test_each_pause_is_twice_the_last_one_up_to_a_minute():
    rule, busy = RetryRule(max_attempts=9, backoff_seconds=1.5), error(429, 7.0)
    assert [pause_before_next(rule, error(500), n) for n in (1, 2, 3, 6, 7, 2000)] == [1.5, 3.0, 6.0, 48.0, 60.0, 60.0]
    assert [pause_before_next(rule, busy, n) for n in (1, 4)] == [7.0, 12.0]


def test_a_service_that_is_busy_and_names_no_time_is_called_as_late_as_a_model():
    drawn = [pause_before_next(RetryRule(), error(503), 2) for _ in range(300)]
    assert 0 <= min(drawn) < 0.8 < max(drawn) <= 1.6
    assert pause_before_next(RetryRule(max_attempts=3, backoff_seconds=1.5), error(503), 2) == 3.0


def test_what_is_not_busy_is_called_again_at_once_unless_the_suite_says_otherwise():
    rule = RetryRule(max_attempts=9)
    assert {pause_before_next(rule, failure, 3) for failure in (error(500), TraceError("timeout", "late"))} == {0.0}


def test_a_model_that_was_called_again_already_is_not_called_again():
    tried = msgspec.structs.replace(error(429, 1.0), attempts=5)
    assert not retriable(RetryRule(max_attempts=3, on=["*"]), tried, 1)
    assert not retriable(RetryRule(max_attempts=3, on=["timeout"]), TraceError("timeout", "late", attempts=5), 1)
    assert retriable(RetryRule(max_attempts=3, on=["timeout"]), TraceError("timeout", "late"), 1)


def test_a_system_that_fails_otherwise_is_called_as_often_as_the_suite_allows(tmp_path, agents, monkeypatch):
    monkeypatch.setattr("evalwright.run.attempts._LONGEST_CALL", -1.0)  # is for what is busy
    retry = RetryRule(max_attempts=3, backoff_seconds=0, on=["*"])
    run_suite(suite(tmp_path, [3], "agents:flaky", retry=retry))
    assert len(agents.calls) == 3
