"""What a display says of a run: which of its facts, when, and how many of them fit."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.run.cells import Cell, RunState
from evalwright.run.progress import progress_on
from targets.loopback import PATIENCE


class Clock:
    now = 1000.0


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """Seconds that pass when the test says so, on a wide terminal."""
    made = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((120, 24)))
    return made


class Screen(io.StringIO):
    """A stream on which one waits for what is written next."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal, self._written, self._seen = terminal, threading.Condition(), 0

    def fileno(self) -> int:
        return 1

    def isatty(self) -> bool:
        return self._terminal

    def flush(self) -> None:
        with self._written:
            self._written.notify_all()

    def wait(self) -> str:
        with self._written:
            assert self._written.wait_for(lambda: len(self.getvalue()) > self._seen, PATIENCE)
            said = self.getvalue()[self._seen :]
            self._seen += len(said)
        return said

    def until(self, text: str) -> str:
        """Everything from now on, until a line has the text."""
        said = ""
        while text not in said:
            said += self.wait()
        return said


@contextmanager
def shown(state: RunState, terminal: bool = False) -> Iterator[Screen]:
    screen = Screen(terminal)
    with progress_on(screen)(state):
        yield screen


def running(seconds: float, case: str = "slow", trial: int = 0) -> dict[int, tuple[Cell, float]]:
    cell = Cell(0, 0, Case(case, None), Variant("v", "python_function"), trial, 1)
    return {0: (cell, Clock.now - seconds)}


def test_plain_lines_come_after_2_10_30_and_60_seconds_and_then_each_minute(clock):
    with shown(RunState(total=2)) as screen:
        for seconds, said in ((2, "0:02"), (8, "0:10"), (20, "0:30"), (30, "1:00"), (60, "2:00"), (60, "3:00")):
            clock.now += seconds - 1
            clock.now += 1
            assert screen.wait() == f"0/2 done after {said}\n"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState(total=2000, done=1000), "1,000/2,000 done after 0:02"),
        (RunState(total=9, done=6, passed=3, failed=2, errored=1), "6/9 done after 0:02, 3 passed, 2 failed, 1 error"),
        (RunState(total=9, cost_usd=1.5), "0/9 done after 0:02, $1.50"),
        (RunState(total=9, running=running(5, trial=1)), "0/9 done after 0:02, slow · v · trial 2 running for 7 s"),
        (RunState(total=9, running=running(2)), "0/9 done after 0:02"),
        (RunState(total=9, waiting=1, running=running(9)), "0/9 done after 0:02, 1 call waits for the budget"),
        (RunState(total=9, waiting=2), "0/9 done after 0:02, 2 calls wait for the budget"),
    ],
)
def test_a_plain_line_names_what_there_is(clock, state, said):
    with shown(state) as screen:
        clock.now += 2
        assert screen.wait() == said + "\n"


def live(clock: Clock, state: RunState, seconds: float) -> str:
    """The line after so many seconds, without the bar."""
    with shown(state, terminal=True) as screen:
        screen.wait()
        clock.now += seconds
        hours, minutes = divmod(int(seconds) // 60, 60)
        passed = f"{hours}:{minutes:02}:{int(seconds) % 60:02}" if hours else f"{minutes}:{int(seconds) % 60:02}"
        line = screen.until("Ctrl-C" if state.stopping else f"  {passed}")
    *_, line = (part for part in line.split("\r") if part.endswith("\x1b[K") and "/" in part)
    return line.removesuffix("\x1b[K")


@pytest.mark.parametrize(
    ("state", "seconds", "said"),
    [
        (RunState(total=9, done=6, passed=3, failed=2, errored=1), 4, "6/9  ✓ 3  ✗ 2  ! 1  0:04  0:02 left"),
        (RunState(total=9, done=3, passed=3), 2, "3/9  ✓ 3  0:02"),
        (RunState(total=9, done=3, passed=3), 3, "3/9  ✓ 3  0:03  0:06 left"),
        (RunState(total=9, done=2, passed=2), 600, "2/9  ✓ 2  10:00"),
        (RunState(total=9, done=6, passed=6, already_done=3), 3600, "6/9  ✓ 6  1:00:00  1:00:00 left"),
        (RunState(total=9, done=6, passed=6, already_done=4), 3600, "6/9  ✓ 6  1:00:00"),
        (RunState(total=9, done=9, passed=9), 5, "9/9  ✓ 9  0:05"),
        (
            RunState(total=9, cost_usd=0.25, waiting=1, running=running(9)),
            2,
            "0/9  $0.2500  0:02  1 call waits for the budget",
        ),
        (RunState(total=9, running=running(1)), 4, "0/9  0:04  slow · v 5 s"),
        (RunState(total=9, running=running(0)), 4, "0/9  0:04"),
        (RunState(total=9, done=1, cost_usd=1, stopping=True), 4, "1/9  finishing the last cells, press Ctrl-C ag"),
    ],
)
def test_the_live_line_names_what_there_is_and_what_is_left(clock, state, seconds, said):
    line = live(clock, state, seconds)
    bar, _, rest = line.partition("  ")
    assert rest.startswith(said)
    assert (len(bar), bar.count("━")) == (24, 24 * state.done // state.total)


def test_a_decided_run_says_that_it_finishes():
    state = RunState(total=9, stopping=True, answered=True, running=running(0))
    with shown(state, terminal=True) as screen:
        assert "decided, finishing 1 cell" in screen.wait()


@pytest.mark.parametrize(("columns", "shown_at_all"), [(35, "─  0/9  ✓ 1"), (34, "─  0/9"), (29, "─")])
def test_what_would_reach_the_last_column_is_left_out_whole(clock, monkeypatch, columns, shown_at_all):
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    with shown(RunState(total=9, passed=1, failed=1), terminal=True) as screen:
        assert screen.wait().removesuffix("\x1b[K").endswith(shown_at_all)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (91, "\r" + "─" * 24 + "  0/9  ✓ 1  finishing 1 cell, press Ctrl-C again to stop now"),
        (80, "\r" + "─" * 19 + "  0/9  ✓ 1  finishing 1 cell, press Ctrl-C again to stop now"),
        (57, "\r  0/9  finishing 1 cell, press Ctrl-C again to stop now"),
        (30, "\r  finishing 1 cell, press Ct…"),
    ],
)
def test_what_the_user_may_do_stays_where_the_rest_has_no_room(clock, monkeypatch, columns, said):
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    state = RunState(total=9, passed=1, stopping=True, running=running(0))
    with shown(state, terminal=True) as screen:
        assert screen.wait() == said + "\x1b[K"


def test_a_terminal_that_does_not_say_its_width_has_80_columns(clock, monkeypatch):
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((0, 0)))
    with shown(RunState(total=9, stopping=True), terminal=True) as screen:
        assert "0/9" in screen.wait()


def test_a_run_without_cells_shows_a_full_bar(clock):
    with shown(RunState(), terminal=True) as screen:
        assert "━" * 24 + "  0/0" in screen.wait()
