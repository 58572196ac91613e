"""Time as a run sees it: dates that never jump, because only the start is read from the wall clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

__all__ = ["Clock"]

_MICROSECOND = timedelta(microseconds=1)
_STEPS = [number * _MICROSECOND for number in range(1000)]
"""Most dates follow the one before at once: adding a step that is there costs a third of making one."""


class Clock:
    """Dates anchored at one reading of the wall clock and moved by the monotonic clock from there."""

    def __init__(self) -> None:
        self._date = self._last = datetime.now(UTC)
        self._tick, self._elapsed = time.monotonic(), 0

    def date(self, tick: float) -> datetime:
        """The date (UTC) of a `time.monotonic()` reading."""
        elapsed = int((tick - self._tick) * 1e6)
        step = elapsed - self._elapsed
        if 0 <= step < 1000:
            date = self._last + _STEPS[step]
        else:
            date = self._date + elapsed * _MICROSECOND
        self._last, self._elapsed = date, elapsed
        return date

    def now(self) -> datetime:
        return self.date(time.monotonic())
