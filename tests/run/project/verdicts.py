"""Evaluators that return what a case asks for."""

import math
import time

from evalwright.plugins import Evaluation

GIVEN = {
    "one": 1,
    "half": 0.5,
    "above": 1.5,
    "below": -0.001,
    "huge": 10**5000,
    "nan": math.nan,
    "infinite": math.inf,
    "bool": True,
    "text": "0.9",
    "list": [0.5],
}


def synchronous(input):
    return Evaluation(True, GIVEN[input], "as asked", {"said": input}, cost_usd=0.25)


def unhurried(input):
    time.sleep(0.02)
    return synchronous(input)


async def asynchronous(input):
    return synchronous(input)


def last(input, results):
    return synchronous(input)


def agrees(results):
    return results["says_done"].passed


def verdict(input):
    return Evaluation(passed={"yes": "yes", "one": 1, "none": None}[input], score=1.0)
