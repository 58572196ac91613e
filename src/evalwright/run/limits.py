"""The one place that limits how long user code may block, and how long what it leaves behind may take to end.

Python code that blocks the main thread (a loop, `time.sleep`, a catastrophic regular expression) cannot be
cancelled by the event loop, nor by another thread: `re` keeps the interpreter lock. A timer of the operating
system sends a signal several times a second; its handler raises LimitExceeded inside the blocking code when
that is past its deadline. Loops, `time.sleep`, locks and `re` all end at a signal.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from evalwright.errors import LimitExceeded

__all__ = ["LAST_SECONDS", "Watchdog", "deadlines", "end_loose_tasks", "end_of", "held_to", "new_loop", "run_to_end"]

T = TypeVar("T")

_PERIOD = 0.2
"""Seconds between two signals. Each interrupts whatever runs in the main thread, including system calls, and nearly all
find nothing to do, so a shorter period would only cost; blocking code may exceed its limit by as much, so with a
longer one, limits of a second would mean little."""

_FILES_OF_A_LOOP = 3
"""Its selector, and two sockets with which other threads wake it."""
_STANDSTILL = 0.5
"""Seconds for which a loop may be kept from turning before its clock stands still."""
LAST_SECONDS = 2.0
"""How long tasks that user code left behind may take to end when they are cancelled."""


deadlines: ContextVar[Callable[[], float | None]] = ContextVar("evalwright_deadlines")
"""Tells until when the code of this context may run: monotonic, None for ever. A task has the context of the code that
starts it, so that the deadline of a call holds for the tasks of user code, too."""


@contextmanager
def held_to(deadline: Callable[[], float | None]) -> Iterator[None]:
    """Code of the block that blocks the event loop past the deadline gets LimitExceeded."""
    token = deadlines.set(deadline)
    try:
        yield
    finally:
        deadlines.reset(token)


class Watchdog:
    """Interrupts code that blocks the main thread past `until`, or past the deadline of its context.

    Works only in the main thread, because others get no signals, and only if the process is ours: otherwise its timer
    belongs to the calling program.
    """

    def __init__(self, owns_process: bool = True) -> None:
        self.until: float | None = None
        """Monotonic deadline of the synchronous code that is running now, set and cleared by its caller."""
        self.beat: float | None = None
        """When the event loop last turned; None while there is no loop."""
        self._previous: Any = None
        self.watches: bool = owns_process and threading.current_thread() is threading.main_thread()
        """Whether this watchdog interrupts anything."""

    def __enter__(self) -> Watchdog:
        if self.watches:
            self._previous = signal.signal(signal.SIGALRM, self._interrupt)
            signal.setitimer(signal.ITIMER_REAL, _PERIOD, _PERIOD)
        return self

    def __exit__(self, *_: object) -> None:
        if self.watches:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._previous)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.until is not None:
            if now > self.until:
                self.until = None  # once: the next signal would interrupt the code that handles this one
                raise LimitExceeded
        # As long as the loop turns, its ticker cancels late calls, which is gentler than an exception out of nowhere.
        elif self.beat is not None and now > self.beat + 2 * _PERIOD and _overdue(now):
            raise LimitExceeded


def _overdue(now: float) -> bool:
    """Whether the code that blocks the event loop is past its deadline. The handler of a signal has its context."""
    deadline_of = deadlines.get(None)
    deadline = None if deadline_of is None else deadline_of()
    return deadline is not None and now > deadline


def end_of(limit: asyncio.Timeout) -> Callable[[], float | None]:
    """The deadline of a time limit of the running loop, for `held_to`."""
    loop = asyncio.get_running_loop()

    def deadline() -> float | None:
        when = limit.when()
        return None if when is None else when - loop.time() + time.monotonic()

    return deadline


class _Selector(selectors.DefaultSelector):
    """Takes note of the time for which its loop was kept from turning."""

    def __init__(self) -> None:
        super().__init__()
        self.lost, self._back = 0.0, time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        begun = time.monotonic()
        self._lose(begun - self._back)
        ready = super().select(timeout)
        self._back = time.monotonic()
        if timeout is not None:
            self._lose(self._back - begun - max(timeout, 0.0))
        return ready

    def _lose(self, seconds: float) -> None:
        if seconds > _STANDSTILL:
            self.lost += seconds


class _Loop(asyncio.SelectorEventLoop):
    """Its clock stands still while code blocks it, and while the whole process is stopped, as by Ctrl-Z.

    What it waits for may have come long since, and must not be late only because nothing could take note of it.
    """

    def __init__(self) -> None:
        self._turns = _Selector()
        super().__init__(self._turns)

    def time(self) -> float:
        return time.monotonic() - self._turns.lost


def new_loop() -> asyncio.AbstractEventLoop:
    """A new event loop, whose clock stands still while nothing can turn it. Raises OSError if too few files may be
    open."""
    # Tried before, because asyncio would print a traceback when it throws away a loop that it could not complete.
    with ExitStack() as tried:
        for _ in range(_FILES_OF_A_LOOP):
            tried.enter_context(Path(os.devnull).open("rb"))
    return _Loop()


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
