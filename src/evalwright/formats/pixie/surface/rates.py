"""Calls models no faster than configured: requests and tokens per second and per minute."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque

from evalwright.formats.pixie.surface.config import PixieConfig, RateLimitConfig, get_config

__all__ = [
    "EvalRateLimiter",
    "RateLimiter",
    "configure_rate_limits",
    "configure_rate_limits_from_config",
    "get_rate_limiter",
    "paced",
]

_TOKEN = 3
"""Characters per token, as an estimate."""


class RateLimiter:
    """Gives each question the first moment that all limits allow, in the order in which they come."""

    def __init__(self, limits: RateLimitConfig) -> None:
        self.limits = limits
        self._windows = (_Window(1.0, limits.rps, limits.tps), _Window(60.0, limits.rpm, limits.tpm))
        self._last = float("-inf")
        self._lock = threading.Lock()

    def admit(self, now: float, tokens: int) -> float:
        """When a question may be sent, in seconds of the clock of `now`; it counts from then on.

        One that exceeds a limit by itself is sent when nothing else is in the window.
        """
        with self._lock:
            moment = max(now, self._last)
            while (free := max(window.free(moment, tokens) for window in self._windows)) > moment:
                moment = free
            for window in self._windows:
                window.add(moment, tokens)
            self._last = moment
            return moment


class _Window:
    def __init__(self, seconds: float, requests: float, tokens: float) -> None:
        self._seconds, self._requests, self._tokens = seconds, requests, tokens
        self._recent_requests: deque[tuple[float, int]] = deque()

    def free(self, moment: float, tokens: int) -> float:
        """`moment`, or the next one at which enough has left the window."""
        while self._recent_requests and self._recent_requests[0][0] + self._seconds <= moment:
            self._recent_requests.popleft()
        full = (
            len(self._recent_requests) + 1 > self._requests
            or sum(n for _, n in self._recent_requests) + tokens > self._tokens
        )
        return self._recent_requests[0][0] + self._seconds if self._recent_requests and full else moment

    def add(self, moment: float, tokens: int) -> None:
        self._recent_requests.append((moment, tokens))


class _Configured:
    """The limiter of this process: as the program configured it, else from the environment."""

    def __init__(self) -> None:
        self._is_reported = False
        self._limits: RateLimitConfig | None = None
        self._limiters: dict[RateLimitConfig, RateLimiter] = {}

    def set_limits(self, limits: RateLimitConfig | None) -> None:
        self._is_reported, self._limits = True, limits
        self._limiters.clear()

    def limiter(self) -> RateLimiter | None:
        """Runs with the same limits share one limiter: the provider counts what they send together."""
        limits = self._limits if self._is_reported else get_config().rate_limits
        return None if limits is None else self._limiters.setdefault(limits, RateLimiter(limits))


_configured = _Configured()


def configure_rate_limits(config: RateLimitConfig | None) -> None:
    """Use these limits from now on instead of those of the environment; None for no limits."""
    _configured.set_limits(config)


def configure_rate_limits_from_config(config: PixieConfig) -> None:
    """Use the limits of a configuration."""
    configure_rate_limits(config.rate_limits)


def get_rate_limiter() -> RateLimiter | None:
    """The limiter for calls of models; None if there are no limits."""
    return _configured.limiter()


EvalRateLimiter = RateLimiter


async def paced(text: str) -> None:
    """Wait until a question with this text may be sent."""
    limiter = _configured.limiter()
    if limiter is not None:
        now = time.monotonic()
        await asyncio.sleep(limiter.admit(now, len(text) // _TOKEN) - now)
