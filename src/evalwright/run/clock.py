"""Time as a run sees it: dates that never jump, because only the start is read from the wall clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

__all__ = ["Clock"]


class Clock:
    """Dates anchored at one reading of the wall clock and moved by the monotonic clock from there."""

    def __init__(self) -> None:
        self._date = datetime.now(UTC)
        self._tick = time.monotonic()

    def date(self, tick: float) -> datetime:
        """The date (UTC) of a `time.monotonic()` reading."""
        return self._date + timedelta(seconds=tick - self._tick)

    def now(self) -> datetime:
        return self.date(time.monotonic())
