"""Time limits for code that waits for a model; they stand still while a call waits for money.

How long that takes says nothing about the evaluator or the system that is bounded, and would end all but the first ones
where a budget lets few calls be made at a time.
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
"""Stops a clock; what it returns starts it again."""
stops: ContextVar[Stop | None] = ContextVar("evalwright_stops", default=None)
"""How the clock of this context is stopped; None if nothing waits."""


@contextmanager
def standing_still() -> Iterator[None]:
    """The clock of this context does not run in the block."""
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
    """As `asyncio.timeout`, but for the time in which calls of the block wait for money."""
    async with asyncio.timeout(seconds) as bound:
        token = stops.set(_Still(bound).stop)
        try:
            yield bound
        finally:
            stops.reset(token)


async def all_given(calls: Iterable[Awaitable[T]]) -> list[T]:
    """What all of them give, as `asyncio.gather`; what one raises is raised once the others have come to their end.

    So calls of models that are under way have their replies, also where another one is not made any more.
    """
    given = await asyncio.gather(*calls, return_exceptions=True)
    for one in given:
        if isinstance(one, BaseException):
            raise one
    return cast("list[T]", given)


class _Still:
    """A time limit that several calls may stop at a time."""

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
        with suppress(RuntimeError):  # the block has ended, and the call was left behind
            self._bound.reschedule(when)
