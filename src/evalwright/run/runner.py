"""Run every cell that is not finished yet, exactly once, and write each down as it finishes.

A worker takes a cell, asks the target, appends the trace, judges it, appends the results and then the verdict,
which marks the cell as finished. A crash between any two of these leaves a cell that `resume` completes from
what is there. Workers are as many as the concurrency allows; nothing else is made per cell.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Set

from evalwright.errors import InputError, Interrupted, StorageError
from evalwright.model.artifact import Artifact
from evalwright.model.plan import Plan, Variant
from evalwright.model.protocols import RunWriter, Target
from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Metrics, Output, Trace, TraceError
from evalwright.run.call import GRACE, Call, deadline_in, failure_in, retriable
from evalwright.run.clock import Clock
from evalwright.run.grid import Cell, Grid
from evalwright.run.history import History, unjudged_traces
from evalwright.run.judge import Judge, append
from evalwright.run.limits import Watchdog
from evalwright.run.state import RunState
from evalwright.run.steps.enrich import Enriching
from evalwright.run.steps.mirror import Mirroring
from evalwright.run.steps.price import Pricing
from evalwright.run.steps.workspace import Workspaces
from evalwright.run.trace_record import trace_of
from evalwright.scoring.tally import Tally
from evalwright.targets.failures import target_failure
from evalwright.targets.threads import Threads

__all__ = ["Runner"]

_log = logging.getLogger(__name__)

_TICK = 0.05
_SYNC_PERIOD = 0.25
_LONGEST_PAUSE = 60.0
_BREATH = 0.02
"""Seconds after which a worker whose target never waits lets the others run."""


class Runner:
    """One session on one run: from the cells that are left to their records."""

    def __init__(
        self,
        plan: Plan,
        writer: RunWriter,
        targets: dict[str, Target],
        judge: Judge,
        watchdog: Watchdog,
        clock: Clock,
        state: RunState,
        tally: Tally,
        mirrors: Mirroring,
    ) -> None:
        self._plan, self._writer, self._targets, self._judge = plan, writer, targets, judge
        self._watchdog, self._clock, self._state, self._tally = watchdog, clock, state, tally
        self._mirrors, self._pricing, self._enriching = mirrors, Pricing(plan), Enriching(plan)
        self._spent = state.cost_usd
        self._grid = Grid(plan)
        self._calls: set[Call] = set()
        self._threads = Threads()
        self._workspaces = Workspaces(plan, writer, self._threads)
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event
        self._failure: BaseException | None = None
        self._breathed = 0.0
        self.stopping = False
        """Set to finish what runs and start nothing more."""
        self.setting_up: asyncio.Task[None] | None = None
        """The run's own task while the user's set-up code has it, which nobody needs to the end."""

    async def run(self, attempts: History | None, again: Set[int]) -> None:
        """Run what is left. `again` holds cells to be run once more although they have a trace.

        Raises StorageError when a record cannot be written; records written before stay valid.
        """
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._watchdog.watch_calls(Call.ask.__code__, deadline_in)
        ticker: list[asyncio.Task[None]] = []
        try:
            if not await self._set_up():
                return
            ticker = [asyncio.create_task(self._tick()), asyncio.create_task(self._keep_durable())]
            if attempts is not None:
                await self._judge_leftovers(attempts, again)
            for cells, width in self._queues(attempts, again):
                for _ in range(width):
                    self._start_worker(cells)
            if self._calls:
                await self._ended.wait()
        finally:
            for task in ticker:
                task.cancel()
            self._watchdog.beat = None
            await self._close_targets()
            await self._workspaces.close()
            self._threads.close()
        if self._failure is not None:
            raise self._failure
        self._writer.sync()

    def stop_soon(self) -> None:
        """`stop_now` from a signal handler."""
        self._loop.call_soon_threadsafe(self.stop_now)

    def stop_now(self) -> None:
        """Cancel what runs; those cells are left for a later session."""
        self.stopping = True
        for call in self._calls:
            if call.task is not None:
                call.task.cancel()
        if self.setting_up is not None:
            self.setting_up.cancel()
        self._loop.call_later(GRACE, self._ended.set)

    def _queues(self, history: History | None, again: Set[int]) -> Iterator[tuple[Iterator[Cell], int]]:
        """Cells and the number of workers on them: one queue for all variants, or one each (specification d.2)."""

        def attempt_of(number: int) -> int:
            if history is None:
                return 1
            if number in again or not history.traced[number]:
                return history.traced[number] + 1
            return 0

        start = 0
        if history is not None and not again:
            start = next((n for n, attempt in enumerate(history.traced) if not attempt), 0) // self._grid.per_case
        for variants, width in self._groups():
            cells = self._grid.cells(self._writer, variants, attempt_of, start)
            yield cells, min(width, self._grid.total)

    def _groups(self) -> Iterator[tuple[list[Variant], int]]:
        run = self._plan.run
        for pool, width in run.pools.items():
            if pooled := [v for v in self._plan.variants if v.pool == pool]:
                yield pooled, width
        others = [v for v in self._plan.variants if v.pool not in run.pools]
        if run.per_variant_concurrency is None and all(v.concurrency is None for v in others):
            if others:
                yield others, run.max_concurrency
            return
        for variant in others:
            yield [variant], variant.concurrency or run.per_variant_concurrency or run.max_concurrency

    def _start_worker(self, cells: Iterator[Cell]) -> None:
        call = Call(cells)
        self._calls.add(call)
        call.task = asyncio.create_task(self._work(call, cells))

    async def _work(self, call: Call, cells: Iterator[Cell]) -> None:
        try:
            for cell in cells:
                if self.stopping:
                    break
                await self._run_cell(call, cell)
                if call.abandoned:
                    return
        except asyncio.CancelledError:
            pass
        except GeneratorExit:
            raise  # left behind, and thrown away after the end of the run
        except BaseException as error:
            self._fail(error)
        self._leave(call)

    def _leave(self, call: Call) -> None:
        self._calls.discard(call)
        if not self._calls:
            self._ended.set()

    def _fail(self, error: BaseException) -> None:
        """Something of ours failed, most likely a write: nothing more may start."""
        self._failure = self._failure or error
        self.stop_now()
        self._ended.set()

    async def _run_cell(self, call: Call, cell: Cell) -> None:
        label = _label(cell)
        self._state.running[label] = time.monotonic()
        try:
            if self._over_limit():
                await self._record(cell, self._refused(cell))
            elif (answer := await self._ask(call, cell)) is not None and not call.abandoned:
                ended = time.monotonic()
                trace = self._trace(cell, answer, call.started, ended, call.retried)
                await self._enriching.enrich(trace)
                await self._record(cell, trace)
                if ended - self._breathed > _BREATH:
                    await asyncio.sleep(0)
                    self._breathed = time.monotonic()
        finally:
            self._state.running.pop(label, None)

    def _over_limit(self) -> bool:
        limit = self._plan.run.cost_limit_usd
        return limit is not None and self._spent >= limit

    def _refused(self, cell: Cell) -> Trace:
        limit = self._plan.run.cost_limit_usd
        why = f"not run: ${self._spent:.6g} were spent, the limit is ${limit:.6g} (run.cost_limit_usd)"
        now = time.monotonic()
        return self._trace(cell, TraceError("cost_limit", why), now, now, [])

    async def _ask(self, call: Call, cell: Cell) -> Answer | TraceError | None:
        """The last try's outcome (specification d.3); None when the run stops before a try that is still due."""
        target, rule = self._targets[cell.variant.name], self._plan.run.retry
        call.retried = []
        while True:
            answer = await self._workspaces.ask(call, target, cell)
            tries = len(call.retried) + 1
            error = failure_in(answer)
            if call.abandoned or error is None or not retriable(rule, error, tries):
                return answer
            call.retried.append(error)
            await self._pause(rule.backoff_seconds * 2 ** min(tries - 1, 30))
            if self.stopping:
                return None

    async def _pause(self, seconds: float) -> None:
        """Wait before another try, at most a minute, and no longer once the run is to stop."""
        until = time.monotonic() + min(seconds, _LONGEST_PAUSE)
        while not self.stopping and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _SYNC_PERIOD))

    async def _record(self, cell: Cell, trace: Trace) -> None:
        self._spent += trace.metrics.cost_usd or 0
        artifact = await self._workspaces.collect(cell)
        self._mirrors.prepare(trace)
        try:
            self._writer.append_trace(trace)
        except (TypeError, ValueError, RecursionError) as error:
            trace.output, trace.messages, trace.tool_calls, trace.tool_results = Output(), [], [], []
            trace.metrics, trace.extra, trace.spans, trace.error = Metrics(), {}, [], _unstorable(error)
            self._writer.append_trace(trace)
        await self._finish(cell.case, cell.case_index, trace, [], artifact)

    def _trace(
        self, cell: Cell, answer: Answer | TraceError, start: float, end: float, retried: list[TraceError]
    ) -> Trace:
        date = self._clock.date
        trace = trace_of(self._plan.run_id, cell, answer, date(start), date(end), int((end - start) * 1000))
        if retried:
            trace.metrics.custom = {**trace.metrics.custom, "retries": len(retried)}
            trace.extra = {**trace.extra, "retried": [{"type": e.type, "message": e.message} for e in retried]}
        self._pricing.fill(trace)
        return trace

    async def _finish(
        self, case: Case, case_index: int, trace: Trace, known: list[EvaluationResult], artifact: Artifact | None
    ) -> None:
        """Judge a stored trace, append what is new, and mark the cell as finished."""
        results, pending = self._judge.evaluate(case, trace, [row.evaluator for row in known], artifact)
        if pending:
            await self._judge.finish(results, pending)
        self._judge.spoil(results)
        append(results, self._writer.append_results)
        if known:
            results = known + results
        verdict = self._judge.verdict(case, trace, results)
        verdict.case_index = case_index
        self._writer.append_verdict(verdict)
        self._tally.add(trace, results, verdict)
        self._state.count(verdict.status, trace.metrics.cost_usd)
        await self._mirrors.cell(trace, results, verdict)

    async def _judge_leftovers(self, history: History, again: Set[int]) -> None:
        """Give a verdict to the traces that a crash left without one, keeping the results that are there."""
        traces = unjudged_traces(self._writer, self._grid, history)
        for number in again:
            traces.pop(number, None)
        if not traces:
            return
        rows: dict[tuple[str, str, int, int], list[EvaluationResult]] = {}
        wanted = {_key(trace) for trace in traces.values()}
        for row in self._writer.results(EvaluationResult):
            if _key(row) in wanted:
                rows.setdefault(_key(row), []).append(row)
        for trace in traces.values():
            assert trace.case_index is not None
            known = {row.evaluator: row for row in rows.get(_key(trace), [])}
            case, artifact = self._writer.case(trace.case_index), self._workspaces.stored.of(trace)
            await self._finish(case, trace.case_index, trace, list(known.values()), artifact)

    async def _tick(self) -> None:
        """Cancel late calls, replace workers whose call ignores that, show the watchdog that the loop turns."""
        last = time.monotonic()
        while True:
            self._watchdog.beat = time.monotonic()
            await asyncio.sleep(_TICK)
            now = time.monotonic()
            blocked = now - last - _TICK
            last = now
            for call in list(self._calls):
                if blocked > 10 * _TICK and call.deadline is not None:
                    call.deadline += blocked  # somebody else's blocking code is not this call's fault
                call.cancel_if_late(now)
                if call.stuck(now):
                    await self._abandon(call)

    async def _abandon(self, call: Call) -> None:
        """Record the cell of a call that does not come back, and let another worker take its place."""
        assert call.cell is not None
        call.abandoned, call.deadline = True, None
        limit = call.cell.variant.timeout_seconds
        stuck = TraceError("timeout", f"no answer within {limit:g} seconds, and the call ignored its cancellation")
        try:
            await self._record(call.cell, self._trace(call.cell, stuck, call.started, time.monotonic(), call.retried))
        except BaseException as error:
            self._fail(error)
        self._state.running.pop(_label(call.cell), None)
        self._start_worker(call.queue)
        self._leave(call)

    async def _keep_durable(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_PERIOD)
            try:
                await self._threads.call(self._writer.sync)
            except StorageError as error:
                self._fail(error)
                return

    async def _set_up(self) -> bool:
        """Make ready what cells need; False where the user wanted the end before that. Raises InputError."""
        self.setting_up = asyncio.current_task()
        try:
            await self._workspaces.open()
            await self._open_targets()
        except asyncio.CancelledError:
            if not self.stopping:
                raise
            return False
        finally:
            self.setting_up = None
        return True

    async def _open_targets(self) -> None:
        """Raises InputError when the user's set-up code fails or takes longer than a call may."""
        for variant in self._plan.variants:
            opening = getattr(self._targets[variant.name], "open", None)
            if opening is None:
                continue
            try:
                async with asyncio.timeout(variant.timeout_seconds):
                    await opening()
            except TimeoutError:
                raise InputError(
                    f"{variant.name!r} was not set up within {variant.timeout_seconds:g} seconds"
                ) from None
            except (asyncio.CancelledError, Interrupted):
                raise
            except InputError as error:
                raise InputError(f"{variant.name!r} cannot be set up: {error}") from error
            except BaseException as error:
                failure = target_failure(error)
                raise InputError(f"{variant.name!r} cannot be set up: {failure.message}") from error

    async def _close_targets(self) -> None:
        for name, target in self._targets.items():
            if closing := getattr(target, "close", None):
                try:
                    await asyncio.wait_for(closing(), GRACE)
                except TimeoutError:
                    _log.warning("%r was not closed within %g seconds", name, GRACE)
                except Exception as error:
                    _log.warning("closing %r raised %s: %s", name, type(error).__name__, error)


def _label(cell: Cell) -> str:
    """The cell as a person reads it, for the display."""
    return f"{cell.case.key} · {cell.variant.name}" + (f" · trial {cell.trial}" if cell.trial else "")


def _key(record: Trace | EvaluationResult) -> tuple[str, str, int, int]:
    return (record.case_key, record.variant_name, record.trial, record.attempt)


def _unstorable(error: BaseException) -> TraceError:
    return TraceError("adapter_error", f"the answer cannot be stored: {type(error).__name__}: {error}")
