"""Spans of threads that are started without their starter's context."""

import asyncio
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import trace as otel

from evalwright.capture.listeners import init, listening
from evalwright.capture.observations import observe, start_observation
from evalwright.capture.tree import tree_of


@observe()
def look_up(word):
    return word.upper()


def in_a_thread(word):
    thread = threading.Thread(target=look_up, args=(word,))
    thread.start()
    thread.join()


def in_a_subclass(word):
    class Looking(threading.Thread):
        def run(self):
            look_up(word)

    thread = Looking(daemon=True)
    thread.start()
    thread.join()


def in_a_thread_of_a_thread(word):
    thread = threading.Thread(target=in_a_thread, args=(word,))
    thread.start()
    thread.join()


def in_a_pool(word):
    with ThreadPoolExecutor() as pool:
        assert list(pool.map(look_up, [word])) == [word.upper()]


def in_the_executor_of_a_loop(word):
    async def run():
        await asyncio.get_running_loop().run_in_executor(None, look_up, word)

    asyncio.run(run())


@pytest.mark.parametrize(
    "apart", [in_a_thread, in_a_subclass, in_a_thread_of_a_thread, in_a_pool, in_the_executor_of_a_loop]
)
def test_a_step_in_a_thread_lies_below_the_step_that_started_it(apart):
    with listening() as heard, start_observation(input="q", name="app"):
        apart("word")
    (root,) = tree_of(heard.spans)
    assert (root.name, [child.name for child in root.children]) == ("app", ["look_up"])


def test_a_model_call_in_a_thread_lies_below_the_step_that_started_it():
    def ask():
        with otel.get_tracer("test").start_as_current_span("call") as span:
            span.set_attribute("openinference.span.kind", "LLM")
            span.set_attribute("llm.model_name", "gpt-x")

    init()
    with listening() as heard, start_observation(input="q", name="app"), ThreadPoolExecutor() as pool:
        pool.submit(ask).result()
    (root,) = tree_of(heard.spans)
    assert (root.name, [child.name for child in root.children]) == ("app", ["gpt-x"])


def test_runs_that_share_a_pool_each_get_their_own_spans():
    pool, turns = ThreadPoolExecutor(1), threading.Barrier(4, timeout=30)
    handled_by = {}

    def app(word):
        with listening() as heard:
            turns.wait()
            for _ in range(20):
                pool.submit(look_up, word).result()
        handled_by[word] = {span.output for span in heard.spans}, len(heard.spans)

    runs = [threading.Thread(target=app, args=(word,)) for word in "abcd"]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    pool.shutdown()
    assert handled_by == {word: ({f'"{word.upper()}"'}, 20) for word in "abcd"}


def test_what_a_pool_does_for_nobody_who_listens_is_not_heard():
    pool = ThreadPoolExecutor(1)
    with listening() as heard:
        pool.submit(look_up, "mine").result()
    pool.submit(look_up, "later").result()
    pool.shutdown()
    assert [span.output for span in heard.spans] == ['"MINE"']


def test_a_thread_that_serves_several_runs_attributes_nothing():
    asked, answered = queue.Queue(), queue.Queue()

    def serve():
        while (word := asked.get()) is not None:
            answered.put(look_up(word))

    with listening() as first:
        server = threading.Thread(target=serve)
        server.start()
        with start_observation(input=None, name="app"):
            pass
    with listening() as second:
        asked.put("mine")
        answered.get()
    asked.put(None)
    server.join()
    assert ([span.name for span in first.spans], second.spans) == (["app"], [])


def test_an_error_in_a_thread_is_raised_as_ever():
    with listening(), ThreadPoolExecutor() as pool, pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result()
