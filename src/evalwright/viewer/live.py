"""A run while a process writes it: its progress, cost, failures so far, and what is running."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from evalwright.errors import counted, money
from evalwright.model.cell import Attempt
from evalwright.model.plan import Plan, Shard
from evalwright.model.result import FAILED

__all__ = ["LiveRun", "Mark", "Progress", "Tail"]

_INTERVAL = 1.0
"""Seconds for which one reading serves all requests."""
_ENOUGH = 5.0
"""Seconds after which the cells that were finished meanwhile tell how fast the run is."""
_MOST_RUNNING = 8
_CODES = {"pass": 1, "fail": 2, "borderline": 3, "error": 4, "skip": 5}


class _Cost(msgspec.Struct, gc=False):
    cost_usd: float | None = None


class Mark(msgspec.Struct, gc=False):
    """The parts of a trace, a result or a verdict that progress needs."""

    variant_name: str
    status: str = ""
    trial: int = 0
    attempt: Attempt = 1
    case_index: int | None = None
    cost_usd: float | None = None
    metrics: _Cost | None = None


_KINDS = ("verdicts", "traces", "results")
"""In this order: a cell that has its verdict has its trace."""


class Tail(Protocol):
    """Records as they are appended; nothing is read twice."""

    def appended(self, kind: str, offset: int) -> tuple[Sequence[Mark], int]:
        """The complete lines of a kind from a position on, and the position after them; 0 if these are all of them."""

    def is_written(self) -> bool:
        """Whether a process is writing them."""


class Progress(NamedTuple):
    """The progress of a run."""

    state: str
    done: int
    total: int
    failed: int
    errors: int
    rate: float
    """Cells per second since the run was first looked at; 0 if that is not long enough."""
    left_seconds: float | None
    running: list[str]
    spent: str
    """The cost so far, against its limits."""

    @property
    def text(self) -> str:
        """`352 of 800 cells, 3 min left`."""
        message = f"{self.done:,} of {counted(self.total, 'cell')}"
        if self.state != "running" or self.left_seconds is None:
            return message
        left = self.left_seconds
        return f"{message}, {f'{left / 60:.0f} min' if left >= 90 else f'{left:.0f} s'} left"

    @property
    def pace(self) -> str:
        """`1.1 cells a second`."""
        return f"{self.rate:.3g} cells a second" if self.rate else ""

    def event(self) -> dict[str, Any]:
        """The event that the page receives."""
        return {**self._asdict(), "text": self.text, "rate": self.pace}


class LiveRun:
    """Counts the verdicts of one run. Shared by all pages that look at it."""

    def __init__(self, source: Tail, plan: Plan, case_name: Callable[[int], str], *, scored: bool) -> None:
        """`scored`: its suite has only scores, so that only errors count as not passed."""
        self._scored = scored
        self._source, self._plan, self._name = source, plan, case_name
        self._variants = {variant.name: place for place, variant in enumerate(plan.variants)}
        self._trials = [*map(plan.trials_of, plan.variants)]
        self._width = max(1, sum(self._trials))
        self._before = [sum(self._trials[:place]) for place in range(len(self._trials))]
        self._shard = plan.shard or Shard(1, 1)
        self._cells = bytearray(self._shard.cases(plan.cases_total) * self._width)
        self._answered = bytearray(len(self._cells))
        self._offsets = dict.fromkeys(_KINDS, 0)
        self._spent = dict.fromkeys(_KINDS, 0.0)
        self._first = self._retries = 0
        self._begun: tuple[float, int] | None = None
        """When this session was first looked at, and how many cells were done."""
        self._lock, self._looked = threading.Lock(), 0.0
        self._known: Progress | None = None

    def progress(self) -> Progress:
        """Progress that is at most a second old."""
        with self._lock:
            now = time.monotonic()
            if self._known is None or now - self._looked >= _INTERVAL:
                self._looked, self._known = now, self._look()
            return self._known

    def _look(self) -> Progress:
        is_written = self._source.is_written()  # before the records, so that everything written before the end is read
        for kind in _KINDS:
            marks, self._offsets[kind] = self._source.appended(kind, self._offsets[kind])
            if not self._offsets[kind]:
                self._spent[kind] = 0.0
                self._retries = 0 if kind == "traces" else self._retries
            for mark in marks:
                self._note(kind, mark)
        total, done = len(self._cells), len(self._cells) - self._cells.count(0)
        state = "running" if is_written else "finished" if done >= total else "interrupted"
        rate = self._rate(done, state)
        left = (total - done) / rate if rate else None
        failed = 0 if self._scored else sum(self._cells.count(_CODES[status]) for status in FAILED)
        running = list(self._running()) if state == "running" else []
        errors = self._cells.count(_CODES["error"])
        return Progress(state, done, total, failed, errors, rate, left, running, self._spent_text())

    def _rate(self, done: int, state: str) -> float:
        """Not since the run began: a run that was resumed has stood still, and `retry` begins with all cells done."""
        now = time.monotonic()
        if self._begun is None or state != "running":
            self._begun = (now, done) if state == "running" else None
            return 0.0
        since, before = self._begun
        return (done - before) / (now - since) if now - since >= _ENOUGH else 0.0

    def _note(self, kind: str, mark: Mark) -> None:
        cost = mark.cost_usd if mark.metrics is None else mark.metrics.cost_usd
        self._spent[kind] += cost or 0.0
        if (place := self._place(mark)) is None:
            return
        if kind == "verdicts":
            self._cells[place] = _CODES.get(mark.status, 0)
        elif kind == "traces":
            self._answered[place] = 1
            self._retries += mark.attempt > 1

    def _spent_text(self) -> str:
        """`$0.21 of $2.00, judges $0.04, 3 cells repeated`."""
        shard = self._plan.shard
        limits = self._plan.run.cost_limit_usd if shard is None else shard.cost_limit_usd, None
        texts = []
        for name, kind, limit in zip(("", "judges "), ("traces", "results"), limits, strict=True):
            if self._spent[kind] or limit is not None:
                texts.append(f"{name}{money(self._spent[kind])}{'' if limit is None else f' of {money(limit)}'}")
        return ", ".join([*texts, *([f"{counted(self._retries, 'cell')} repeated"] if self._retries else [])])

    def _place(self, mark: Mark) -> int | None:
        variant = self._variants.get(mark.variant_name)
        if variant is None or mark.case_index is None or not 0 <= mark.trial < self._trials[variant]:
            return None
        nth = self._shard.nth(mark.case_index)
        if nth is None:
            return None
        place = nth * self._width + self._before[variant] + mark.trial
        return place if 0 <= place < len(self._cells) else None

    def _running(self) -> Iterator[str]:
        """The first cells without a verdict, as many as run at a time: cells begin in the order of the suite."""
        self._first = place = self._cells.find(0, self._first)
        for _ in range(min(_MOST_RUNNING, self._plan.run.max_concurrency)):
            if place < 0:
                return
            nth, inside = divmod(place, self._width)
            variant = max(position for position, before in enumerate(self._before) if before <= inside)
            trial = inside - self._before[variant]
            several = f", trial {trial + 1}" if self._trials[variant] > 1 else ""
            waits = "its evaluators" if self._answered[place] else "the system"
            case = self._name(self._shard.position(nth))
            yield f"{case}, {self._plan.variants[variant].name}{several}: waits for {waits}"
            place = self._cells.find(0, place + 1)
