"""Runs blocking user code in threads.

A thread that never comes back must not keep the process from ending, so these are daemon threads, and one that is stuck
is left behind and replaced. The pool of the standard library waits for all of its threads.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

__all__ = ["Threads"]

_Job = tuple[Callable[[], Any], asyncio.Future[tuple[Any, BaseException | None]], asyncio.AbstractEventLoop]


class Threads:
    """As many threads as there are concurrent calls; idle ones are reused."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[_Job | None]] = []

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `function(*arguments)` returns or raises, in a thread, with the caller's context variables."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = contextvars.copy_context()
        inbox = self._idle.pop() if self._idle else self._start()
        inbox.put((lambda: context.run(function, *arguments), done, loop))
        value, error = await done
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Let idle threads end."""
        while self._idle:
            self._idle.pop().put(None)

    def _start(self) -> SimpleQueue[_Job | None]:
        inbox: SimpleQueue[_Job | None] = SimpleQueue()
        threading.Thread(target=self._work, args=(inbox,), name="evalwright-call", daemon=True).start()
        return inbox

    def _work(self, inbox: SimpleQueue[_Job | None]) -> None:
        while (job := inbox.get()) is not None:
            function, done, loop = job
            value, error = None, None
            try:
                value = function()
            except BaseException as raised:  # SystemExit, too, is raised in the caller: here it would end the thread
                error = raised
            try:
                loop.call_soon_threadsafe(self._deliver, inbox, done, value, error)
            except RuntimeError:
                return  # the run is over and its loop is closed: this result is no longer awaited
            job = function = done = value = error = None  # type: ignore[assignment]  # keep no cell's data alive

    def _deliver(
        self,
        inbox: SimpleQueue[_Job | None],
        done: asyncio.Future[tuple[Any, BaseException | None]],
        value: Any,
        error: BaseException | None,
    ) -> None:
        self._idle.append(inbox)
        if not done.done():  # it is, if the call was cancelled at its time limit
            done.set_result((value, error))
