"""Send what is stored to a suite's further outputs; failures there are counted and never stop a run."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from evalwright.files.masker import Masker
from evalwright.model.plan import Plan
from evalwright.model.protocols import Mirror, RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace
from evalwright.registry import load
from evalwright.stores.documents import reserved_words

__all__ = ["MirrorsOfPlan"]

_MOST_WAITING = 2_000
"""Cells by which one mirror may lag behind: they are held in memory, including whole traces."""
_PATIENCE = 10.0
"""Total seconds that a run waits for a lagging mirror before cells are left out there."""
_LONGEST = 500
_FAREWELL = 30.0
"""Seconds that a mirror has at the end to process what it has been sent."""

_OPS = {
    "start": "open",
    "catch_up": "save_trace",
    "prepare": "save_trace",
    "trace": "save_trace",
    "cell": "save_trace",
    "summary": "save_summary",
}
"""evalh's names for these steps, as `sink_errors` comes from evalh."""

T = TypeVar("T")
_Call = tuple[str, tuple[Any, ...]]


class MirrorsOfPlan:
    """The mirrors of a plan, each with a thread of its own that makes one call after the other."""

    def __init__(self, plan: Plan, masker: Masker, resumed: RunReader | None = None) -> None:
        self._masked = _Masked(masker.keeping(reserved_words(plan).union(RunSummary.__struct_fields__)))
        self._errors: dict[tuple[str, str, str], int] = {}
        self._mirrors = [
            _MirrorThread(spec.type, load("mirrors", spec.type)({**spec.config}), self._note_failure)
            for spec in plan.mirrors
        ]
        for thread in self._mirrors:
            thread.hide(masker.secrets)
            thread.now("start", plan)
            if resumed is not None:
                thread.now("catch_up", resumed)

    def prepare(self, trace: Trace) -> None:
        """Let mirrors add their ids to a trace before it is stored."""
        for thread in self._mirrors:
            thread.now("prepare", trace)

    async def cell(self, case: Case, trace: Trace, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> None:
        """Report a stored cell."""
        if self._masked.masker:
            trace, verdict = self._masked(trace), self._masked(verdict)
            results = [self._masked(result) for result in results]
            if any(thread.takes_part for thread in self._mirrors):
                case = self._masked(case)
        for thread in self._mirrors:
            if thread.takes_part:
                await asyncio.to_thread(thread.now, "cell", case, trace, results, verdict)
            elif not await thread.has_room():
                self._note_failure(thread.name, "trace", "too slow: cells were left out")
            else:
                thread.send("trace", trace, results, verdict)

    def finish(self, summary: RunSummary) -> None:
        """Send the summary, close the mirrors, and list in the summary what went wrong."""
        for thread in self._mirrors:
            thread.send("summary", self._masked(summary))
            thread.send("close")
        until = time.monotonic() + _FAREWELL
        for thread in self._mirrors:
            if not thread.ended(until):
                self._note_failure(thread.name, "close", f"not done {_FAREWELL:g} seconds after the end of the run")
        summary.sink_errors = [
            {"sink": sink, "op": _OPS.get(op, op), "error": error} | ({"count": count} if count > 1 else {})
            for (sink, op, error), count in list(self._errors.items())  # an abandoned mirror may still fail
        ]

    def _note_failure(self, sink: str, op: str, error: str) -> None:
        key = (sink, op, self._masked.masker.mask_text(error)[:_LONGEST])
        self._errors[key] = self._errors.get(key, 0) + 1


class _Masked:
    """Records as the store has them, without secrets: mirrors send them elsewhere."""

    def __init__(self, masker: Masker) -> None:
        self.masker = masker

    def __call__(self, record: T) -> T:
        line = msgspec.json.encode(record)
        return (
            msgspec.json.decode(self.masker.mask_bytes(line), type=type(record)) if self.masker.finds(line) else record
        )


class _MirrorThread:
    """One mirror and the queue of calls that it still has to receive."""

    def __init__(self, name: str, mirror: Mirror, failed: Callable[[str, str, str], None]) -> None:
        self.name, self._mirror, self._note_failure = name, mirror, failed
        self.takes_part = hasattr(mirror, "cell")
        """A cell ends only when the mirror has been told of it."""
        self._waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._patience = _PATIENCE
        self._thread = threading.Thread(target=self._work, name=f"mirror {name}", daemon=True)
        self._thread.start()

    def hide(self, secrets: Mapping[str, str]) -> None:
        """Tell a mirror that writes the plan itself what it must mask."""
        if (hide := getattr(self._mirror, "hide", None)) is not None:
            hide(secrets)

    def send(self, op: str, *values: Any) -> None:
        self._waiting.put((op, values))
        if op == "close":
            self._waiting.put(None)

    def now(self, op: str, *values: Any) -> None:
        method = getattr(self._mirror, op, None)
        if method is None:
            return
        try:
            method(*values)
        except Exception as error:
            self._note_failure(self.name, op, f"{type(error).__name__}: {error}")

    async def has_room(self) -> bool:
        while self._waiting.qsize() >= _MOST_WAITING:
            if self._patience <= 0:
                return False
            await asyncio.sleep(0.05)
            self._patience -= 0.05
        return True

    def ended(self, until: float) -> bool:
        self._thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            self.now(call[0], *call[1])
