"""From the trace of a cell to its counted verdict: the second half of what `Pipeline` does for each cell."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from evalwright.model.artifact import Artifact
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter
from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.run.cells import RunState
from evalwright.run.judge import Judge
from evalwright.run.judged_lines import lines_by
from evalwright.run.records import Clock, PendingResult, drop_answer
from evalwright.scoring.tally import Tally

if TYPE_CHECKING:
    from evalwright.run.judge_queue import JudgeQueue
    from evalwright.run.steps.compare import WaitingCells
    from evalwright.run.steps.mirror import MirrorsOfPlan

__all__ = ["Verdicts"]

_COUNTED = 0.001
"""Seconds of judging one cell from which it is counted which evaluator took them."""


class Verdicts:
    """Stores traces, judges them, and stores and counts the verdicts of a session.

    Methods that may have to wait for something return the rest of their work, to be awaited, or None: most cells need
    no coroutine.
    """

    def __init__(
        self,
        plan: Plan,
        writer: RunWriter,
        judge: Judge,
        clock: Clock,
        state: RunState,
        tally: Tally,
        mirrors: MirrorsOfPlan | None,
    ) -> None:
        self._plan, self._writer, self._judge = plan, writer, judge
        self._clock, self._state, self._tally, self._mirrors = clock, state, tally, mirrors
        self._lines = None if mirrors is not None else lines_by(judge, clock, writer, tally)
        self._comparing: WaitingCells | None = None
        self.judging_seconds: float = 0.0
        """How long evaluators have kept the process busy."""
        self.busy_milliseconds: Counter[str] = Counter()
        """The same by evaluator."""
        self._write_records: Callable[[], None] = lambda: None
        self.write: Callable[[], None] = self._write_records
        """Writes the records and lines that are held, if any are."""
        self._later: Callable[[Callable[[], None]], None] | None = None
        """Calls a function in the next turn of the event loop, while there is one."""
        self._queue: JudgeQueue | None = None
        """Created at the first call that takes long: cells of quick ones are judged at once."""

    def hold(self, later: Callable[[Callable[[], None]], None]) -> None:
        """Hold records until `later` calls the function that it gets, or until `write`: those of many cells then take
        one write per file."""
        # Stores of other packages may be unable to do so: their records are written one by one.
        if (hold := getattr(self._writer, "hold", None)) is not None:
            self._write_records = hold(lambda write: later(self._flushing(write)))
            self.write = self._flushing(self._write_records)
        self._later = later

    def _flushing(self, write: Callable[[], None]) -> Callable[[], None]:
        lines = self._lines
        if lines is None:
            return write

        def flush() -> None:
            lines.flush()
            write()

        return flush

    def leave_unjudged(self) -> None:
        """Leave cells that are not judged yet to a later session."""
        if self._queue is not None:
            self._queue.clear()

    async def complete(self) -> None:
        """Wait until no cell waits to be judged."""
        while self._queue:
            await asyncio.sleep(0)

    def close(self) -> None:
        """No evaluator is called in a thread any more."""
        self._judge.close()
        if "_judge_of_stored" in self.__dict__:
            self._judge_of_stored.close()

    def release(self) -> None:
        """Write and count everything that is held, at the end of the session; what is not judged by then is left."""
        self.leave_unjudged()
        if self._lines is not None:
            self._lines.close()
        if (hold := getattr(self._writer, "hold", None)) is not None:
            hold(None)

    def store(self, case: Case, trace: Trace, artifact: Artifact | None, at_once: bool) -> Awaitable[None] | None:
        """Store a trace, and judge it at once or a little later. Raises StorageError.

        With `at_once`, the trace is written before that, and not together with the verdict.
        """
        if self._mirrors is not None:  # before the trace is stored: mirrors add their ids to it
            self._mirrors.prepare(trace)
        try:
            size = self._writer.append_trace(trace)
        except (TypeError, ValueError, RecursionError) as error:
            drop_answer(trace, error)  # nothing has been written so far
            size = self._writer.append_trace(trace)
        queue = self._queue
        if queue is None and at_once:
            queue = self._queue = self._new_queue()
        if queue is not None and (at_once or queue) and self._state.listener is None:
            queue.put(case, trace, size or 0)
            return None
        if at_once:  # an evaluator that blocks, or ends the process, must not lose an answer that took its time
            self._write_records()
        return self.judge(case, trace, artifact)

    def _new_queue(self) -> JudgeQueue | None:
        """A queue for cells with their answers; None if their judging has to wait for anything."""
        if self._lines is None or self._later is None:
            return None
        from evalwright.run.judge_queue import JudgeQueue

        return JudgeQueue(self.judge, self._state.running, self._write_records, self.write, self._later)

    def judge(
        self,
        case: Case,
        trace: Trace,
        artifact: Artifact | None = None,
        known: Sequence[EvaluationResult] = (),
        *,
        stored: bool = False,
    ) -> Awaitable[None] | None:
        """Judge a trace, except for the results that are `known`, and mark its cell as finished.

        One that was read from the store has a mask in place of each secret.
        """
        judge = self._judge_of_stored if stored else self._judge
        lines = None if known or self._state.listener is not None or judge is not self._judge else self._lines
        if lines is not None and (status := lines.judge(case, trace)) is not None:
            self._state.count(status, trace.metrics.cost_usd)
            return None
        begun = time.monotonic()
        results, pending = judge.evaluate(case, trace, [row.evaluator for row in known] if known else (), artifact)
        self.judging_seconds += (took := time.monotonic() - begun)
        if took > _COUNTED:
            self.busy_milliseconds.update({row.evaluator: row.latency_ms for row in results})
        if pending or self._judge.comparisons(case):
            return self._finish(case, trace, results, pending, known)
        return self._conclude(case, trace, results, known)

    @cached_property
    def _judge_of_stored(self) -> Judge:
        from evalwright.run.recorded_plan import as_traces_record

        recorded = as_traces_record(self._plan, self._writer)
        return self._judge if recorded is self._plan else Judge(recorded, self._judge.watchdog, self._clock)

    async def _finish(
        self,
        case: Case,
        trace: Trace,
        results: list[EvaluationResult],
        pending: Sequence[PendingResult],
        known: Sequence[EvaluationResult],
    ) -> None:
        if pending:
            await self._judge.finish(results, pending)
        if self._judge.comparisons(case):
            await self.compare(case, trace, results, known)
        elif (rest := self._conclude(case, trace, results, known)) is not None:
            await rest

    async def compare(
        self,
        case: Case,
        trace: Trace,
        results: list[EvaluationResult],
        known: Sequence[EvaluationResult],
        *,
        finished: bool = False,
    ) -> None:
        """Judge and mark as finished all cells of a case and trial, once the last of them is there.

        One that is `finished` has its verdict from an earlier session.
        """
        from evalwright.run.steps.compare import ComparedCell, WaitingCells

        if self._comparing is None:
            self._comparing = WaitingCells(self._plan, self._judge, self._clock)
        if cells := self._comparing.join(ComparedCell(case, trace, results, known, finished)):
            await self._comparing.compare(cells)
        for cell in cells:
            if cell.finished:
                continue
            if (rest := self._conclude(cell.case, cell.trace, cell.results, cell.known)) is not None:
                await rest

    def _conclude(
        self, case: Case, trace: Trace, results: list[EvaluationResult], known: Sequence[EvaluationResult]
    ) -> Awaitable[None] | None:
        """Store results and verdict, and count them. Returns the mirrors' work."""
        if self._lines is not None:  # records are written in the order in which cells were judged
            self._lines.flush()
        verdict = self._judge.conclude(case, trace, results, self._writer.append_results, known)
        self._writer.append_verdict(verdict)
        if known:
            results = [*known, *results]
        self._tally.add(trace, results, verdict)
        self._state.count(verdict.status, trace.metrics.cost_usd)
        if self._state.listener is not None or self._mirrors is not None:
            self.write()  # what mirrors receive must not be sent again after a crash
        if self._state.listener is not None:
            self._state.listener(case, trace, results, verdict)
        return None if self._mirrors is None else self._mirrors.cell(case, trace, results, verdict)
