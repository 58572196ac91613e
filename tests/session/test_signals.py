"""Signals that ask for the end: kept, handed on, or raised where they arrive."""

import os
import signal
import subprocess
import sys

import pytest

from evalwright.errors import Interrupted
from evalwright.session.signals import Signals

ALL = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def hit(number=signal.SIGINT):
    os.kill(os.getpid(), number)


class HitsAtItsEnd:
    def __del__(self):
        hit()


@pytest.mark.parametrize("number", ALL)
def test_they_are_kept_for_who_listens_next(number):
    heard = []
    with Signals() as signals:
        hit(number)
        hit(number)
        assert heard == []
        with signals.handled_by(heard.append):
            assert heard == [number, number]
            hit(number)
    assert heard == [number] * 3


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_a_finaliser_swallows_is_raised_at_the_end():
    reached = []

    def work(signals):
        with signals.raising():
            HitsAtItsEnd()
            reached.append("the line behind it")

    with Signals() as signals, pytest.raises(Interrupted):
        work(signals)
    assert reached == ["the line behind it"]


def test_those_that_are_held_wait_for_the_end_of_their_block():
    reached = []

    def work(signals):
        with signals.raising():
            with signals.held():
                hit()
                reached.append("the block's end")
            reached.append("more")

    with Signals() as signals, pytest.raises(Interrupted):
        work(signals)
    assert reached == ["the block's end"]


def test_only_the_making_of_an_item_is_interrupted():
    def items():
        yield 1
        hit()
        yield 2

    written = []

    def write(signals):
        for item in signals.each(items()):
            hit()
            written.append(item)

    with Signals() as signals, pytest.raises(KeyboardInterrupt):
        write(signals)
    assert written == [1]


def test_where_the_process_is_not_ours_nothing_is_changed():
    before = [*map(signal.getsignal, ALL)]
    with Signals(owns_process=False) as signals, signals.raising():
        assert [*map(signal.getsignal, ALL)] == before
    with Signals():
        assert [*map(signal.getsignal, ALL)] != before
    assert [*map(signal.getsignal, ALL)] == before


@pytest.mark.parametrize("number", ALL)
def test_a_process_that_is_about_to_end_keeps_its_exit_code(number):
    program = (
        "import atexit, os, sys; from evalwright.session.signals import Ending\n"
        f"atexit.register(lambda: os.kill(os.getpid(), {int(number)}))\n"
        "Ending().code = 3; sys.exit(3)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 3


def test_nohup_is_obeyed():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals, signals.raising():
            hit(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_a_second_signal_ends_a_process_at_once():
    program = (
        "import os, signal; from evalwright.session.signals import Ending\n"
        "Ending()\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt:\n    os.kill(os.getpid(), signal.SIGTERM)\n"
        "print('went on')"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (done.returncode, done.stdout) == (130, b"")


def test_a_signal_that_arrives_in_a_finaliser_prints_nothing_and_the_next_one_ends_the_process():
    program = (
        "import os, signal; from evalwright.session.signals import Ending\n"
        "class Loop:\n    def __del__(self): os.kill(os.getpid(), signal.SIGINT)\n"
        "Ending()\nLoop()\nprint('went on', flush=True)\nos.kill(os.getpid(), signal.SIGINT)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"went on\n", b"")


def test_other_faults_of_finalisers_are_still_printed():
    program = (
        "from evalwright.session.signals import Ending\n"
        "class Loop:\n    def __del__(self): raise ValueError('broken')\n"
        "Ending()\nLoop()"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert b"ValueError: broken" in done.stderr
