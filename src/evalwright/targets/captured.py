"""For targets that run an application's Python in this process: puts its spans and model calls into the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeVar

from evalwright.capture.listeners import listening
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.targets.failures import target_failure

__all__ = ["traced"]

T = TypeVar("T")

Run = Callable[[T, Case, int], Awaitable[Answer]]


def traced(run: Run[T]) -> Run[T]:
    """Decorate a target's `run`: steps, model calls and tool calls are traced and complete its answer.

    If the application raises, what was traced so far is kept with the error.
    """

    @wraps(run)
    async def running(target: T, case: Case, trial: int) -> Answer:
        with listening() as collected:
            try:
                answer = await run(target, case, trial)
            except Exception as error:
                if not (collected.spans or collected.steps):
                    raise
                answer = Answer(error=target_failure(error))
        if collected.spans or collected.steps:
            from evalwright.capture.traces import complete

            complete(answer, [*collected.spans, *collected.steps])
        return answer

    return running
