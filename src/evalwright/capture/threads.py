"""Threads that Python starts without the context of what started them, in which nobody would be heard.

While somebody listens, a new thread, and a task that is given to a pool, take with them what `take` gives. The threads
of a pool take nothing themselves, because they serve many.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Thread
from typing import Any

__all__ = ["follow_into_threads"]

Around = AbstractContextManager[object]
"""Entered in the thread, around what is done there."""


@functools.cache
def follow_into_threads(take: Callable[[], Around | None], taking_nothing: Callable[[], Around]) -> None:
    """From now on, ask `take` where a thread is started or a task given to a pool; None changes nothing there.

    In a block of `taking_nothing` it gives None. A second call changes nothing.
    """
    start: Callable[[Thread], None] = Thread.start
    submit: Callable[..., Future[Any]] = ThreadPoolExecutor.submit

    @functools.wraps(start)
    def started(thread: Thread) -> None:
        around = take()
        if around is not None:
            thread.run = _inside(around, thread.run)  # type: ignore[method-assign]
        start(thread)

    @functools.wraps(submit)
    def submitted(
        pool: ThreadPoolExecutor, task: Callable[..., Any], /, *arguments: Any, **keywords: Any
    ) -> Future[Any]:
        around = take()
        if around is None:
            return submit(pool, task, *arguments, **keywords)
        with taking_nothing():
            return submit(pool, _inside(around, task), *arguments, **keywords)

    Thread.start = started  # type: ignore[assignment, method-assign]
    ThreadPoolExecutor.submit = submitted  # type: ignore[assignment, method-assign]


def _inside(around: Around, task: Callable[..., Any]) -> Callable[..., Any]:
    def inside(*arguments: Any, **keywords: Any) -> Any:
        with around:
            return task(*arguments, **keywords)

    return inside
