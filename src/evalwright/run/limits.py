"""The one place that bounds how long user code may block, and that keeps it from ending the process.

Python code that blocks the main thread (a loop, `time.sleep`, a catastrophic regular expression) cannot be
cancelled by the event loop. A watchdog thread sees that a deadline has passed and sends the main thread a
signal, whose handler raises LimitExceeded inside the blocking code: `time.sleep` and `re` both end at a signal.
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

from evalwright.errors import LimitExceeded

__all__ = ["Watchdog", "exits_refused"]

_SIGNAL = signal.SIGURG  # ignored by default, so that a late one does no harm
_PERIOD = 0.2


class Watchdog:
    """Interrupts what blocks the main thread past `until`, or past the deadline of the call found on its stack."""

    def __init__(self) -> None:
        self.until: float | None = None
        """Monotonic deadline of the synchronous code that is running now, set and cleared by its caller."""
        self.beat: float | None = None
        """When the event loop last turned; None while there is no loop."""
        self._entry: CodeType | None = None
        self._deadline_in: Callable[[FrameType], float | None] | None = None
        self._stop = threading.Event()
        self._previous: Any = None
        self._watches = threading.current_thread() is threading.main_thread()

    def watch_calls(self, entry: CodeType, deadline_in: Callable[[FrameType], float | None]) -> None:
        """Calls of `entry` are bounded too: `deadline_in(frame)` gives the deadline of the one on the stack."""
        self._entry, self._deadline_in = entry, deadline_in

    def __enter__(self) -> Watchdog:
        if self._watches:
            self._previous = signal.signal(_SIGNAL, self._interrupt)
            threading.Thread(target=self._watch, name="evalwright-watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._watches:
            signal.signal(_SIGNAL, self._previous)

    def _watch(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        while not self._stop.wait(_PERIOD):
            now = time.monotonic()
            until, beat = self.until, self.beat
            if (until is not None and now > until) or (beat is not None and now > beat + 2 * _PERIOD):
                signal.pthread_kill(main, _SIGNAL)

    def _interrupt(self, _number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.until is not None:
            if now > self.until:
                self.until = None
                raise LimitExceeded
            return
        while frame is not None:
            if frame.f_code is self._entry and self._deadline_in is not None:
                deadline = self._deadline_in(frame)
                if deadline is not None and now > deadline:
                    raise LimitExceeded
                return
            frame = frame.f_back


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
