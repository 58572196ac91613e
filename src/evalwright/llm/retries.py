"""The one place where model calls are tried again, and where their number at a time is held down.

Waits grow exponentially with full jitter (AWS architecture blog, "Exponential backoff and jitter"); a server's
`Retry-After` is obeyed up to a cap. A 429 halves the number of calls at a time, once for all calls that were under way
together, and each success lets it grow again (additive increase, multiplicative decrease).
"""

from __future__ import annotations

import asyncio
import copy
import random
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from evalwright.llm.failures import CallFailed
from evalwright.model.chat import ChatRequest, Waits

__all__ = ["Gate", "Pace", "Rules", "retried"]

T = TypeVar("T")


class Rules:
    """Bounds of one call: attempts, seconds of one attempt and of all, seconds of the first and the longest wait."""

    attempts = 5
    attempt_seconds = 120.0
    call_seconds = 600.0
    first_wait = 0.8
    wait_factor = 2.0
    longest_wait = 20.0
    longest_retry_after = 60.0
    statuses: Collection[int] | None = None
    """HTTP statuses that are tried again; None leaves that to the failure."""

    def of(self, request: ChatRequest) -> Rules:
        """These rules with the bounds that a request has of its own; all attempts may then be used up."""
        if request.attempts is None and request.attempt_seconds is None and request.waits is None:
            return self
        rules, waits = copy.copy(self), request.waits or Waits()
        given = {
            "attempts": request.attempts,
            "attempt_seconds": request.attempt_seconds,
            "first_wait": waits.first_seconds,
            "longest_wait": waits.longest_seconds,
            "wait_factor": waits.factor,
            "statuses": waits.statuses,
        }
        for name, value in given.items():
            if value is not None:
                setattr(rules, name, value)
        rules.call_seconds = rules.attempts * (rules.attempt_seconds + rules.longest_wait)
        return rules

    def again(self, failure: CallFailed) -> bool:
        """Whether another attempt may help."""
        if self.statuses is None or failure.status is None:
            return failure.again
        return failure.status in self.statuses

    def wait(self, failure: CallFailed, attempt: int) -> float:
        """Seconds before the attempt after this one."""
        if failure.retry_after is not None:
            return min(failure.retry_after, self.longest_retry_after)
        return random.uniform(0, min(self.longest_wait, self.first_wait * self.wait_factor ** (attempt - 1)))


class Gate:
    """Lets so many calls through at a time; fewer after a 429, one more after as many successes as there are places."""

    def __init__(self, width: int) -> None:
        self._most = self._width = float(max(1, width))
        self._inside = self._waves = 0
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> int:
        """The number of the wave that the call belongs to, for `narrow`."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._inside < int(self._width))
            self._inside += 1
        return self._waves

    async def __aexit__(self, *_error: object) -> None:
        async with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def narrow(self, wave: int) -> None:
        """A call of this wave met a 429; of one wave only the first counts."""
        if wave == self._waves:
            self._waves += 1
            self._width = max(1.0, self._width / 2)

    def widen(self) -> None:
        self._width = min(self._most, self._width + 1 / self._width)


class Pace:
    """Spreads calls evenly over time where their number a minute is limited."""

    def __init__(self, per_minute: float | None) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for the next free moment."""
        if self._gap:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
            await asyncio.sleep(mine - now)


async def retried(call: Callable[[], Awaitable[T]], gate: Gate, pace: Pace, rules: Rules) -> T:
    """The result of `call`, tried again where that may help. Raises the last CallFailed."""
    until = time.monotonic() + rules.call_seconds
    wave = 0
    for attempt in range(1, rules.attempts + 1):
        await pace.turn()
        try:
            async with gate as wave:
                try:
                    async with asyncio.timeout(rules.attempt_seconds):
                        result = await call()
                except TimeoutError:
                    message = f"no answer within {rules.attempt_seconds:g} seconds"
                    raise CallFailed("timeout", message, again=True) from None
            gate.widen()
            return result
        except CallFailed as failure:
            if failure.kind == "rate_limited":
                gate.narrow(wave)
            wait = rules.wait(failure, attempt)
            last = attempt == rules.attempts or time.monotonic() + wait > until
            if last or not rules.again(failure):
                tries = f" (tried {attempt} times)" if attempt > 1 else ""
                raise CallFailed(failure.kind, f"{failure}{tries}") from failure
            await asyncio.sleep(wait)
    raise AssertionError("unreachable")
