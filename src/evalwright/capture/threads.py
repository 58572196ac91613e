"""Carries a context into threads, which Python starts without the context variables of the code that starts them.

While something listens, a new thread, and a task that is submitted to a pool, carry along what `take` returns. The
threads of a pool carry nothing themselves, because they serve many tasks.

The two methods of the standard library are replaced for the whole process, and stay replaced: no other place sees a
thread start, and to put them back would take away what a tracer has put on top of ours in the meantime. No run sees
the replacement: whom a thread belongs to is asked at each start by a context variable.
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
    """From now on, call `take` whenever a thread is started or a task submitted to a pool; None changes nothing there.

    Within `taking_nothing` it returns None. A second call has no effect: the methods are replaced once per process, and
    cost a look at one context variable while nothing listens.
    """
    start: Callable[[Thread], None] = Thread.start
    submit: Callable[..., Future[Any]] = ThreadPoolExecutor.submit

    @functools.wraps(start)
    def started(thread: Thread) -> None:
        around = take()
        if around is not None:
            # Its `run` and not its target: subclasses of Thread have no target.
            thread.run = _inside(around, thread.run)  # type: ignore[method-assign]
        start(thread)

    @functools.wraps(submit)
    def submitted(
        pool: ThreadPoolExecutor, task: Callable[..., Any], /, *arguments: Any, **keywords: Any
    ) -> Future[Any]:
        around = take()
        if around is None:
            return submit(pool, task, *arguments, **keywords)
        with taking_nothing():  # `submit` may start a thread of the pool, which must not belong to this caller
            return submit(pool, _inside(around, task), *arguments, **keywords)

    Thread.start = started  # type: ignore[assignment, method-assign]
    ThreadPoolExecutor.submit = submitted  # type: ignore[assignment, method-assign]


def _inside(around: Around, task: Callable[..., Any]) -> Callable[..., Any]:
    def inside(*arguments: Any, **keywords: Any) -> Any:
        with around:
            return task(*arguments, **keywords)

    return inside
