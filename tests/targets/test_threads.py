"""Calls of blocking code: each has a thread of its own, however many were made by one thread before."""

from __future__ import annotations

import asyncio
import threading
import time
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


def test_where_no_thread_is_to_be_had_each_call_says_so(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    def scarce(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def work() -> list[object]:
        return await asyncio.gather(*(threads.call(abs, -1) for _ in range(3)), return_exceptions=True)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", scarce)
        assert [str(error) for error in asyncio.run(work())] == ["can't start new thread"] * 3
    assert asyncio.run(work()) == [1, 1, 1]


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


async def expect_the_answer_before_the_next_call_ends(threads: Threads) -> None:
    free = threading.Event()
    short, long = (asyncio.create_task(call) for call in (threads.call(abs, -1), threads.call(free.wait, LONG)))
    await asyncio.wait([short, long], return_when=asyncio.FIRST_COMPLETED)
    free.set()
    assert short.done()
    assert not long.done()
    assert await long


def test_an_answer_does_not_wait_for_the_end_of_a_later_call(threads: Threads) -> None:
    asyncio.run(expect_the_answer_before_the_next_call_ends(threads))


@pytest.mark.usefixtures("one_thread")
def test_where_one_thread_makes_long_calls_no_answer_waits_for_the_next(threads: Threads) -> None:
    async def work() -> None:
        await threads.call(time.sleep, 0.01)
        await expect_the_answer_before_the_next_call_ends(threads)

    asyncio.run(work())


def test_two_loops_at_once_get_all_of_their_answers(threads: Threads) -> None:
    async def work(number: int) -> None:
        for _ in range(300):
            assert await together(threads, [lambda: number] * 5) == [number] * 5

    def loop(number: int) -> None:
        asyncio.run(asyncio.wait_for(work(number), LONG))
        ended.append(number)

    ended = list[int]()
    loops = [threading.Thread(target=loop, args=(number,)) for number in range(2)]
    for thread in loops:
        thread.start()
    for thread in loops:
        thread.join()
    assert sorted(ended) == [0, 1]


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts what it is asked to do later."""

    later = 0

    def call_later(self, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        self.later += 1
        return super().call_later(*arguments, **options)


async def handed_over(threads: Threads, function: Callable[[], object]) -> asyncio.Task[object]:
    """A call that threads can make, while the loop need not turn again."""
    task = asyncio.create_task(threads.call(function))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


def end(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop)))
    loop.close()


def test_loops_that_call_by_turns_look_no_more_often_than_one(threads: Threads) -> None:
    begun, free = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        free.wait(LONG)

    loops = CountingLoop(), CountingLoop()
    tasks = [loops[0].run_until_complete(handed_over(threads, wait))]
    assert begun.wait(LONG)
    for _ in range(5):
        tasks += [loop.run_until_complete(handed_over(threads, lambda: None)) for loop in loops]
    looks = [loop.later for loop in loops]
    free.set()
    for loop in loops:
        end(loop)
    assert max(looks) <= 1


def test_an_answer_does_not_wait_for_a_call_of_a_loop_that_stands_still(threads: Threads) -> None:
    begun, called, free = threading.Event(), threading.Event(), threading.Event()
    answers = list[object]()

    def wait() -> bool:
        begun.set()
        return called.wait(LONG)

    def run() -> None:
        answers.append(asyncio.run(asyncio.wait_for(threads.call(wait), LONG)))

    thread, still = threading.Thread(target=run), asyncio.new_event_loop()
    thread.start()
    assert begun.wait(LONG)
    task = still.run_until_complete(handed_over(threads, lambda: free.wait(LONG)))
    called.set()
    thread.join(LONG)
    free.set()
    end(still)
    assert answers == [True]
    assert task.result()


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


def test_a_call_that_is_being_made_when_they_are_closed_has_its_answer(threads: Threads) -> None:
    begun, free = threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return free.wait(LONG)

    async def work() -> None:
        waiting = asyncio.create_task(threads.call(wait))
        await asyncio.to_thread(begun.wait, LONG)
        threads.close()
        free.set()
        assert await waiting

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
