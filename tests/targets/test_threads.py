"""Calls of blocking code: each has a thread of its own, however many were made by one thread before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from evalwright.targets.threads import Threads

LONG = 60.0
"""Seconds for what happens at once, on any machine."""
WORD: ContextVar[str] = ContextVar("word", default="none")


@pytest.fixture
def threads() -> Any:
    made = Threads()
    yield made
    made.close()


async def together(threads: Threads, functions: list[Callable[[], object]]) -> list[object]:
    return list(await asyncio.gather(*(threads.call(function) for function in functions)))


@pytest.mark.parametrize("width", [1, 7])
def test_calls_that_wait_for_each_other_all_have_a_thread(threads: Threads, width: int) -> None:
    async def work() -> None:
        for _ in range(3):
            await together(threads, [lambda: None] * 20)  # so short that few threads make them all
            meeting = threading.Barrier(width)
            await together(threads, [lambda m=meeting: m.wait(LONG)] * width)  # type: ignore[misc]

    asyncio.run(work())


def test_short_calls_share_a_thread_until_one_of_them_does_not_come_back(threads: Threads) -> None:
    free = threading.Event()

    async def work() -> None:
        short = await together(threads, [threading.current_thread] * 50)
        waiting = [asyncio.create_task(threads.call(free.wait, LONG)) for _ in range(2)]
        assert await threads.call(abs, -1) == 1
        free.set()
        assert await asyncio.gather(*waiting) == [True, True]
        assert len(set(map(id, short))) == 1

    asyncio.run(work())


def test_calls_wait_for_each_other_in_the_next_loop_too(threads: Threads) -> None:
    async def short() -> None:
        await together(threads, [lambda: None] * 20)

    async def meet() -> None:
        meeting = threading.Barrier(2)
        await together(threads, [lambda: meeting.wait(LONG)] * 2)

    asyncio.run(short())  # which ends while it is still to be looked whether one of its calls takes long
    asyncio.run(meet())


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than one thread is to be had."""
    begun: list[threading.Thread] = []
    start = threading.Thread.start

    def scarce(thread: threading.Thread) -> None:
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)


@pytest.mark.usefixtures("one_thread")
def test_where_no_more_threads_are_to_be_had_calls_wait_for_each_other(threads: Threads) -> None:
    async def work() -> None:
        free = threading.Event()
        waiting = [asyncio.create_task(threads.call(free.wait, LONG)) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting.append(asyncio.create_task(threads.call(free.wait, LONG)))  # when there should be one for each call
        await asyncio.sleep(0)
        free.set()
        assert await asyncio.gather(*waiting) == [True] * 4

    asyncio.run(work())


@pytest.mark.usefixtures("one_thread")
def test_a_call_that_was_cancelled_while_it_waited_is_not_made(threads: Threads) -> None:
    free, made = threading.Event(), list[str]()

    async def work() -> None:
        waiting = [asyncio.create_task(threads.call(free.wait, LONG))]
        waiting += [asyncio.create_task(threads.call(made.append, word)) for word in ("cancelled", "awaited")]
        await asyncio.sleep(0)
        waiting[1].cancel()
        await asyncio.sleep(0)
        free.set()
        await waiting[2]

    asyncio.run(work())
    assert made == ["awaited"]


def test_a_call_that_does_not_come_back_holds_up_no_other(threads: Threads) -> None:
    free = threading.Event()

    async def work() -> None:
        stuck = [asyncio.create_task(threads.call(free.wait, LONG)) for _ in range(3)]
        await asyncio.sleep(0)
        stuck[0].cancel()
        assert [await threads.call(abs, -number) for number in range(50)] == list(range(50))
        assert not any(task.done() for task in stuck[1:])
        free.set()
        assert await asyncio.gather(*stuck[1:]) == [True, True]

    asyncio.run(work())


def test_an_answer_is_the_callers_in_any_loop_and_so_are_an_error_and_the_context(threads: Threads) -> None:
    def leave() -> None:
        raise SystemExit(3)

    async def word(mine: str) -> object:
        WORD.set(mine)
        return await threads.call(WORD.get)

    async def work() -> None:
        with pytest.raises(SystemExit):
            await threads.call(leave)
        assert await asyncio.gather(*(word(str(number)) for number in range(20))) == [str(n) for n in range(20)]

    for _ in range(2):
        asyncio.run(work())
    threads.close()
    asyncio.run(work())


def test_threads_end_when_they_are_closed() -> None:
    async def work() -> list[threading.Thread]:
        threads, meeting = Threads(), threading.Barrier(4)

        def meet() -> threading.Thread:
            meeting.wait(LONG)
            return threading.current_thread()

        replies = await asyncio.gather(*(threads.call(meet) for _ in range(4)))
        threads.close()
        return replies

    for thread in asyncio.run(work()):
        thread.join(LONG)
        assert not thread.is_alive()
