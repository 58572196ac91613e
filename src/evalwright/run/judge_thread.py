"""Synchronous evaluators where no timer can interrupt them: in a thread, which is left behind if one is late.

They run one after another, as they do where there is a timer: user code need not be thread-safe. Time spent waiting for
the turn does not count as the evaluator's.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.llm.patience import bounded_by
from evalwright.run.records import timed_out
from evalwright.targets.failures import placed
from evalwright.targets.threads import Threads

__all__ = ["JudgeThread"]


class JudgeThread:
    """One thread at a time; a new one replaces one that is left behind."""

    def __init__(self) -> None:
        self._threads = Threads()
        self._turn = asyncio.Lock()

    def bounded(
        self, evaluate: Callable[..., Any], limit: float, limit_of_awaited: float
    ) -> Callable[..., Awaitable[Any]]:
        """`evaluate` with its time limits in seconds: until it returns, and until an awaitable that it returns is done.

        An asynchronous function needs no thread: calling it blocks nothing.
        """
        asynchronous = inspect.iscoroutinefunction(evaluate)

        async def evaluated(*arguments: Any) -> Any:
            if asynchronous:
                return await _within(limit_of_awaited, evaluate(*arguments))
            async with self._turn:
                given = await _within(limit, self._threads.call(evaluate, *arguments))
            return await _within(limit_of_awaited, given) if isinstance(given, Awaitable) else given

        return evaluated

    def close(self) -> None:
        """Let the thread end: a program may evaluate any number of runs."""
        self._threads.close()


async def _within(limit: float, awaited: Awaitable[Any]) -> Any:
    try:
        async with bounded_by(limit) as bound:
            return await awaited
    except TimeoutError as error:
        if bound.expired():
            late = timed_out(limit)
            raise EvaluatorError(late.message, late.type) from None
        raise EvaluatorError(placed(error), type(error).__name__) from error
