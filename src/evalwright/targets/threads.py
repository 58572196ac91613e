"""Runs blocking user code in threads.

A thread that never comes back must not keep the process from ending, so these are daemon threads, and one that is stuck
is left behind and replaced. The pool of the standard library waits for all of its threads.

Calls wait in one queue. As long as they are short, one thread makes them all: more threads would only pass the
interpreter's lock back and forth. So would handing over single calls and answers: the event loop hands over all calls
of a turn at once, and is woken once for their answers. Once calls take long, each gets a thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from evalwright.session.process import end_child

__all__ = ["Threads"]

_SHORT = 0.001
"""Seconds up to which it is cheaper to wait for a call than to start the next one in another thread."""
_SOME = 10
"""If one call in this many is long, each gets a thread; a rarer long one may merely have waited for the processor."""
_LOOK = 0.005
"""Seconds between checks of a call that has not come back, while others wait for its thread."""

_Done = asyncio.Future[tuple[Any, BaseException | None]]


class _Exchange:
    """Calls and answers on their way between an event loop and threads."""

    __slots__ = ("_answers", "_woken", "calls", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.calls: list[_Job] = []
        """Those of the present turn of the loop."""
        self._answers: deque[tuple[_Done, Any, BaseException | None]] = deque()
        self._woken = False

    def add(self, done: _Done, value: Any, error: BaseException | None) -> None:
        """Add an answer, from any thread. The loop gets it when it is woken the next time."""
        self._answers.append((done, value, error))

    def wake(self) -> None:
        """Wake the loop for the answers, from any thread."""
        if not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # the run is over and its loop is closed: nothing is awaited any more
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._woken = False  # first: whatever arrives from now on wakes the loop again
        while self._answers:
            done, value, error = self._answers.popleft()
            if not done.done():  # it is done if the call was cancelled at its time limit
                done.set_result((value, error))


_Job = tuple[contextvars.Context, Callable[..., Any], tuple[Any, ...], _Done, _Exchange]
_Jobs = SimpleQueue[_Job | None]


class Threads:
    """One thread for short calls, as many as there were concurrent calls for others; idle ones are reused."""

    def __init__(self) -> None:
        self._jobs: _Jobs = SimpleQueue()
        self._exchange: _Exchange | None = None
        self._counting = threading.Lock()
        self._threads = 0
        self._calls = 0
        """Calls being made or waiting: as long as there are at least as many threads, none waits for another."""
        self._one_each = False
        self._looking: set[asyncio.AbstractEventLoop] = set()
        """The loops that will look whether the call that is being made takes long."""
        self._made = self._long = 0
        self._since: float | None = None
        """When the call that is being made began, as long as there is one thread."""
        self._held: set[_Exchange] = set()
        """Where answers wait for those of the next calls, as long as there is one thread."""

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `function(*arguments)` returns or raises, in a thread, with the caller's context variables."""
        loop = asyncio.get_running_loop()
        exchange = self._exchange
        if exchange is None or exchange.loop is not loop:
            exchange = self._exchange = _Exchange(loop)
        if not exchange.calls:
            loop.call_soon(self._hand_over, exchange)
        done: _Done = loop.create_future()
        exchange.calls.append((contextvars.copy_context(), function, arguments, done, exchange))
        value, error = await done
        if error is not None:
            raise error
        return value

    async def result_of(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The same for a function that may be asynchronous, which runs in the event loop."""
        if inspect.iscoroutinefunction(function):
            return await function(*arguments)
        result = await self.call(function, *arguments)
        # An object with an asynchronous `__call__`, or a partial of one, reveals only now what it is.
        return await result if inspect.isawaitable(result) else result

    def close(self) -> None:
        """Let idle threads end, and the others after their call."""
        with self._counting:
            for _ in range(self._threads):
                self._jobs.put(None)
            self._jobs, self._threads, self._calls = SimpleQueue(), 0, 0

    def _hand_over(self, exchange: _Exchange) -> None:
        """Let threads make the calls of the last turn of the event loop."""
        calls, exchange.calls = exchange.calls, []
        with self._counting:
            total = self._calls + len(calls)
            try:
                for _ in range((total if self._one_each else 1) - self._threads):
                    self._start()
            except RuntimeError as error:
                for _, _, _, done, _ in calls:
                    exchange.add(done, None, error)
                exchange.wake()
                return
            if not self._one_each and total > 1 and exchange.loop not in self._looking:  # one waits for another
                self._looking = {loop for loop in self._looking if not loop.is_closed()} | {exchange.loop}
                exchange.loop.call_later(_LOOK, self._look, exchange.loop)
            self._calls = total
            for call in calls:
                self._jobs.put(call)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give each call a thread if the one being made takes long; else check again while others wait. Deliver the
        answers that were held until now."""
        with self._counting:
            held, self._held = self._held, set()
            since = self._since
            if since is not None and time.monotonic() - since > _LOOK:
                self._part()
            if self._one_each or self._calls < 2:
                self._looking.discard(loop)
            else:
                loop.call_later(_LOOK, self._look, loop)
        for exchange in held:
            exchange.wake()

    def _part(self) -> None:
        """From now on, each call gets a thread."""
        self._one_each = True
        for _ in range(self._calls - self._threads):
            self._start()

    def _ended(self, began: float, exchange: _Exchange) -> Collection[_Exchange]:
        """Note the end of a call. Returns the exchanges whose loops to wake: none while there are more calls."""
        self._calls -= 1
        if self._one_each:
            return (exchange,)
        self._since = None
        self._made += 1
        self._long += time.monotonic() - began > _SHORT
        if self._long * _SOME > self._made:
            self._part()
        self._held.add(exchange)
        # An answer is held only if its own loop looks: another may end before it does.
        if exchange.loop in self._looking and not self._jobs.empty():
            return ()
        held, self._held = self._held, set()
        return held

    def _start(self) -> None:
        """Start one more thread. If none can be started, the existing ones make the calls; RuntimeError if there are
        none."""
        try:
            threading.Thread(target=self._work, args=(self._jobs,), name="evalwright-call", daemon=True).start()
        except RuntimeError:
            if not self._threads:
                raise
        else:
            self._threads += 1

    def _work(self, jobs: _Jobs) -> None:
        process = os.getpid()
        while (job := jobs.get()) is not None:
            context, function, arguments, done, exchange = job
            value, error = None, None
            began = self._since = time.monotonic()
            try:
                if not done.cancelled():  # a call whose result is no longer awaited must not begin
                    value = context.run(function, *arguments)
                    if os.getpid() != process:
                        end_child()
            except BaseException as raised:  # SystemExit, too, is raised in the caller: here it would end the thread
                if os.getpid() != process:
                    end_child(raised)
                error = raised
            exchange.add(done, value, error)
            with self._counting:
                due = self._ended(began, exchange) if jobs is self._jobs else (exchange,)
            for answered in due:  # outside of the lock, for which the woken loop would have to wait
                answered.wake()
            job = context = function = arguments = done = None  # type: ignore[assignment]  # keep no cell's data alive
            value = error = None
