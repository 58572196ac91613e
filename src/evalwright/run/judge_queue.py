"""Cells that have their answers and are not judged yet, because the next calls are to begin first.

A system that answers many calls at about the same time would otherwise wait for the evaluators of all of them.
Traces are written before anything is judged, so that an evaluator that blocks, or ends the process, loses no answer.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sized

from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["JudgeQueue"]

_PATIENCE = 0.05
"""Seconds for which cells wait while more answers come."""
_MOMENT = 0.02
"""Seconds for which cells are judged before calls go on: less than the precision of their limits."""
_MOST_BYTES = 1 << 23
"""Bytes of traces that may wait: many times what a thousand calls usually return. In memory they take more."""


class JudgeQueue:
    """Judges cells in the order of their answers, as soon as no more answers come."""

    def __init__(
        self,
        judge: Callable[[Case, Trace], object],
        running: Sized,
        write_traces: Callable[[], None],
        write: Callable[[], None],
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        """`judge` must not wait for anything; `later` calls a function in the next turn of the event loop."""
        self._judge, self._running, self._later = judge, running, later
        self._write_traces, self._write = write_traces, write
        self._cells = deque[tuple[Case, Trace, int]]()
        self._bytes = 0
        self._most = 0
        """How many ran at once."""
        self._since = 0.0
        """When answers began to come, or cells were judged last."""
        self._came = self._looks = False
        """Whether an answer came since the last look, and whether there will be another look."""

    def __bool__(self) -> bool:
        return bool(self._cells)

    def put(self, case: Case, trace: Trace, size: int) -> None:
        """Add a cell, whose stored trace has about `size` bytes. As memory must not grow, the oldest are judged now if
        more wait than were `running` at once, or if they are too large together."""
        if not self._cells:
            self._since = time.monotonic()
        self._cells.append((case, trace, size))
        self._bytes += size
        self._came = True
        self._most = max(self._most, len(self._running))
        if self._is_full():
            self._write_traces()
            while self._is_full():
                self._judge_oldest()
        self._look_later()

    def clear(self) -> None:
        """Leave the cells to a later session."""
        self._cells.clear()
        self._bytes = 0

    def _is_full(self) -> bool:
        return len(self._cells) > self._most or self._bytes > _MOST_BYTES

    def _judge_oldest(self) -> None:
        case, trace, size = self._cells.popleft()
        self._bytes -= size
        self._judge(case, trace)

    def _look_later(self) -> None:
        if self._cells and not self._looks:
            self._looks = True
            self._later(self._look)

    def _look(self) -> None:
        """Judge cells for a moment, if no answer came in the last turn or more have come for too long."""
        self._looks = False
        self._write_traces()
        came, self._came = self._came, False
        if not came or time.monotonic() - self._since > _PATIENCE:
            until = time.monotonic() + _MOMENT
            while self._cells and time.monotonic() < until:
                self._judge_oldest()
            self._write()
            self._since = time.monotonic()
        self._look_later()
