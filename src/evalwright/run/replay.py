"""A large run of recordings: replayed and judged in several processes that write in turns.

Each process takes a share of the cases and appends the lines of its cells in batches, holding a lock. In a batch, the
traces are written first, then the results, then the verdicts, so that a crash leaves the same as in any run: cells
without a verdict, which `resume` completes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from evalwright.errors import EvalwrightError, StorageError
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter, Target
from evalwright.model.result import Status
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Trace, TraceError
from evalwright.run.cells import Cell, Grid, RunState
from evalwright.run.children import begin_child, next_message, processors
from evalwright.run.judge import Judge, compares, evaluators_call_models
from evalwright.run.judged_lines import lines_by
from evalwright.run.limits import Watchdog, new_loop, run_to_end
from evalwright.run.records import Clock, drop_answer, trace_of
from evalwright.scoring.fold import fold
from evalwright.scoring.tally import Tally
from evalwright.session import Session
from evalwright.stores.local_files.writer import LocalWriter
from evalwright.targets.failures import target_failure

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Lock

    from evalwright.run.steps.price import Pricing

__all__ = ["processes_for", "replay_in_processes"]

_FEWEST = 5_000
"""Cells below which starting processes is not worth it."""
_BATCH = 50
"""Cells that are replayed, then judged, then written: taking each step for all of them before the next one saves a
sixth of the time. The lines of more take blocks of memory that the system maps anew for each."""
_LARGE = 1 << 18
"""Bytes of recordings from which fewer cells are enough, so that memory does not grow with their size."""
_SYNC_PERIOD = 0.25
_REPORT_AFTER = 0.1
"""Seconds between messages about finished cells: each costs as much as judging some."""


def processes_for(plan: Plan, writer: RunWriter) -> int:
    """How many processes may share a fresh run: one, unless it only judges recordings, without models."""
    recorded = all(
        variant.adapter == "replay" and variant.isolation == "none" and not variant.enrich_trace_from
        for variant in plan.variants
    )
    alone = plan.mirrors or plan.workspace or plan.evaluators_by_case or plan.run.cost_limit_usd is not None
    if (
        not recorded
        or alone
        or not isinstance(writer, LocalWriter)
        or Grid(plan).total < _FEWEST
        or evaluators_call_models(plan)
    ):
        return 1
    if any(compares(spec.type) for spec in plan.evaluators):
        return 1
    if sys.platform != "linux":  # only there do children end with their parent, however it dies
        return 1
    return min(processors(), plan.run.max_concurrency)


def replay_in_processes(
    plan: Plan, writer: RunWriter, targets: dict[str, Target], tally: Tally, state: RunState, processes: int
) -> None:
    """Run every cell of a fresh run. Raises StorageError; `state.stopping` ends it early.

    What has not been written by then is left for a later session.
    """
    assert isinstance(writer, LocalWriter)
    import multiprocessing  # small runs have no such processes

    context = multiprocessing.get_context("fork")
    gc.freeze()  # what exists now stays: no collection in the children has to visit it
    turn = context.Lock()
    children, receivers = [], []
    for number in range(processes):
        cut = (plan.cases_total * number // processes, plan.cases_total * (number + 1) // processes)
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(
            target=_child, args=(os.getpid(), plan, writer, targets, cut, turn, sender), daemon=True
        )
        child.start()
        sender.close()
        children.append(child)
        receivers.append(receiver)
    counted = Tally.of(plan)
    try:
        with _kept_durable(writer) as failed:
            whole = _collect(receivers, counted, state, failed)
    finally:
        turn.acquire(timeout=_SYNC_PERIOD)  # no child is ended in the middle of a write
        for child in children:
            child.kill()
            child.join()
        gc.unfreeze()
    writer.follow()
    writer.sync()
    tally.merge(counted if whole else fold(writer, plan))


def _collect(receivers: list[Connection], tally: Tally, state: RunState, failed: list[StorageError]) -> bool:
    """Take the messages of all children; whether they have ended, so that all counts are there."""
    from multiprocessing.connection import Connection, wait

    waiting = list(receivers)
    while waiting and not state.stopping:
        for receiver in wait(waiting, timeout=_SYNC_PERIOD):
            if failed:
                raise failed[0]
            assert isinstance(receiver, Connection)
            if _take(receiver, tally, state):
                waiting.remove(receiver)
    return not waiting


def _take(receiver: Connection, tally: Tally, state: RunState) -> bool:
    """Take one message; whether it was the last one."""
    message = next_message(receiver)
    if isinstance(message, Tally):
        tally.merge(message)
        return True
    statuses, cost_usd = message
    for status, number in statuses.items():
        for _ in range(number):
            state.count(status, None)
    state.cost_usd += cost_usd
    return False


@contextlib.contextmanager
def _kept_durable(writer: LocalWriter) -> Iterator[list[StorageError]]:
    """Sync now and then in a thread; failures there are handed over."""
    over, failed = threading.Event(), list[StorageError]()

    def keep() -> None:
        while not over.wait(_SYNC_PERIOD):
            try:
                writer.follow()
                writer.sync()
            except StorageError as error:
                failed.append(error)
                return

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield failed
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


def _child(
    parent: int,
    plan: Plan,
    writer: LocalWriter,
    targets: dict[str, Target],
    cut: tuple[int, int],
    turn: Lock,
    sender: Connection,
) -> None:
    begin_child(parent)
    gc.set_threshold(50_000)  # records form no cycles
    watchdog = Watchdog()
    share = _Share(plan, writer, targets, watchdog)
    try:
        with Session(owns_process=True), watchdog, closing(new_loop()) as loop:
            run_to_end(loop, share.run(cut, turn, sender))
        sender.send(share.tally)
    except EvalwrightError as error:
        sender.send(StorageError(str(error)) if isinstance(error, StorageError) else EvalwrightError(str(error)))
    sender.close()


def _next_batch(cells: Iterable[Cell]) -> list[Cell]:
    """The next cells that are replayed together; none after the last one."""
    batch: list[Cell] = []
    size = 0
    for cell in cells:
        batch.append(cell)
        size += memoryview(cell.case.recorded).nbytes
        if len(batch) == _BATCH or size > _LARGE:
            break
    return batch


class _Share:
    """The cells of some of the cases. It is where `JudgedLines` puts those that it judges."""

    def __init__(self, plan: Plan, writer: LocalWriter, targets: dict[str, Target], watchdog: Watchdog) -> None:
        self._plan, self._writer, self._targets = plan, writer, targets
        self._clock = Clock()
        self._judge = Judge(plan, watchdog, self._clock)
        self._pricing: Pricing | None = None
        if plan.prices:
            from evalwright.run.steps.price import Pricing

            self._pricing = Pricing(plan)
        self._results: list[bytes] = []
        self._verdicts: list[bytes] = []
        self._statuses, self._cost_usd, self._reported_at = Counter[str](), 0.0, 0.0
        self.tally = Tally.of(plan)
        self._lines = lines_by(self._judge, self._clock, self, self.tally)

    async def run(self, cut: tuple[int, int], turn: Lock, sender: Connection) -> None:
        start, end = cut
        cells = Grid(self._plan).cells(self._writer, self._plan.variants, lambda _: 1, start)
        share = takewhile(lambda cell: cell.case_index < end, cells)
        while batch := _next_batch(share):
            traces = await self._replayed_traces(batch)
            stored = self._stored_lines(traces)
            for cell, trace in zip(batch, traces, strict=True):
                self._cost_usd += trace.metrics.cost_usd or 0.0
                status = None if self._lines is None else self._lines.judge(cell.case, trace)
                self._statuses[status or await self._judged_status(cell.case, trace)] += 1
            self._write(stored, turn)
            self._report(sender)
        self._report(sender, last=True)
        if self._lines is not None:
            self._lines.close()

    def _write(self, traces: bytes, turn: Lock) -> None:
        if self._lines is not None:
            self._lines.flush()
        finished = self._writer.encoder.finished
        lines = [finished(part) for part in (traces, b"".join(self._results), b"".join(self._verdicts))]
        self._results.clear()
        self._verdicts.clear()
        with turn:
            self._writer.append_finished(*lines)

    def _report(self, sender: Connection, *, last: bool = False) -> None:
        """Tell the parent about the cells that were written since the last message."""
        now = time.monotonic()
        if last or now - self._reported_at >= _REPORT_AFTER:
            sender.send((self._statuses, self._cost_usd))
            self._statuses, self._cost_usd, self._reported_at = Counter(), 0.0, now

    async def _replayed_traces(self, cells: Sequence[Cell]) -> list[Trace]:
        answers = [await self._answer(cell) for cell in cells]
        now, run_id = self._clock.now(), self._plan.run_id
        traces = [trace_of(run_id, cell, answer, now, now, 0) for cell, answer in zip(cells, answers, strict=True)]
        if self._pricing is not None:
            for trace in traces:
                self._pricing.fill(trace)
        return traces

    def _stored_lines(self, traces: list[Trace]) -> bytes:
        """The lines of traces; one that JSON cannot hold loses its answer."""
        unfinished = self._writer.encoder.unfinished
        try:
            return unfinished(traces)
        except (TypeError, ValueError, RecursionError) as error:
            if len(traces) > 1:
                return b"".join([self._stored_lines([trace]) for trace in traces])
            drop_answer(traces[0], error)
            return unfinished(traces)

    async def _judged_status(self, case: Case, trace: Trace) -> Status:
        """Judge a cell record by record."""
        if self._lines is not None:
            self._lines.flush()
        results, pending = self._judge.evaluate(case, trace)
        if pending:
            await self._judge.finish(results, pending)
        unfinished = self._writer.encoder.unfinished
        verdict = self._judge.conclude(case, trace, results, lambda rows: self._results.append(unfinished(rows)))
        self._verdicts.append(unfinished([verdict]))
        self.tally.add(trace, results, verdict)
        return verdict.status

    def noting(self) -> None:
        """See `JudgedBlocks`."""

    def append_lines(self, results: bytes, verdicts: bytes) -> None:
        """See `JudgedBlocks`."""
        self._results.append(results)
        self._verdicts.append(verdicts)

    async def _answer(self, cell: Cell) -> Answer | TraceError:
        try:
            answer: Any = await self._targets[cell.variant.name].run(cell.case, cell.trial)
        except Exception as error:
            return target_failure(error)
        return answer if isinstance(answer, Answer) else TraceError("adapter_error", "no recording")
