"""How fast one model may be called with one key: requests and tokens per minute, from its provider's headers.

A call takes its share of what is left of a limit, and waits if that is too little: a provider that has to reject calls
in order to slow them down also counts the rejected ones. Limits refill evenly, as OpenAI and Anthropic document theirs
(a token bucket), in the time that the header names.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

__all__ = ["NOTHING", "Demand", "Passage", "Rates", "exhausted_for"]

_LONGEST_WAIT = 600.0
"""Seconds: as long as a whole call may take. After that, the call is made whatever the provider said before."""
_HOUR = 3600.0
"""A limit counts as full again after an hour at most: a daily limit is used up rather than spread over the day."""
_TOKENS = ("tokens", "input-tokens", "output-tokens")
_NAMES = ("requests", *_TOKENS)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Demand(NamedTuple):
    """What a call takes of the limits: tokens are estimated before it, and counted after it."""

    token_input: int = 0
    token_output: int = 0

    def of(self, name: str) -> float:
        if name == "requests":
            return 1.0
        return self.token_input * (name != "output-tokens") + self.token_output * (name != "input-tokens")


NOTHING = Demand()


class _StatedLimit(NamedTuple):
    """One limit as a response states it; `seconds` until it is full again, None if the response does not say."""

    name: str
    limit: float
    left: float
    seconds: float | None


class _Limit:
    """What is left of one limit. It may be below 0: the calls that took it then wait."""

    def __init__(self, stated: _StatedLimit, under_way: float, now: float) -> None:
        self.adopt(stated, under_way, now)

    def adopt(self, stated: _StatedLimit, under_way: float, now: float) -> None:
        """Adopt what the provider says, minus what the calls under way will use: it may not know about them yet."""
        missing = stated.limit - stated.left
        self._a_second = stated.limit / 60
        if stated.seconds and missing > 0:
            self._a_second = max(missing / stated.seconds, stated.limit / _HOUR)
        self._full, self._level, self._at = stated.limit, stated.left - under_way, now

    def take(self, amount: float, now: float) -> float:
        """Take an amount; returns the seconds until it is available."""
        self._level = min(self._full, self._level + (now - self._at) * self._a_second) - amount
        self._at = now
        return max(0.0, -self._level / self._a_second)

    def give_back(self, amount: float) -> None:
        self._level += amount


class Rates:
    """The limits of one model and key, shared by all calls of a run. Without headers there are none."""

    def __init__(self) -> None:
        self._limits: dict[str, _Limit] = {}
        self._under_way: set[Passage] = set()
        self._not_before = 0.0
        self.on_pause: Callable[[float], None] = lambda _: None
        """Called with the seconds of each pause, for other processes that call the same model."""

    async def turn(self, need: Demand) -> Passage:
        """Take what a call needs, and wait until that is available and the last pause is over."""
        now = _now()
        wait = max((limit.take(need.of(name), now) for name, limit in self._limits.items()), default=0.0)
        turn = Passage(self, need)
        self._under_way.add(turn)
        try:
            if wait > 0:
                await asyncio.sleep(min(wait, _LONGEST_WAIT))
            while (left := self._not_before - _now()) > 0:
                await asyncio.sleep(left)
        except BaseException:  # a cancelled call returns what it took, or later calls would wait for it
            turn.done(NOTHING)
            raise
        return turn

    def pause(self, seconds: float) -> None:
        """Make no call for this many seconds: what the provider says to one call applies to all of them."""
        self.wait(seconds)
        self.on_pause(seconds)

    def wait(self, seconds: float) -> None:
        """As `pause`, because of what the provider said to another process."""
        self._not_before = max(self._not_before, _now() + seconds)

    def adopt(self, headers: Mapping[str, str], answered: Passage) -> None:
        """Adopt the limits that the response to a call states."""
        now = _now()
        for stated in _stated_limits(headers):
            others = sum(turn.need.of(stated.name) for turn in self._under_way if turn is not answered)
            if stated.name in self._limits:
                self._limits[stated.name].adopt(stated, others, now)
            else:
                self._limits[stated.name] = _Limit(stated, others, now)

    def end(self, turn: Passage, unused: Demand | None) -> None:
        """A call is over. `unused` is what it took too much; None if its response has already said what is left."""
        self._under_way.discard(turn)
        if unused is not None:
            for name, limit in self._limits.items():
                limit.give_back(unused.of(name))


class Passage:
    """One call that has taken what it needs."""

    def __init__(self, rates: Rates, need: Demand) -> None:
        self.need: Demand = need
        self._rates, self._has_limits = rates, False

    def adopt(self, headers: Mapping[str, str]) -> None:
        self._rates.adopt(headers, self)
        self._has_limits = True

    def done(self, used: Demand) -> None:
        """The call is over, and used this much."""
        spare = Demand(self.need.token_input - used.token_input, self.need.token_output - used.token_output)
        self._rates.end(self, None if self._has_limits else spare)


def exhausted_for(headers: Mapping[str, str]) -> float | None:
    """Seconds until the limit that is used up is full again; None if none is used up, or if the headers do not say."""
    waits = [stated.seconds for stated in _stated_limits(headers) if stated.left == 0 and stated.seconds is not None]
    return max(waits, default=None)


def _stated_limits(headers: Mapping[str, str]) -> Iterator[_StatedLimit]:
    """The limits in the headers of OpenAI (and its imitators) and Anthropic, if they are numbers."""
    for name in _NAMES:
        for limit, left, reset in (
            (f"x-ratelimit-limit-{name}", f"x-ratelimit-remaining-{name}", f"x-ratelimit-reset-{name}"),
            *((f"anthropic-ratelimit-{name}-{what}" for what in ("limit", "remaining", "reset")),),
        ):
            most, remaining = _number(headers.get(limit)), _number(headers.get(left))
            if most and remaining is not None:
                yield _StatedLimit(name, most, min(remaining, most), _seconds(headers.get(reset)))


def _number(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None


def _seconds(text: str | None) -> float | None:
    """Seconds in `6m0s`, `12ms`, `59.5` or an RFC 3339 date; None for anything else."""
    if not text:
        return None
    parts = _SPAN.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    try:
        return max(0.0, (datetime.fromisoformat(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        pass
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) else None


def _now() -> float:
    return asyncio.get_running_loop().time()
