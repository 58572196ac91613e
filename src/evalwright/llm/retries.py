"""The one place where model calls are retried, and where the number of concurrent calls is limited.

Waits grow exponentially with full jitter (AWS Architecture Blog, "Exponential Backoff and Jitter"): without jitter,
calls that were rejected together would come back together. A server's `Retry-After` is obeyed up to a cap, by all calls
of that model and key. A 429 halves the number of concurrent calls, once for all calls that were under way together, and
each success lets it grow again (additive increase, multiplicative decrease).
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from evalwright.errors import in_seconds
from evalwright.llm.connections import headers_to
from evalwright.llm.failures import CallFailed
from evalwright.llm.rates import NOTHING, Demand, Rates
from evalwright.model.chat import ChatRequest, Waits

__all__ = ["Gate", "Pace", "Rules", "retried"]

T = TypeVar("T")


class Rules:
    """The limits of one call: attempts, seconds per attempt and in total, seconds of the first and the longest wait."""

    attempts = 5
    attempt_seconds: float = 120.0
    call_seconds: float = 600.0
    first_wait: float = 0.8
    wait_factor: float = 2.0
    longest_wait: float = 20.0
    longest_retry_after: float = 60.0
    batch_idle: float = 0.5
    """After this many seconds without a further call, those so far are submitted as a batch."""
    first_poll: float = 2.0
    longest_poll: float = 60.0
    """Seconds between two polls of a batch, first and maximum; they double."""
    statuses: Collection[int] | None = None
    """HTTP statuses that are retried; None if the failure itself decides."""

    def of(self, request: ChatRequest) -> Rules:
        """These rules with the request's own limits; the time for the whole call is then enough for all its
        attempts."""
        if request.attempts is None and request.attempt_seconds is None and request.waits is None:
            return self
        rules, waits = copy.copy(self), request.waits or Waits()
        overrides = {
            "attempts": request.attempts,
            "attempt_seconds": request.attempt_seconds,
            "first_wait": waits.first_seconds,
            "longest_wait": waits.longest_seconds,
            "wait_factor": waits.factor,
            "statuses": waits.statuses,
        }
        for name, value in overrides.items():
            if value is not None:
                setattr(rules, name, value)
        rules.call_seconds = rules.attempts * (rules.attempt_seconds + rules.longest_wait)
        return rules

    def allows_retry(self, failure: CallFailed) -> bool:
        """Whether another attempt may help."""
        if self.statuses is None or failure.status is None:
            return failure.retryable
        return failure.status in self.statuses

    def wait(self, failure: CallFailed, attempt: int) -> float:
        """Seconds before the attempt after this one."""
        if failure.retry_after is not None:
            return min(failure.retry_after, self.longest_retry_after)
        return self.drawn_wait(attempt)

    def drawn_wait(self, attempt: int) -> float:
        """Seconds before the next attempt if no server asks for any."""
        # From 0 on, so that calls that failed together do not come back together. The exponent is limited, as a suite
        # may allow any number of attempts, and a float that large raises OverflowError.
        return random.uniform(0, min(self.longest_wait, self.first_wait * self.wait_factor ** min(attempt - 1, 30)))


class Gate:
    """Lets a number of calls through at a time: half as many after a 429, one more after as many successes as places.

    A free place goes to the call that has waited longest, and only that call is woken.
    """

    def __init__(self, width: int) -> None:
        self._most = self._width = float(max(1, width))
        self._inside = self._waves = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> int:
        """Wait for a place; returns the number of the wave to which the call belongs, for `narrow`."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the place was given before the cancellation arrived
                await self.__aexit__()
            raise
        return self._waves

    async def __aexit__(self, *_error: object) -> None:
        self._inside -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._inside < int(self._width):
            turn = self._waiting.popleft()
            if not turn.done():  # otherwise its call was cancelled while it waited
                self._inside += 1
                turn.set_result(None)

    def narrow(self, wave: int) -> None:
        """Halve the width after a 429, if it is the first one of its wave."""
        if wave == self._waves:  # calls that began before the last halving say nothing about the width since
            self._waves += 1
            self._width = max(1.0, self._width / 2)

    def widen(self) -> None:
        self._width = min(self._most, self._width + 1 / self._width)
        self._admit()


class Pace:
    """Spreads calls evenly over time if their number per minute is limited."""

    def __init__(self, per_minute: float | None) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for the next free moment."""
        if self._gap:
            now = _now()
            slot = max(now, self._next)
            self._next = slot + self._gap  # taken before the wait, so that callers who come meanwhile queue up behind
            await asyncio.sleep(slot - now)


def _now() -> float:
    """The clock of the event loop, which all waits and time limits use."""
    return asyncio.get_running_loop().time()


async def retried(
    call: Callable[[], Awaitable[T]],
    gate: Gate,
    pace: Pace,
    rules: Rules,
    rates: Rates | None = None,
    need: Demand = NOTHING,
    used: Callable[[T], Demand] | None = None,
    again: Callable[[CallFailed], Awaitable[None]] | None = None,
) -> T:
    """The result of `call`, which is retried if that may help. Raises the last CallFailed.

    Each attempt takes what it needs of the `rates`; `used` tells from a result what it really took. `again` is awaited
    with the failure before each further attempt, and may reject it.
    """
    rates = rates or Rates()
    until = _now() + rules.call_seconds
    wave = 0
    for attempt in range(1, rules.attempts + 1):
        await pace.turn()
        turn, took = await rates.turn(need), NOTHING
        try:
            with headers_to(turn.adopt):
                async with gate as wave:
                    result = await _attempt(call, rules)
            gate.widen()
            took = need if used is None else used(result)
            return result
        except CallFailed as failure:
            wait = rules.wait(failure, attempt)
            if failure.kind == "rate_limited":
                gate.narrow(wave)
                if failure.retry_after is not None:
                    rates.pause(wait)
            # Gives up at once rather than after a wait that leaves no time for another attempt.
            last = attempt == rules.attempts or _now() + wait > until
            if last or not rules.allows_retry(failure):
                tries = f" (tried {attempt} times)" if attempt > 1 else ""
                final = CallFailed(failure.kind, f"{failure}{tries}")
                final.status, final.attempts, final.arrived = failure.status, attempt, failure.arrived
                raise final from failure
            lost = failure
        finally:
            turn.done(took)
        await asyncio.sleep(wait)  # outside the gate: other calls may use the place meanwhile
        if again is not None:
            await again(lost)
    raise AssertionError("unreachable")


async def _attempt(call: Callable[[], Awaitable[T]], rules: Rules) -> T:
    """Inside the gate: waiting for a place must not count as waiting for the model."""
    try:
        async with asyncio.timeout(rules.attempt_seconds):
            return await call()
    except TimeoutError:
        message = f"no answer within {in_seconds(rules.attempt_seconds)}"
        raise CallFailed("timeout", message, retryable=True) from None
