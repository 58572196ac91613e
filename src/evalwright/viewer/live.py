"""A run while a process writes it: how far it is, what fails already, and what runs now, by its verdicts alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from evalwright.model.plan import Plan

__all__ = ["LiveRun", "Progress", "Tail", "VerdictMark"]

_INTERVAL = 1.0
"""Seconds for which one look serves everyone who asks."""
_MOST_RUNNING = 8
_CODES = {"pass": 1, "fail": 2, "borderline": 3, "error": 4, "skip": 5}


class VerdictMark(msgspec.Struct, gc=False):
    """What progress needs of a verdict."""

    case_id: str
    variant_name: str
    status: str
    trial: int = 0
    case_index: int | None = None


class Tail(Protocol):
    """Verdicts as they are appended; nothing is read twice."""

    def verdicts_since(self, offset: int) -> tuple[Sequence[VerdictMark], int]:
        """The whole lines from a place on, and the place behind them."""

    def is_written(self) -> bool:
        """Whether a process is writing them."""


class Progress(NamedTuple):
    """How far a run is."""

    state: str
    done: int
    total: int
    failed: int
    errors: int
    rate: float
    """Cells a second, since the run began."""
    left_seconds: float | None
    running: list[str]

    @property
    def text(self) -> str:
        """`352 of 800 cells, 3 min left`."""
        said = f"{self.done:,} of {self.total:,} cells"
        if self.state != "running" or self.left_seconds is None:
            return said
        left = self.left_seconds
        return f"{said}, {f'{left / 60:.0f} min' if left >= 90 else f'{left:.0f} s'} left"

    def event(self) -> dict[str, Any]:
        """As the page gets it."""
        rate = f"{self.rate:.3g} cells a second" if self.rate else ""
        return {**self._asdict(), "text": self.text, "rate": rate}


class LiveRun:
    """Counts the verdicts of one run. Shared by all pages that look at it."""

    def __init__(self, source: Tail, plan: Plan, case_name: Callable[[int], str]) -> None:
        self._source, self._plan, self._name = source, plan, case_name
        self._variants = {variant.name: place for place, variant in enumerate(plan.variants)}
        self._trials = [variant.trials or plan.run.trials for variant in plan.variants]
        self._width = max(1, sum(self._trials))
        self._before = [sum(self._trials[:place]) for place in range(len(self._trials))]
        self._cells = bytearray(plan.cases_total * self._width)
        self._offset, self._first = 0, 0
        self._lock, self._looked = threading.Lock(), 0.0
        self._known: Progress | None = None

    def progress(self) -> Progress:
        """Not older than a second."""
        with self._lock:
            now = time.monotonic()
            if self._known is None or now - self._looked >= _INTERVAL:
                self._looked, self._known = now, self._look()
            return self._known

    def _look(self) -> Progress:
        is_written = self._source.is_written()  # before the records: what is written until it ends is read
        marks, self._offset = self._source.verdicts_since(self._offset)
        for mark in marks:
            place = self._place(mark)
            if place is not None:
                self._cells[place] = _CODES.get(mark.status, 0)
        total, done = len(self._cells), len(self._cells) - self._cells.count(0)
        state = "running" if is_written else "finished" if done >= total else "interrupted"
        seconds = max(0.001, time.time() - self._plan.started_at.timestamp())
        rate = done / seconds if state == "running" else 0.0
        left = (total - done) / rate if rate else None
        failed = self._cells.count(_CODES["fail"]) + self._cells.count(_CODES["borderline"])
        running = list(self._running()) if state == "running" else []
        return Progress(state, done, total, failed, self._cells.count(_CODES["error"]), rate, left, running)

    def _place(self, mark: VerdictMark) -> int | None:
        variant = self._variants.get(mark.variant_name)
        if variant is None or mark.case_index is None or not 0 <= mark.trial < self._trials[variant]:
            return None
        place = mark.case_index * self._width + self._before[variant] + mark.trial
        return place if place < len(self._cells) else None

    def _running(self) -> Iterator[str]:
        """The first cells without a verdict: cells begin in the order of the suite, so many at a time."""
        self._first = place = self._cells.find(0, self._first)
        for _ in range(min(_MOST_RUNNING, self._plan.run.max_concurrency)):
            if place < 0:
                return
            position, inside = divmod(place, self._width)
            variant = max(one for one, before in enumerate(self._before) if before <= inside)
            trial = inside - self._before[variant]
            several = f", trial {trial + 1}" if self._trials[variant] > 1 else ""
            yield f"{self._name(position)}, {self._plan.variants[variant].name}{several}"
            place = self._cells.find(0, place + 1)
