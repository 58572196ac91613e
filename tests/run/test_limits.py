"""Code that blocks is interrupted."""

import asyncio
import contextvars
import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime

import pytest

from evalwright import built_in
from evalwright.errors import InputError, LimitExceeded
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.result import Evaluation
from evalwright.model.trace import Answer, Output, Trace
from evalwright.run import call
from evalwright.run.limits import Watchdog, held_to, new_loop
from evalwright.run.records import Clock, PendingResult, result_of
from evalwright.run.start import run_suite
from evalwright.run.steps.awaited import await_results
from evalwright.run.stored_run import open_run
from run.suites import suite


def catastrophic():
    re.search(r"(a+)+$", "a" * 40 + "b")


def busy():
    while True:
        pass


@pytest.mark.parametrize("block", [lambda: time.sleep(60), busy, catastrophic, threading.Event().wait])
def test_blocking_code_is_interrupted(block):
    with Watchdog() as watchdog:
        watchdog.until = time.monotonic() + 0.1
        with pytest.raises(LimitExceeded):
            block()


def test_code_within_its_limit_is_left_alone():
    with Watchdog() as watchdog:
        watchdog.until = time.monotonic() + 60
        before = time.monotonic()
        time.sleep(0.3)
        watchdog.until = None
    assert time.monotonic() - before >= 0.3


def test_only_code_past_its_deadline_is_interrupted():
    with Watchdog() as watchdog:
        watchdog.beat = time.monotonic() - 100
        late, begun = time.monotonic() + 60, time.monotonic()
        with held_to(lambda: late):
            time.sleep(0.5)
        assert time.monotonic() - begun >= 0.5
        with held_to(lambda: begun), pytest.raises(LimitExceeded):
            time.sleep(60)


def test_what_the_program_does_with_the_signal_is_put_back() -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        with Watchdog():
            assert signal.getsignal(signal.SIGALRM) is not signal.SIG_IGN
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_blocking_code_exceeds_its_limit_by_a_fraction_of_a_second_only() -> None:
    with Watchdog():
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[1] <= 0.25


def test_a_process_of_the_caller_keeps_its_signal_and_timer() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with Watchdog(owns_process=False) as watchdog:
        assert not watchdog.watches
        assert signal.getsignal(signal.SIGALRM) is before
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_thread_that_gets_no_signals_watches_nothing() -> None:
    def watches() -> bool:
        with Watchdog() as watchdog:
            return watchdog.watches

    with ThreadPoolExecutor(1) as threads:
        assert not threads.submit(watches).result()


def test_code_that_was_interrupted_can_take_its_time_to_end() -> None:
    tidied = threading.Event()

    def tidies_up() -> None:
        try:
            busy()
        finally:
            time.sleep(0.5)
            tidied.set()

    with Watchdog() as watchdog:
        watchdog.until = time.monotonic() + 0.1
        with pytest.raises(LimitExceeded):
            tidies_up()
    assert tidied.is_set()


def test_code_without_a_deadline_is_left_alone_however_long_it_holds_the_loop_up():
    with Watchdog() as watchdog:
        watchdog.beat = time.monotonic() - 100
        assert not threading.Event().wait(0.3)


def test_a_late_call_leaves_nothing_to_the_next_one_of_its_worker(tmp_path, agents):
    """Groups of tasks and libraries look whether the task that they are in is being cancelled."""

    async def cancelling(case, variant):
        await asyncio.sleep(60 * case["input"])
        return {"final_answer": f"done, cancelled {asyncio.current_task().cancelling()} times"}

    agents.cancelling = cancelling
    says = [EvaluatorSpec("says", "contains_text", {"all_of": ["cancelled 0 times"]})]
    made = suite(tmp_path, [1, 0], "agents:cancelling", evaluators=says, max_concurrency=1, timeout=0.3)
    cells = run_suite(made).summary.variants[0].cells
    assert (cells["error"], cells["pass"]) == (1, 1)


def test_a_task_of_a_call_that_blocks_the_loop_is_held_to_the_limit_of_the_call(tmp_path, agents):
    async def blocks():
        time.sleep(60)

    async def starting(case, variant):
        await asyncio.gather(blocks())
        return {"final_answer": "done"}

    agents.starting = starting
    outcome = run_suite(suite(tmp_path, [1], "agents:starting", timeout=0.3))
    [trace] = open_run(outcome.run_dir)[0].traces(Trace)
    assert trace.error.type == "timeout"


class Blocking:
    """A system whose set-up or end blocks the loop, by the name of its variant."""

    def __init__(self, variant):
        self._blocked = variant.name

    async def open(self):
        self._at("open")

    async def run(self, case, trial):
        return Answer(Output(final_answer="done"))

    async def close(self):
        self._at("close")

    def _at(self, name):
        if name == self._blocked:
            time.sleep(60)


@pytest.fixture
def blocking(monkeypatch):
    monkeypatch.setitem(built_in.KINDS["targets"], "blocking", f"{__name__}:Blocking")


def test_set_up_that_blocks_the_loop_has_a_limit(tmp_path, blocking):
    variant = Variant("open", "blocking", {}, timeout_seconds=0.3)
    with pytest.raises(InputError, match=r"'open' was not set up within 0\.3 seconds"):
        run_suite(suite(tmp_path, [1], variants=[variant]))


def test_an_end_that_blocks_the_loop_has_a_limit(tmp_path, blocking, monkeypatch):
    monkeypatch.setattr(call, "GRACE", 0.3)
    outcome = run_suite(
        suite(tmp_path, [1], variants=[Variant("close", "blocking", {}), Variant("other", "blocking", {})])
    )
    assert [variant.cells["pass"] for variant in outcome.summary.variants] == [1, 1]
    assert outcome.summary.warnings == ["close: was not closed within 0.3 seconds"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_end_of_a_system_can_be_interrupted(tmp_path, blocking):
    timers = [threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)) for seconds in (1.0, 1.8)]
    for timer in timers:
        timer.start()
    outcome = run_suite(suite(tmp_path, [1], variants=[Variant("close", "blocking", {})]))
    assert outcome.summary.warnings == ["close: closing it was interrupted"]
    assert (outcome.exit_code, outcome.summary.cells_missing) == (0, 0)


def test_awaited_evaluators_that_block_the_loop_have_a_limit():
    async def blocks():
        time.sleep(60)

    async def gathers():
        await asyncio.gather(blocks())

    now = datetime.now(UTC)
    trace = Trace("c", "v", now, now, 0, {}, Output(), "r")
    specs = [EvaluatorSpec(name, "python_function", {}) for name in ("blocks", "gathers")]
    rows = [result_of(spec, trace, None, None, now, now) for spec in specs]
    pending = [PendingResult(0, blocks(), 0.3), PendingResult(1, gathers(), 0.3)]
    with Watchdog() as watchdog:
        watchdog.beat = time.monotonic() - 100
        asyncio.run(await_results(rows, pending, Clock(), concurrent=False, keep_calls=False))
    assert [row.error.type for row in rows] == ["timeout", "timeout"]


def test_an_awaited_evaluator_is_not_late_because_other_code_blocks_the_loop():
    async def replies():
        asyncio.get_running_loop().call_soon(time.sleep, 1.0, context=contextvars.Context())
        await asyncio.sleep(0.1)
        return Evaluation(passed=True)

    now = datetime.now(UTC)
    trace = Trace("c", "v", now, now, 0, {}, Output(), "r")
    rows = [result_of(EvaluatorSpec("replies", "python_function", {}), trace, None, None, now, now)]
    with closing(new_loop()) as loop:
        pending = [PendingResult(0, replies(), 0.5)]
        loop.run_until_complete(await_results(rows, pending, Clock(), concurrent=False, keep_calls=False))
    assert (rows[0].error, rows[0].passed) == (None, True)
