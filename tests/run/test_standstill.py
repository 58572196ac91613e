"""Systems that give nothing but one and the same error are called no more; the run can go on once they are mended."""

import msgspec
import pytest

from evalwright.errors import TargetError
from evalwright.model.plan import RetryRule, Variant
from evalwright.model.trace import Output, Trace, TraceError
from evalwright.run.options import RunOptions
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.testing import a_trace
from run.suites import suite


def python(target: str, name: str = "main") -> Variant:
    return Variant(name, "python_function", {"target": target})


def traces(outcome) -> list[Trace]:
    reader, _ = open_run(outcome.run_dir)
    return list(reader.traces(Trace))


def ran(folder, target, cells=60, options=None, **settings):
    settings = {"max_concurrency": 2, **settings}
    return run_suite(suite(folder, ["done"] * cells, variants=[python(target)], **settings), options)


def test_a_system_with_one_error_is_stopped_with_it_and_its_place(tmp_path):
    outcome = ran(tmp_path, "agents:broken")
    assert 20 <= len(traces(outcome)) <= 21
    assert (outcome.exit_code, outcome.interrupted) == (3, False)
    [reason] = outcome.summary.warnings
    assert outcome.notes == [reason]
    assert reason.startswith("stopped 'main': 20 cells ended in the same error")
    assert "KeyError: 'missing' in agents.py:" in reason
    assert "mend agents.py:" in reason


def test_a_stopped_run_goes_on_once_the_system_is_mended(tmp_path, agents):
    outcome = ran(tmp_path, "agents:mendable", cells=30)
    assert len(traces(outcome)) < 30
    agents.mended = True
    outcome = retry(outcome.run_dir)
    assert (outcome.exit_code, outcome.summary.cells_missing, outcome.summary.warnings) == (0, 0, [])
    assert {trace.error for trace in traces(outcome) if trace.attempt > 1} == {None}


def test_cells_that_a_stop_keeps_from_being_run_again_are_not_said_to_be(tmp_path):
    first = ran(tmp_path, "agents:broken", cells=50, max_concurrency=1)
    outcome = retry(first.run_dir)
    again = [trace for trace in traces(outcome) if trace.attempt > 1]
    assert len(again) == 20
    count, reason = outcome.notes
    assert count == "20 of 50 cells run again"
    assert reason.startswith("stopped 'main': 20 cells ended in the same error")
    assert "20 finished cells run again" in retry(first.run_dir, keep_going=True).notes


def test_an_answer_of_an_earlier_session_proves_that_a_system_works(tmp_path):
    variants = [python("agents:broken_or_not"), python("agents:broken", "other")]
    first = run_suite(suite(tmp_path, ["done"] * 50, variants=variants, max_concurrency=1))
    count, reason = retry(first.run_dir).notes
    assert count == "69 of 99 cells run again"
    assert reason.startswith("stopped 'other': 20 cells ended in the same error")


@pytest.mark.parametrize("target", ["agents:mostly_broken", "agents:broken_in_many_ways"])
def test_other_errors_and_one_answer_stop_nothing(tmp_path, agents, target):
    outcome = ran(tmp_path, target, cells=45, max_concurrency=1)
    assert len(traces(outcome)) == 45
    assert outcome.summary.warnings == []


def test_messages_that_name_the_case_or_a_time_are_one_error(tmp_path):
    assert len(traces(ran(tmp_path, "agents:broken_by_case", max_concurrency=1))) == 20


def test_the_number_is_the_suite_s_and_may_be_none(tmp_path):
    assert len(traces(ran(tmp_path / "5", "agents:broken", stop_after_errors=5, max_concurrency=1))) == 5
    assert len(traces(ran(tmp_path / "0", "agents:broken", stop_after_errors=0))) == 60
    assert len(traces(ran(tmp_path / "k", "agents:broken", options=RunOptions(keep_going=True)))) == 60
    stopped = ran(tmp_path / "r", "agents:broken", stop_after_errors=5)
    assert resume(stopped.run_dir, keep_going=True).summary.cells_missing == 0


def test_an_answer_of_a_cell_in_flight_lets_the_system_go_on(tmp_path):
    outcome = ran(tmp_path, "agents:slow_to_answer", max_concurrency=40)
    assert len(traces(outcome)) == 60
    assert outcome.summary.warnings == []


def test_other_systems_of_the_run_finish(tmp_path):
    variants = [python("agents:broken", "broken"), python("agents:echo", "sound")]
    outcome = run_suite(suite(tmp_path, ["done"] * 40, variants=variants, max_concurrency=2))
    names = [trace.variant_name for trace in traces(outcome)]
    assert names.count("sound") == 40
    assert 20 <= names.count("broken") <= 21
    assert outcome.exit_code == 3


@pytest.mark.parametrize(
    ("error", "cure"),
    [
        (TargetError("POST x: HTTP 400: no", status=400), "correct the request"),
        (TargetError("POST x: HTTP 401: no", status=401), "check the key"),
        (TargetError("POST x: HTTP 403: no", status=403), "what it allows"),
        (TargetError("POST x: HTTP 404: no", status=404), "correct the address"),
        (TargetError("POST x: HTTP 405: no", status=405), "correct the method"),
        (TargetError("POST x: HTTP 422: no", status=422), "correct the request"),
        (TargetError("POST x: HTTP 429: no", status=429), "lower run.max_concurrency"),
        (TargetError("no answer: response_mapping.final_answer $.x finds nothing"), "correct the path"),
        (TargetError("key: the case has no input.x"), "correct the name in the template"),
        (TargetError("no answer: ConnectError: refused"), "start the service"),
        (TargetError("command not found: 'x'"), "the full path of the program"),
        (TargetError("late", "timeout"), "raise timeout_seconds"),
    ],
)
def test_the_most_likely_cure_is_named(tmp_path, agents, error, cure):
    agents.error = error
    once = RetryRule(max_attempts=1, once=True)
    outcome = ran(tmp_path, "agents:raises_error", cells=8, stop_after_errors=3, retry=once)
    assert cure in outcome.summary.warnings[0]


def test_a_recording_of_an_account_that_was_not_signed_in_leaves_the_others_to_be_judged(tmp_path):
    error = TraceError("sign_in", "log in first")
    traces = [a_trace(output=Output("done"), error=None if number else error) for number in range(3)]
    recorded = suite(tmp_path, [1, 2, 3], variants=[Variant("main", "replay")], max_concurrency=1)
    for case, trace in zip(recorded.cases, traces, strict=True):
        case.recorded = msgspec.to_builtins(trace)
    outcome = run_suite(recorded)
    cells = outcome.summary.variants[0].cells
    assert (cells["error"], cells["pass"], outcome.summary.cells_missing, outcome.notes) == (1, 2, 0, [])
