"""Time limits for code that waits for a model; they are paused while a call waits for money, or for its turn.

How long that wait takes says nothing about the evaluator or system that is limited, and would end all but the first
ones if the budget allows only a few concurrent calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar, cast

__all__ = ["all_given", "bounded_by", "standing_still", "stops"]

T = TypeVar("T")
Stop = Callable[[], Callable[[], None]]
"""Stops a clock; the returned function starts it again."""
stops: ContextVar[Stop | None] = ContextVar("evalwright_stops", default=None)
"""Stops the clock of this context; None if there is no clock."""


@contextmanager
def standing_still() -> Iterator[None]:
    """Pause the clock of this context during the block."""
    stop = stops.get()
    if stop is None:
        yield
        return
    start = stop()
    try:
        yield
    finally:
        start()


@asynccontextmanager
async def bounded_by(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """Like `asyncio.timeout`, without the time for which calls in the block wait for money."""
    async with asyncio.timeout(seconds) as bound:
        token = stops.set(_PausableLimit(bound).stop)
        try:
            yield bound
        finally:
            stops.reset(token)


async def all_given(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Like `asyncio.gather`, but if one raises, that is raised only once the others have ended.

    So model calls that are under way get their replies, even if another call is not made any more.
    """
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return cast("list[T]", outcomes)


class _PausableLimit:
    """A time limit that several calls may pause at the same time."""

    def __init__(self, bound: asyncio.Timeout) -> None:
        self._bound, self._stops, self._left = bound, 0, 0.0

    def stop(self) -> Callable[[], None]:
        now, when = asyncio.get_running_loop().time(), self._bound.when()
        if self._stops == 0 and when is not None:
            self._left = when - now
            self._reschedule(None)
        self._stops += 1
        return self._start

    def _start(self) -> None:
        self._stops -= 1
        if self._stops == 0:
            self._reschedule(asyncio.get_running_loop().time() + self._left)

    def _reschedule(self, when: float | None) -> None:
        with suppress(RuntimeError):  # the block has ended, and the call was left running
            self._bound.reschedule(when)
