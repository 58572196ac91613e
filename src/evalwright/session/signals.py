"""Receives Ctrl-C, SIGTERM and SIGHUP in a process that is ours: none of them gets lost or interrupts a write."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

from evalwright.errors import Interrupted

__all__ = ["INTERRUPTED", "Ending", "Signals", "as_ctrl_c"]

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

INTERRUPTED = 130
"""The exit code of a command that a signal ended, as shells have it for Ctrl-C."""

T = TypeVar("T")

_LAST_SECONDS = 5
"""How long the end of the process waits for threads of users' code, of which any may go on for ever."""


class Signals:
    """Signals that ask the process to end, until the end of the block, in the main thread of a process of ours.

    They are held back, for code whose writes must not be cut short; blocks within say what is called instead.
    Where the process is not ours, nothing is changed.
    """

    def __init__(self, owns_process: bool = True) -> None:
        self._catches = owns_process and threading.current_thread() is threading.main_thread()
        self._previous: dict[signal.Signals, Any] = {}
        self._kept: list[int] = []
        self._listener: Callable[[int], None] | None = None

    def __enter__(self) -> Signals:
        if self._catches:
            self._previous = {number: signal.signal(number, self._on_signal) for number in _handled_signals()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def handled_by(self, listener: Callable[[int], None] | None) -> Iterator[None]:
        """In this block signals go to the listener, first all those held back; None holds them back."""
        before, self._listener = self._listener, listener
        try:
            self._deliver()
            yield
        finally:
            self._listener = before
        self._deliver()

    @contextmanager
    def raising(self, error: type[BaseException] = Interrupted) -> Iterator[None]:
        """In this block signals raise as soon as they arrive.

        Python swallows exceptions in some places, such as finalisers, and elsewhere they may turn into another error:
        in either case the end of the block raises.
        """
        requested = False

        def end(_number: int) -> None:
            nonlocal requested
            requested = True
            raise error

        try:
            with self.handled_by(end):
                yield
        finally:
            if requested:
                raise error

    def held(self) -> Any:
        """Signals that arrive in this block are held back until it ends."""
        return self.handled_by(None)

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items; a signal that arrives while the next one is made raises KeyboardInterrupt."""
        making, interrupted = iter(items), False

        def end(_number: int) -> None:
            nonlocal interrupted
            interrupted = True
            raise KeyboardInterrupt

        # Like `raising`, without its blocks: a dataset may have a million cases.
        while True:
            before, self._listener = self._listener, end
            try:
                if self._kept:
                    self._deliver()
                item = next(making)
            except StopIteration:
                return
            finally:
                self._listener = before
                if interrupted:
                    raise KeyboardInterrupt
            yield item

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._kept.append(number)
        self._deliver()

    def _deliver(self) -> None:
        while self._listener is not None:
            try:
                number = self._kept.pop(0)
            except IndexError:  # not checked beforehand: a signal that arrives in between also reports those before it
                return
            self._listener(number)


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """In this block SIGTERM and SIGHUP do what Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = [number for number in _handled_signals() if number != signal.SIGINT]
    previous = {number: signal.signal(number, signal.getsignal(signal.SIGINT)) for number in wanted}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class Ending:
    """How a command line reacts to signals outside of blocks that hold them back: the first raises KeyboardInterrupt.

    Further ones, and all of them once the exit code is known, end the process at once: an exception raised between our
    last block and the end of the interpreter would change how the process ends.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self._exit = os._exit  # a session's `os._exit` refuses to end the process
        if threading.current_thread() is threading.main_thread():
            for number in _handled_signals():
                signal.signal(number, self._on_signal)
            # Behind threads that are waited for: the interpreter resets handlers that are functions before it ends.
            atexit.register(_ignore)
            self._unraisable, sys.unraisablehook = sys.unraisablehook, self._on_unraisable

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.code is not None:
            self._exit(self.code)
        self.code = INTERRUPTED
        raise KeyboardInterrupt

    def wait_briefly(self, code: int) -> None:
        """End the process with its exit code, some seconds from now, if threads of users' code still keep it then.

        Functions that they have registered with `atexit` are waited for as usual.
        """
        here = (threading.main_thread(), threading.current_thread())
        others = [thread for thread in threading.enumerate() if not thread.daemon and thread not in here]
        if not others:
            return
        waited = threading.Event()
        atexit.register(waited.set)  # the first to be called, once all threads have ended

        def end() -> None:
            if not waited.wait(_LAST_SECONDS):
                names = ", ".join(sorted(thread.name for thread in others if thread.is_alive()))
                with suppress(OSError, ValueError):
                    print(f"not waited for: threads of the suite's code that still run ({names})", file=sys.stderr)
                    sys.stdout.flush()
                    sys.stderr.flush()
                self._exit(code)

        threading.Thread(target=end, name="evalwright-end", daemon=True).start()

    def _on_unraisable(self, lost: sys.UnraisableHookArgs) -> None:
        """Python prints an exception from a finaliser and goes on. A signal that raised it has been noted already."""
        if not issubclass(lost.exc_type, (KeyboardInterrupt, Interrupted)):
            self._unraisable(lost)


def _ignore() -> None:
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _handled_signals() -> list[signal.Signals]:
    """`nohup` makes the process ignore SIGHUP, on purpose."""
    return [n for n in _NUMBERS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
