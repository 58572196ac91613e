"""The one place that bounds how long user code may block, and that keeps it from ending the process.

Python code that blocks the main thread (a loop, `time.sleep`, a catastrophic regular expression) cannot be
cancelled by the event loop, nor by another thread: `re` keeps the interpreter lock. A timer of the operating
system sends a signal several times a second; its handler raises LimitExceeded inside the blocking code when
that is past its deadline. Loops, `time.sleep`, locks and `re` all end at a signal.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from evalwright.errors import Interrupted, LimitExceeded

__all__ = ["Interrupts", "Watchdog", "exits_refused"]

_PERIOD = 0.2


class Watchdog:
    """Interrupts what blocks the main thread past `until`, or past the deadline of the call found on its stack.

    Works only when entered in the main thread: others get no signals.
    """

    def __init__(self) -> None:
        self.until: float | None = None
        """Monotonic deadline of the synchronous code that is running now, set and cleared by its caller."""
        self.beat: float | None = None
        """When the event loop last turned; None while there is no loop."""
        self._entry: CodeType | None = None
        self._deadline_in: Callable[[FrameType], float | None] | None = None
        self._previous: Any = None
        self._watches = threading.current_thread() is threading.main_thread()

    def watch_calls(self, entry: CodeType, deadline_in: Callable[[FrameType], float | None]) -> None:
        """Calls of `entry` are bounded too: `deadline_in(frame)` gives the deadline of the one on the stack."""
        self._entry, self._deadline_in = entry, deadline_in

    def __enter__(self) -> Watchdog:
        if self._watches:
            self._previous = signal.signal(signal.SIGALRM, self._interrupt)
            signal.setitimer(signal.ITIMER_REAL, _PERIOD, _PERIOD)
        return self

    def __exit__(self, *_: object) -> None:
        if self._watches:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._previous)

    def _interrupt(self, _number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.until is not None:
            if now > self.until:
                self.until = None
                raise LimitExceeded
        elif self.beat is not None and now > self.beat + 2 * _PERIOD and self._overdue(frame, now):
            raise LimitExceeded

    def _overdue(self, frame: FrameType | None, now: float) -> bool:
        """Whether the code that blocks the event loop belongs to a call past its deadline."""
        while frame is not None:
            if frame.f_code is self._entry and self._deadline_in is not None:
                deadline = self._deadline_in(frame)
                return deadline is not None and now > deadline
            frame = frame.f_back
        return False


class Interrupts:
    """Ctrl-C and SIGTERM raise Interrupted where they arrive, in the main thread, until the end of the block.

    Python swallows what is raised in some places, as in finalisers, and elsewhere it may end as another error:
    the end of the block raises Interrupted whatever came of it.
    """

    def __init__(self) -> None:
        self._asked = self._held = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            numbers = (signal.SIGINT, signal.SIGTERM)
            self._previous = {number: signal.signal(number, self._interrupt) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self._asked:
            raise Interrupted

    @contextmanager
    def held(self) -> Iterator[None]:
        """Those that arrive in this block are raised at its end."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._asked:
            raise Interrupted

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True
        if not self._held:
            raise Interrupted


class ExitRefused(BaseException):
    """User code called `os._exit`; it would have ended the run without a word."""


@contextmanager
def exits_refused() -> Iterator[None]:
    """Make `os._exit` in this process raise instead; children that user code forks may still use it."""
    real, owner = os._exit, os.getpid()

    def refuse(status: int) -> None:
        if os.getpid() != owner:
            real(status)
        raise ExitRefused(f"the code called os._exit({status}); run it with isolation: process")

    os._exit = refuse  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = real
