"""Targets that run an application's Python in this process: what it shows of itself belongs to the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeVar

from evalwright.capture.observations import listening
from evalwright.capture.traces import complete
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.targets.failures import target_failure

__all__ = ["heard"]

T = TypeVar("T")

Run = Callable[[T, Case, int], Awaitable[Answer]]


def heard(run: Run[T]) -> Run[T]:
    """Decorate a target's `run`: steps, model calls and tool calls are captured and complete its answer.

    What an application showed before it raised is kept beside its error.
    """

    @wraps(run)
    async def running(target: T, case: Case, trial: int) -> Answer:
        with listening() as ear:
            try:
                answer = await run(target, case, trial)
            except Exception as error:
                if not (ear.spans or ear.steps):
                    raise
                answer = Answer(error=target_failure(error))
        if ear.spans or ear.steps:
            complete(answer, [*ear.spans, *ear.steps])
        return answer

    return running
