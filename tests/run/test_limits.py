"""Code that blocks is interrupted."""

import asyncio
import re
import signal
import threading
import time

import pytest

from evalwright.errors import LimitExceeded
from evalwright.model.plan import EvaluatorSpec
from evalwright.run.limits import Watchdog
from evalwright.run.start import run_suite
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


def test_only_calls_past_their_deadline_are_interrupted():
    def call(deadline, seconds):
        time.sleep(seconds)
        return deadline

    with Watchdog() as watchdog:
        watchdog.watch_calls(call.__code__, lambda frame: frame.f_locals["deadline"])
        watchdog.beat = time.monotonic() - 100
        assert call(time.monotonic() + 60, 0.5)
        with pytest.raises(LimitExceeded):
            call(time.monotonic() + 0.1, 60)


def test_what_the_program_does_with_the_signal_is_put_back() -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        with Watchdog():
            assert signal.getsignal(signal.SIGALRM) is not signal.SIG_IGN
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_code_of_no_call_is_left_alone_however_long_it_holds_the_loop_up():
    with Watchdog() as watchdog:
        watchdog.watch_calls(busy.__code__, lambda frame: time.monotonic())
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
