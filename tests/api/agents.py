"""Systems and evaluators that tests name as `api.agents:NAME`."""

import time

PAUSE = 0.0
"""Seconds that each call of `unhurried` takes."""


def upper(text):
    return text.upper()


def unhurried(text):
    time.sleep(PAUSE)
    return text.upper()


async def later(text):
    return text.upper()


def picks(case, variant):
    return f"{case['id']} {variant['config'].get('word', '-')}"


def loud(output):
    return output.isupper()


class Agent:
    def __call__(self, text):
        return text.upper()
