"""Attempts at the call of a cell: whose turn it is, and whether, when and how often the call is repeated."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from evalwright.model.plan import RetryRule
from evalwright.model.trace import Answer, TraceError
from evalwright.run.addresses import BUSY, LONGEST_PAUSE, Address, requested_pause
from evalwright.run.call import MOST_LOST, NO_WORKER, OUT_OF_FILES, WORKER_LOST, Call
from evalwright.run.cells import Cell, RunState

__all__ = ["Attempts", "pause_before_next", "retriable"]

_BUSY_ATTEMPTS = 5
"""Maximum number of calls for one cell while the service asks for later calls, unless the suite sets it."""
_RETRIABLE = ("timeout", "http_5xx")
_LONGEST_CALL = 600.0
"""Seconds after which a cell's call is not repeated, however often its service asks for time."""
_LOOK = 0.25
"""Seconds between checks, in a pause before another attempt, of whether the run is to stop."""


class Attempts:
    """Attempts that may have to wait: further ones at a cell, and all of them at an address that several cells call."""

    def __init__(
        self, attempt: Callable[[Call, Cell], Awaitable[Answer | TraceError]], rule: RetryRule, state: RunState
    ) -> None:
        """`attempt` makes one attempt."""
        self._attempt, self._rule, self._state = attempt, rule, state
        self.addresses: Mapping[str, Address] = {}
        """What the systems of variants call, by the variant's name."""
        self._starved = 0
        """Cells that wait until others close files."""

    async def in_turn(self, call: Call, cell: Cell) -> Answer | TraceError | None:
        """An attempt once the system's address takes one; None if the run stops before that."""
        if (address := self.addresses.get(cell.variant.name)) is None:
            return await self._attempt(call, cell)
        async with address.gate as wave:
            if not await self._pause(address.left):
                return None
            answer = await self._attempt(call, cell)
            address.record(_failure_in(answer), wave)
        return answer

    async def last(
        self, call: Call, cell: Cell, answer: Answer | TraceError | None, began: float
    ) -> Answer | TraceError | None:
        """The last attempt's outcome, after a first attempt at the monotonic time `began` with this `answer`; None if
        the run stops before a further attempt."""
        rule, alone = self._rule, False
        while answer is not None and (error := _failure_in(answer)) is not None and not call.abandoned:
            lost = sum(failure.type == WORKER_LOST for failure in call.retried)
            # Does not count as an attempt of the system: it is called again once files are free, and a last time if
            # none can become so.
            if error.type == OUT_OF_FILES and not alone:
                alone = not await self._room_made()
                if self._state.stopping:
                    return None
            elif error.type in (NO_WORKER, WORKER_LOST):
                if not self._goes_on(cell, error, lost):
                    return None if error.type == NO_WORKER or self._state.stopping else answer
                call.retried.append(error)
            else:
                tries = len(call.retried) - lost + 1
                pause = pause_before_next(rule, error, tries)
                late = error.status in BUSY and time.monotonic() - began + pause > _LONGEST_CALL
                if late or not retriable(rule, error, tries):
                    return answer
                call.retried.append(error)
                until = time.monotonic() + pause
                if not await self._pause(lambda until=until: until - time.monotonic()):  # type: ignore[misc]
                    return None
            answer = await self.in_turn(call, cell)
        return answer

    def _goes_on(self, cell: Cell, error: TraceError, lost: int) -> bool:
        """Whether a cell that lost its worker gets another one; `lost` is how many it had lost before.

        A lost worker says nothing about the system, so it does not count as one of the suite's attempts; unless a
        single cell ends worker after worker.
        """
        if error.type == NO_WORKER and not self._state.stopping:
            self._state.stuck.setdefault(cell.variant.name, error.message)
        return error.type == WORKER_LOST and lost + 1 < MOST_LOST and not self._state.stopping

    async def _room_made(self) -> bool:
        """Wait until another cell has ended and released its files; False if no other one is running."""
        running, done = self._state.running, self._state.done
        if len(running) - self._starved <= 1:
            return False
        self._starved += 1
        try:
            while self._state.done == done and len(running) > self._starved and not self._state.stopping:
                await asyncio.sleep(_LOOK)
        finally:
            self._starved -= 1
        return True

    async def _pause(self, left: Callable[[], float]) -> bool:
        """Wait as long as there are seconds `left`, which may increase; False once the run is to stop."""
        while not self._state.stopping and (seconds := left()) > 0:
            await asyncio.sleep(min(seconds, _LOOK))
        return not self._state.stopping


def _failure_in(answer: Answer | TraceError) -> TraceError | None:
    """Why a call failed, even if it left a partial answer; an error in a recording is not a failure to replay it."""
    if isinstance(answer, TraceError):
        return answer
    return None if answer.extra.get("source") == "replay" else answer.error


def retriable(rule: RetryRule, error: TraceError, tries: int) -> bool:
    """Whether to try again after `tries` attempts: listed types only, by default those that may pass by themselves.

    An overloaded service is called again. One that rejects the call itself (another HTTP 4xx) never is, nor is a model:
    whatever calls models has already tried again, and attempts would multiply.
    """
    if error.attempts is not msgspec.UNSET:
        return False
    if error.status in BUSY:
        wanted = 1 if rule.once else rule.max_attempts if rule.max_attempts > 1 else _BUSY_ATTEMPTS
        return tries < wanted
    if isinstance(error.status, int) and 400 <= error.status < 500:
        return False
    return tries < rule.max_attempts and (error.type in (rule.on or _RETRIABLE) or "*" in rule.on)


def pause_before_next(rule: RetryRule, error: TraceError, tries: int) -> float:
    """Seconds between attempt number `tries` and the next one: the rule's, doubled each time, or what a service asks
    for.

    At most a minute. An overloaded service that says nothing more is called again as late as a model would be.
    """
    # The exponent is limited so that the power fits a float, however many attempts a rule allows.
    doubled: float = rule.backoff_seconds * 2 ** min(tries - 1, 30)
    requested = requested_pause(error)
    if error.status in BUSY and requested is None and not doubled:
        from evalwright.llm.retries import Rules

        return Rules().drawn_wait(tries)
    return max(min(doubled, LONGEST_PAUSE), requested or 0.0)
