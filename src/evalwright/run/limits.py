"""The one place that limits how long user code may block, and how long what it leaves behind may take to end.

Python code that blocks the main thread (a loop, `time.sleep`, a catastrophic regular expression) cannot be
cancelled by the event loop, nor by another thread: `re` keeps the interpreter lock. A timer of the operating
system sends a signal several times a second; its handler raises LimitExceeded inside the blocking code when
that is past its deadline. Loops, `time.sleep`, locks and `re` all end at a signal.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, TypeVar

from evalwright.errors import LimitExceeded

__all__ = ["LAST_SECONDS", "Watchdog", "end_loose_tasks", "run_to_end"]

T = TypeVar("T")

_PERIOD = 0.2
"""Seconds between two signals. Each interrupts whatever runs in the main thread, including system calls, and nearly all
find nothing to do, so a shorter period would only cost; blocking code may exceed its limit by as much, so with a
longer one, limits of a second would mean little."""

LAST_SECONDS = 2.0
"""How long tasks that user code left behind may take to end when they are cancelled."""


class Watchdog:
    """Interrupts code that blocks the main thread past `until`, or past the deadline of the call found on its stack.

    Works only in the main thread, because others get no signals, and only if the process is ours: otherwise its timer
    belongs to the calling program.
    """

    def __init__(self, owns_process: bool = True) -> None:
        self.until: float | None = None
        """Monotonic deadline of the synchronous code that is running now, set and cleared by its caller."""
        self.beat: float | None = None
        """When the event loop last turned; None while there is no loop."""
        self._entry: CodeType | None = None
        self._deadline_in: Callable[[FrameType], float | None] | None = None
        self._previous: Any = None
        self.watches: bool = owns_process and threading.current_thread() is threading.main_thread()
        """Whether this watchdog interrupts anything."""

    def watch_calls(self, entry: CodeType, deadline_in: Callable[[FrameType], float | None]) -> None:
        """Calls of `entry` are limited, too: `deadline_in(frame)` returns the deadline of the one on the stack."""
        self._entry, self._deadline_in = entry, deadline_in

    def __enter__(self) -> Watchdog:
        if self.watches:
            self._previous = signal.signal(signal.SIGALRM, self._interrupt)
            signal.setitimer(signal.ITIMER_REAL, _PERIOD, _PERIOD)
        return self

    def __exit__(self, *_: object) -> None:
        if self.watches:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._previous)

    def _interrupt(self, _number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.until is not None:
            if now > self.until:
                self.until = None  # once: the next signal would interrupt the code that handles this one
                raise LimitExceeded
        # As long as the loop turns, its ticker cancels late calls, which is gentler than an exception out of nowhere.
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


def run_to_end(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns, whatever other tasks raise.

    A loop stops when any task raises SystemExit or KeyboardInterrupt, also one that user code has created: whoever
    awaits that task gets the exception, and everything else goes on. Only for threads in which signals raise neither.
    """
    running = loop.create_task(work)
    while not running.done():
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_until_complete(running)
    return running.result()


def end_loose_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel a loop's remaining tasks, and wait for a limited time until they have ended."""
    loop.set_exception_handler(lambda _loop, _context: None)  # leftovers of user code deserve no log lines at the end
    if leftover := asyncio.all_tasks(loop):
        for task in leftover:
            task.cancel()
        loop.run_until_complete(asyncio.wait(leftover, timeout=LAST_SECONDS))
