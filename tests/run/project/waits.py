"""Evaluators and systems that wait for each other."""

import asyncio
import threading
import time

judging = threading.Event()
answered = threading.Event()
together = threading.Barrier(2)
calls = []


async def second_answers_while_first_is_judged(case, variant):
    if case["id"] == "c1":
        while not judging.is_set():
            await asyncio.sleep(0.001)
        answered.set()
    return {"final_answer": case["id"]}


def until_answered(output):
    judging.set()
    return answered.wait(20)


def with_a_loop_of_its_own(output):
    return asyncio.run(_true())


async def _true():
    return True


def meeting(output):
    together.wait(20)
    return True


def endless(output):
    while True:
        calls.append(output)


def slow_at_times(output):
    """Each time in turn, longer and shorter than the event loop waits for a call."""
    calls.append(output)
    time.sleep(0.05 if len(calls) % 3 == 1 else 0)
    return True


async def first_is_hard_to_search(case, variant):
    await asyncio.sleep(case["input"])
    return {"final_answer": "a" * 40 if case["id"] == "c0" else "ab"}
