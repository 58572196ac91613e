"""Progress of a run on stderr: one live line on a terminal, occasional plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TextIO

from evalwright.errors import counted, money
from evalwright.reports.text import Paint, ended, is_terminal, one_line, paint_for, width
from evalwright.run.cells import RunState

__all__ = ["progress_on"]

_FRAME = 0.1
_FIRST_LINES = (2.0, 10.0, 30.0)
_THEN_EVERY = 60.0
_LOOK = 0.2
"""Seconds between checks of whether the run is to end, if nothing else is shown as often."""
_BAR = 24
_WORTH_NAMING = 5.0
"""Seconds after which the oldest running cell is named."""

Mask = Callable[[str], str]


def progress_on(stream: TextIO | None = None, mask: Mask = str) -> Callable[[RunState], AbstractContextManager[None]]:
    """A display for `run_suite` and the like; `mask` removes secrets from the names of cells."""
    out = sys.stderr if stream is None else stream
    show = _live if is_terminal(out) else _print_lines

    @contextmanager
    def watch(state: RunState) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=show, args=(state, out, mask, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=1.0)

    return watch


def _print_lines(state: RunState, out: TextIO, mask: Mask, over: threading.Event) -> None:
    start, moments, stops = time.monotonic(), _moments(), False
    moment = next(moments)
    with suppress(OSError, ValueError):
        while not over.wait(min(_LOOK, max(0.0, start + moment - time.monotonic()))):
            if state.stopping and not stops:
                stops = True
                out.write(_stopping(state) + "\n")
                out.flush()
            if (seconds := time.monotonic() - start) >= moment:
                moment = next(moments)
                out.write(", ".join(_facts(state, mask, seconds)) + "\n")
                out.flush()


def _moments() -> Iterator[float]:
    yield from _FIRST_LINES
    moment = _THEN_EVERY
    while True:
        yield moment
        moment += _THEN_EVERY


def _facts(state: RunState, mask: Mask, seconds: float) -> Iterator[str]:
    yield f"{state.done:,}/{state.total:,} done after {_clock(seconds)}"
    for number, word in ((state.passed, "passed"), (state.failed, "failed")):
        if number:
            yield f"{number:,} {word}"
    if state.errored:
        yield counted(state.errored, "error")
    if state.cost_usd:
        yield money(state.cost_usd)
    if state.waiting:  # the oldest cell may be one of those
        yield _waiting_text(state)
    elif (oldest := state.oldest()) and oldest[1] >= _WORTH_NAMING:
        yield f"{one_line(mask(oldest[0]), 60)} running for {oldest[1]:.0f} s"


def _waiting_text(state: RunState) -> str:
    wait = "waits" if state.waiting == 1 else "wait"
    return f"{counted(state.waiting, 'call')} {wait} for the budget"


def _stopping(state: RunState) -> str:
    # Without a call in flight, answers may still be judged.
    left = counted(len(state.running), "cell") if state.running else "the last cells"
    if state.answered or state.halted:
        return f"{'decided' if state.answered else 'stopped'}, finishing {left}"
    return f"finishing {left}, press Ctrl-C again to stop now"


def _live(state: RunState, out: TextIO, mask: Mask, over: threading.Event) -> None:
    paint, start = paint_for(out), time.monotonic()
    with suppress(OSError, ValueError):
        while not over.wait(_FRAME):
            parts = list(_live_parts(state, mask, time.monotonic() - start))
            out.write("\r" + _line(state, parts, paint, _columns(out)) + "\x1b[K")
            out.flush()
        out.write("\r\x1b[K")
        out.flush()


def _columns(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _bar(state: RunState, paint: Paint, length: int) -> str:
    full = length if not state.total else length * state.done // state.total
    return paint("━" * full, "pass") + paint("─" * (length - full), "dim")


def _live_parts(state: RunState, mask: Mask, seconds: float) -> Iterator[tuple[str, str]]:
    yield f"{state.done:,}/{state.total:,}", "bold"
    for number, mark, style in (
        (state.passed, "✓", "pass"),
        (state.failed, "✗", "fail"),
        (state.errored, "!", "error"),
    ):
        if number:
            yield f"{mark} {number:,}", style
    if state.stopping:
        return
    if state.cost_usd:
        yield money(state.cost_usd), ""
    yield _clock(seconds), "dim"
    if (left := _seconds_left(state, seconds)) is not None:
        yield f"{_clock(left)} left", "dim"
    if state.waiting:
        yield _waiting_text(state), "dim"
    elif (oldest := state.oldest()) and oldest[1] >= _WORTH_NAMING:
        yield f"{one_line(mask(oldest[0]), 40)} {oldest[1]:.0f} s", "dim"


def _seconds_left(state: RunState, seconds: float) -> float | None:
    """Estimated seconds to the end; None while too few cells are finished for an estimate."""
    fresh = state.done - state.already_done
    if seconds < 3 or fresh < 3 or state.done >= state.total:
        return None
    return seconds * (state.total - state.done) / fresh


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _line(state: RunState, parts: list[tuple[str, str]], paint: Paint, columns: int) -> str:
    """A longer line would wrap, and its first half stay on the screen."""
    if not state.stopping:
        return _bar(state, paint, _BAR) + _fitting(parts, paint, columns - _BAR)
    line = ended(_stopping(state), columns - 3)  # what the user can do now matters most, then the counts
    room = columns - 2 - width(line)
    bar = max(0, min(_BAR, room - 1 - sum(2 + width(text) for text, _ in parts)))
    style = "pass" if state.answered else "error"
    return _bar(state, paint, bar) + _fitting(parts, paint, room - bar) + "  " + paint(line, style)


def _fitting(parts: list[tuple[str, str]], paint: Paint, columns: int) -> str:
    """As many parts as fit, each whole."""
    line, used = "", 0
    for text, style in parts:
        used += 2 + width(text)
        if used >= columns:
            break
        line += "  " + paint(text, style)
    return line
