"""Small systems under test; what they were asked is kept in `calls`."""

import asyncio
import contextlib
import os
import socket
import time

import msgspec

from evalwright.errors import TargetError
from evalwright.llm.patience import standing_still
from evalwright.model.trace import Answer, Doubt

calls: list[str] = []


async def echo(case, variant):
    calls.append(case["id"])
    return {"final_answer": str(case["input"])}


def echo_sync(case, variant):
    calls.append(case["id"])
    return {"final_answer": str(case["input"])}


async def doubted(case, variant):
    """Has at each call of a case the doubts that the input names for the system; null is an error."""
    me = f"{variant['name']} {case['id']}"
    turn = case["input"][variant["name"]][calls.count(me)]
    calls.append(me)
    if turn is None:
        raise RuntimeError("busy")
    return Answer.of("done", doubts=[Doubt(*one) for one in turn])


async def costing(case, variant):
    return {"final_answer": "done", "metrics": {"cost_usd": case["input"]}}


async def flaky(case, variant):
    """Answers at the call that the input names."""
    calls.append(case["id"])
    if calls.count(case["id"]) < case["input"]:
        raise RuntimeError(f"call {calls.count(case['id'])}")
    return {"final_answer": "at last"}


async def slow(case, variant):
    calls.append(case["id"])
    await asyncio.sleep(case["input"])
    return {"final_answer": "done"}


def mutates(case, variant):
    calls.append(case["id"])
    case["input"].clear()
    variant["config"].clear()
    case["expected"]["facts"]["x"] = "changed"
    return {"final_answer": "done"}


class Factory:
    made = 0

    def __init__(self, word):
        Factory.made += 1
        self.word = word

    def __call__(self, case, variant):
        return {"final_answer": self.word}


def awaitable(case, variant):
    return echo(case, variant)


def tools_in_messages(case, variant):
    return {
        "final_answer": "done",
        "messages": [
            {"role": "assistant", "tool_call": {"id": "1", "name": "look", "arguments": '{"at": 3}'}},
            {"role": "tool", "name": "look", "content": {"seen": True}},
        ],
    }


def tools_in_messages_and_results(case, variant):
    return {**tools_in_messages(case, variant), "tool_results": [{"name": "look", "content": "said elsewhere"}]}


def measures(case, variant):
    time.sleep(0.05)
    return {"final_answer": "done", "metrics": {"cost_usd": 0.25, "token_input": 10}}


class Refuses:
    def __init__(self):
        raise SystemExit(0)


class Sleeps:
    def __init__(self):
        time.sleep(60)


async def stubborn(case, variant):
    """Ignores its cancellation for a while."""
    calls.append(case["id"])
    for _ in range(12):
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            continue
    return {"final_answer": "done"}


most_at_once = 0
_at_once = 0


async def counted(case, variant):
    """How many calls are in flight at once is kept in `most_at_once`."""
    global _at_once, most_at_once
    _at_once += 1
    most_at_once = max(most_at_once, _at_once)
    await asyncio.sleep(0.01)
    _at_once -= 1
    return {"final_answer": "done"}


def metered(case, variant):
    """Uses as many tokens, or costs as much, as the input says."""
    calls.append(case["id"])
    return {"final_answer": "done", "metrics": case["input"]}


def traced(case, variant):
    """Says under which id a platform knows the call."""
    return {"final_answer": str(case["input"]), "extra": {"trace_id": "t-1"}}


def silent(case, variant):
    return Answer(extra={"seen": True})


def broken_or_not(case, variant):
    """Gives one answer, early enough that the system is not stopped."""
    if case["id"] != "c3":
        raise KeyError("missing")
    return {"final_answer": "done"}


def ends_a_generator(case, variant):
    if case["id"] == "c1":
        raise GeneratorExit("enough")
    return {"final_answer": "done"}


async def ends_a_generator_later(case, variant):
    await asyncio.sleep(0)
    return ends_a_generator(case, variant)


async def cancels_itself(case, variant):
    if case["id"] == "c1":
        asyncio.current_task().cancel()
        await asyncio.sleep(0)
    return {"final_answer": "done"}


async def waits_for_two(case, variant):
    """Asks two models at once for which there is no money yet."""

    async def wait():
        with standing_still():
            await asyncio.sleep(0.7)

    await asyncio.gather(wait(), wait())
    await asyncio.sleep(0.4)
    return {"final_answer": "done"}


def connects(case, variant):
    """Asks a host that does not answer."""
    with socket.create_connection(("192.0.2.1", 80), timeout=0.1):
        return {"final_answer": "done"}


def broken(case, variant):
    return {}["missing"]


mended = False


def mendable(case, variant):
    return {"final_answer": "done"} if mended else broken(case, variant)


def mostly_broken(case, variant):
    calls.append(case["id"])
    return {"final_answer": "done"} if len(calls) == 15 else broken(case, variant)


def broken_in_many_ways(case, variant):
    calls.append(case["id"])
    raise (ValueError, KeyError, TypeError)[len(calls) % 3]("wrong")


async def slow_to_answer(case, variant):
    calls.append(case["id"])
    late = len(calls) > 30
    await asyncio.sleep(0.3 if late else 0.01)
    return {"final_answer": "done"} if late else broken(case, variant)


def broken_by_case(case, variant):
    raise RuntimeError(f"no model for {case['id']} after {time.time()} s")


error = None


def raises_error(case, variant):
    raise error


def nested(case, variant):
    return broken(case, variant)


def check(output):
    return broken(output, None)


class Fails:
    def __init__(self):
        broken(None, None)


def closes_a_range(case, variant):
    if case["id"] == "c1":
        os.closerange(3, 256)
    return {"final_answer": "done"}


def closes_each(case, variant):
    for number in range(3, 256) if case["id"] == "c1" else ():
        with contextlib.suppress(OSError):
            os.close(number)
    return {"final_answer": "done"}


def word(case, variant):
    """Says its input, unless that is `error`."""
    calls.append(case["id"])
    if case["input"] == "error":
        raise RuntimeError("no word")
    return {"final_answer": case["input"]}


mended = []
"""Not empty: what errs in `tabled` is right by now."""


def tabled(case, variant):
    """Answers by the place of the case in a row: 1 is right, 0 wrong, e an error."""
    outcome = variant["config"]["answers"][int(case["id"][1:])]
    if outcome == "e" and not mended:
        raise RuntimeError("the system is down")
    return {"final_answer": "no" if outcome == "0" else "done"}


interrupts: list[object] = []
"""Called before an answer of `tabled_until`, to end the run at a certain one."""


def tabled_until(case, variant):
    calls.append(case["id"])
    for interrupt in interrupts:
        interrupt()
    return tabled(case, variant)


def recite(case, variant):
    """Gives the answer, or has the error, that the input says."""
    if (error := case["input"].get("error")) is not None:
        raise TargetError(error["message"], error["type"])
    return msgspec.convert(case["input"]["answer"], Answer)
