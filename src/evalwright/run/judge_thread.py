"""Synchronous evaluators that may take any time, in a thread: meanwhile, the event loop receives answers, and an
evaluator that is late can be left behind.

They run one after another, because the user's code need not be thread-safe, unless they say that they wait for models.
Time spent waiting for the turn does not count as the evaluator's. A call that ends at once is waited for, as waking the
event loop takes several times as long as changing threads; that changes nothing but the time.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.llm.patience import bounded_by, standing_still
from evalwright.run.records import timed_out
from evalwright.run.thread_calls import ThreadCall
from evalwright.targets.failures import placed
from evalwright.targets.threads import Threads

__all__ = ["JudgeThread"]

_SHORT = 0.002
"""Seconds of the last call up to which the next one is expected to end at once."""
_MOMENT = 0.02
"""Seconds for which the event loop then waits for it instead of turning: less than the precision of time limits, and
enough for a thread to begin on a busy machine."""
_Jobs = SimpleQueue[ThreadCall | None]


class JudgeThread:
    """One thread at a time, which is replaced if it is left behind, and more for evaluators that wait for models."""

    def __init__(self) -> None:
        self._threads = Threads()
        self._jobs: _Jobs | None = None
        """The calls for the one thread; None while there is none."""
        self._turn = asyncio.Lock()
        self._late: ThreadCall | None = None
        """The last call, unless it was short."""

    def bounded(
        self, evaluate: Callable[..., Any], limit: float, limit_of_awaited: float, *, together: bool
    ) -> Callable[..., Any]:
        """`evaluate` with its time limits in seconds: until it returns, and until an awaitable that it returns is done.

        What it returns is given at once, or awaited. `together` runs it while others run. An asynchronous function
        needs no thread: calling it blocks nothing.
        """
        if inspect.iscoroutinefunction(evaluate):
            return lambda *arguments: _within(limit_of_awaited, evaluate(*arguments))

        async def finished(call: ThreadCall) -> Any:
            try:
                if together:
                    result = await _within(limit, self._threads.call(call))
                elif call.queued:
                    result = await _within(limit, call.end())
                else:
                    result = await self._in_turn(call, limit)
            finally:
                call.interrupt()  # if it still goes on
            return await _within(limit_of_awaited, result) if isinstance(result, Awaitable) else result

        def evaluated(*arguments: Any) -> Any:
            call = ThreadCall(evaluate, arguments)
            if together or self._must_wait or not self._ends_at_once(call):
                return _WaitingCall(call, finished)
            result = call.result()
            return _within(limit_of_awaited, result) if isinstance(result, Awaitable) else result

        return evaluated

    def close(self) -> None:
        """Let the threads end: a program may evaluate any number of runs."""
        self._threads.close()
        self._replace()

    @property
    def _must_wait(self) -> bool:
        """Whether another call is made, or the last one was long, as the next one will be."""
        return self._turn.locked() or self._late is not None

    def _ends_at_once(self, call: ThreadCall) -> bool:
        """Begin a call, and wait a moment for its end."""
        self._begin(call)
        ended = call.ends_within(_MOMENT)
        self._forget_short(call)
        return ended

    async def _in_turn(self, call: ThreadCall, limit: float) -> Any:
        with standing_still():
            await self._turn.acquire()
        try:
            if self._late is not None:
                with standing_still():
                    await self._over(self._late, limit)
            self._begin(call)
            try:
                return await _within(limit, call.end())
            finally:
                self._forget_short(call)
        finally:
            self._turn.release()

    def _forget_short(self, call: ThreadCall) -> None:
        if call.ended and call.took < _SHORT:
            self._late = None

    async def _over(self, call: ThreadCall, limit: float) -> None:
        """Wait until an earlier call has ended, or leave it behind, if nobody else has done so."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if call.interrupted else limit):
                await call.over()
        if not call.ended:
            call.interrupt()
            self._replace()
        self._late = None

    def _begin(self, call: ThreadCall) -> None:
        if self._jobs is None:
            self._jobs = SimpleQueue()
            Thread(target=_work, args=(self._jobs,), name="evalwright-judge", daemon=True).start()
        call.queued, self._late = True, call
        self._jobs.put(call)

    def _replace(self) -> None:
        """Let the thread end after its call."""
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None


class _WaitingCall:
    """A call that has not ended yet, with the awaitable that it may return."""

    def __init__(self, call: ThreadCall, function: Callable[[ThreadCall], Awaitable[Any]]) -> None:
        self._call, self._made = call, function

    @property
    def began(self) -> float:
        return self._call.began

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._made(self._call).__await__()


def _work(jobs: _Jobs) -> None:
    while (call := jobs.get()) is not None:
        call.make()
        del call  # no cell's data is kept until the next one comes


async def _within(limit: float, awaited: Awaitable[Any]) -> Any:
    try:
        async with bounded_by(limit) as bound:
            return await awaited
    except TimeoutError as error:
        if bound.expired():
            late = timed_out(limit)
            raise EvaluatorError(late.message, late.type) from None
        raise EvaluatorError(placed(error), type(error).__name__) from error
