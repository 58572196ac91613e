"""A call that is made in another thread, waited for there or in an event loop, and can be interrupted."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from evalwright.errors import LimitExceeded
from evalwright.session.process import end_child

__all__ = ["ThreadCall"]


class ThreadCall:
    """A function with its arguments, to be called once, with the context variables of the thread that made this."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._context = contextvars.copy_context()
        self._changing = threading.Lock()
        self._going = threading.Lock()
        """Held until the call has ended."""
        self._going.acquire()
        self._waiting: list[Callable[[], object]] = []
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread: int | None = None
        """The thread that makes the call, while it does."""
        self.queued: bool = False
        self.ended: bool = False
        self.interrupted: bool = False
        self.began: float = 0.0
        """When it began, by `time.monotonic`; 0 before that."""
        self.took: float = 0.0
        """Seconds."""

    def make(self) -> None:
        """Make the call, in this thread."""
        process = os.getpid()
        try:
            self._value = self._context.run(self)
        except BaseException as raised:  # SystemExit, too, is raised where the call is awaited
            self._error = raised
        if os.getpid() != process:
            end_child(self._error)
        self.took = time.monotonic() - self.began
        with self._changing:
            self.ended, waiting = True, self._waiting
        self._going.release()
        for wake in waiting:
            with suppress(RuntimeError):  # the loop is closed: nothing waits any more
                wake()

    def __call__(self) -> Any:
        """Make the call where whoever makes it waits for it."""
        self.began, self._thread = time.monotonic(), threading.get_ident()
        try:
            return self._function(*self._arguments)
        finally:
            with self._changing:
                self._thread = None
                if self.interrupted:  # what this thread does next must not get it
                    _raise_in(threading.get_ident(), None)

    def interrupt(self) -> None:
        """Raise LimitExceeded in the call as soon as it executes Python; what waits outside of that goes on."""
        with self._changing:
            if self._thread is not None and not self.interrupted:
                self.interrupted = True
                _raise_in(self._thread, LimitExceeded)

    def ends_within(self, seconds: float) -> bool:
        """Wait so long for its end, and return whether it came."""
        return self._going.acquire(timeout=seconds)

    async def over(self) -> None:
        """Wait for its end in the running event loop."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        with self._changing:
            if self.ended:
                return
            self._waiting.append(partial(loop.call_soon_threadsafe, _wake, woken))
        await woken

    async def end(self) -> Any:
        """What it returns or raises, once it has ended."""
        await self.over()
        return self.result()

    def result(self) -> Any:
        """What it returned or raised."""
        if self._error is not None:
            raise self._error
        return self._value


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Raise an exception in a thread as soon as it executes Python; with None, one that has not arrived yet is not."""
    raised = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
