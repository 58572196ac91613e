"""Systems, judges and evaluators of runs that go on at the same time in one process."""

import asyncio
import os
import threading

together: threading.Barrier | None = None
"""Where systems wait until as many runs as the test has are at work."""
blocked = threading.Event()
"""Ends the evaluator that blocks."""


def look():
    """Replaced where a test wants to see the process at work."""


def variable(case, variant):
    """What a variable of this process says."""
    return {"final_answer": os.environ.get(case["input"], "absent")}


def answer(case, variant):
    """Say the input, on stdout, too; or end the process."""
    if together is not None:
        together.wait(30)
    look()
    said = case["input"]
    if said == "exit":
        os._exit(3)
    print(said)
    return {"final_answer": said}


async def answer_in_loop(case, variant):
    """Say which loop this is."""
    if case["input"] == "hang":
        await asyncio.sleep(600)
    return {"final_answer": str(id(asyncio.get_running_loop()))}


def judge(request):
    """A model without a price."""
    return '{"assertions": [{"text": "is polite", "passed": true, "reason": "it is"}]}'


class Blocking:
    """Comes back only when the test is over; `name` is who asks."""

    def evaluate(self, case, trace):
        blocked.wait(60)
        raise AssertionError("nobody waits for this")


class Counting:
    """Fails if another evaluation goes on at the same time."""

    at_work = evaluated = 0

    def evaluate(self, case, trace):
        from evalwright.model.result import Evaluation

        type(self).at_work += 1
        type(self).evaluated += 1
        threading.Event().wait(0.01)
        alone = type(self).at_work == 1
        type(self).at_work -= 1
        return Evaluation(alone)
