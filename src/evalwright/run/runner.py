"""Run every cell that is not finished yet, exactly once, with as many workers as the concurrency allows.

A worker takes a cell and brings it through the pipeline, which writes its records along the way. A crash between any
two of them leaves a cell that `resume` completes from what is there. Only workers are created for the cells.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Set
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from evalwright.errors import StorageError, UnsentCall, in_seconds
from evalwright.llm.patience import stops
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter
from evalwright.model.trace import TraceError
from evalwright.run.call import GRACE, Call
from evalwright.run.cells import Cell, Grid, RunState, fitted, groups_of
from evalwright.run.limits import Watchdog, deadlines
from evalwright.run.pipeline import Pipeline
from evalwright.run.verdicts import Verdicts

if TYPE_CHECKING:
    from evalwright.run.history import History

__all__ = ["Runner"]

_TICK = 0.05
"""Seconds between checks of calls' deadlines, and thus the precision of time limits."""
_BRIEF = 0.001
"""Seconds from which a write for a single cell does not matter."""
_BREATH = 0.02
"""Seconds after which a worker always lets the others run: less than a tick."""
_SYNC_PERIOD = 0.25
"""Seconds between syncs, and thus what a power cut may cost. With a shorter period, slow disks would delay the run."""
_LATE = 5.0
"""Seconds that a sync may take while cells go on: slow disks take two or three of them."""


class Runner:
    """One session of one run: from the cells that are left to their records."""

    def __init__(
        self,
        plan: Plan,
        writer: RunWriter,
        pipeline: Pipeline,
        verdicts: Verdicts,
        watchdog: Watchdog,
        state: RunState,
    ) -> None:
        self._plan, self._writer, self._pipeline, self._verdicts = plan, writer, pipeline, verdicts
        self._watchdog, self._state = watchdog, state
        self._grid = Grid(plan)
        self._calls: set[Call] = set()
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event
        self._failure: BaseException | None = None
        self._breathed = 0.0
        self._taken = 0
        self._unwritten = 0
        """Cells that have ended since the last write."""
        self._syncing: float | None = None
        """Since when a sync has been going on."""
        self._waiting: asyncio.Task[None] | None = None
        """The run's own task while it waits for the user's code, before the first cell."""
        self.setting_up: bool = False
        """Whether that is setup code, which may never end."""

    async def run(self, attempts: History | None, again: Set[int]) -> None:
        """Run what is left. `again` contains cells to be run once more although they have a trace.

        Raises StorageError if a record cannot be written; records written before stay valid.
        """
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._state.stop_now = self.stop_soon
        self._verdicts.hold(self._write_later)
        # Also while systems are set up and closed, which may block the loop, and even before its first turn.
        self._watchdog.beat = time.monotonic()
        beside = [asyncio.create_task(self._tick()), asyncio.create_task(self._sync_regularly())]
        lease = self._state.lease
        if lease is not None:
            beside.append(asyncio.create_task(lease.watch()))
        try:
            if self._state.stopping or not await self._set_up():
                return
            if attempts is not None:
                from evalwright.run.leftovers import judge_leftovers

                left = judge_leftovers(self._pipeline, self._plan, self._writer, self._grid, attempts, again)
                with suppress(UnsentCall):
                    await self._wait_before_cells(left)
            for cells, width in self._queues(attempts, again):
                for _ in range(width):
                    self._start_worker(cells)
            if self._calls:
                await self._ended.wait()
                await self._verdicts.complete()
        finally:
            self._state.stop_now = None  # first: from here on, a signal must not cancel anything that is being closed
            self._calls.clear()  # calls that did not end are left behind
            try:
                self._verdicts.close()
                await self._pipeline.close()
            finally:
                for task in beside:
                    task.cancel()
                self._watchdog.beat = None
                self._verdicts.release()  # also after a signal in blocking code: the summary counts what was judged
                if lease is not None:
                    await lease.settle()
        if self._failure is not None:
            raise self._failure
        self._writer.sync()

    def _write_later(self, write: Callable[[], None]) -> None:
        """Write what cells left in this turn of the loop once it is over, in one call for each file."""

        def written() -> None:
            self._unwritten = 0
            try:
                write()
            except BaseException as error:  # the loop would only log it, and the run would continue without its records
                self._fail(error)

        self._loop.call_soon(written)

    def _write(self) -> None:
        self._unwritten = 0
        self._verdicts.write()

    def hurry(self) -> None:
        """Let a store that does not answer be given up soon."""
        if (hurry := getattr(self._writer, "hurry", None)) is not None:
            hurry()

    def stop_soon(self) -> None:
        """`stop_now` for a signal handler."""
        self.hurry()  # the loop may be blocked by waiting for the store
        self._loop.call_soon_threadsafe(self.stop_now)

    def stop_now(self) -> None:
        """Cancel what runs; those cells, and those that are not judged yet, are left for a later session."""
        self._state.stopping = True
        self.hurry()
        self._verdicts.leave_unjudged()
        for call in self._calls:
            call.end()
        if self._waiting is not None:
            self._waiting.cancel()
        self._loop.call_later(GRACE, self._ended.set)  # for calls that ignore it: the run then ends without them

    def _queues(self, history: History | None, again: Set[int]) -> Iterator[tuple[Iterator[Cell], int]]:
        """Cells and the number of their workers: one queue for all variants, unless some have a limit of their own."""

        def attempt_of(number: int) -> int:
            if history is None:
                return 1
            if number in again or not history.traced[number]:
                # also above the attempt of a lost trace, whose results and verdict are still there
                return max(history.traced[number], history.judged[number]) + 1
            return 0

        start = 0
        if history is not None and not again:  # what is finished at the beginning need not be read again
            start = self._grid.case_index(next((n for n, attempt in enumerate(history.traced) if not attempt), 0))
        for variants, width in fitted(groups_of(self._plan), self._grid.total, self._state.at_once):
            yield self._grid.cells(self._writer, variants, attempt_of, start), width

    def _start_worker(self, cells: Iterator[Cell]) -> None:
        call = Call(cells)
        self._calls.add(call)
        call.task = asyncio.create_task(self._work(call, cells))

    async def _work(self, call: Call, cells: Iterator[Cell]) -> None:
        stops.set(call.stop)
        deadlines.set(lambda: call.deadline)
        running, run, stuck = self._state.running, self._pipeline.run, self._state.stuck
        try:
            for cell in cells:
                if self._syncing is not None:
                    await self._wait_for_sync()
                if self._state.behind is not None:
                    await self._wait_for_listener(self._state.behind)
                if stuck:
                    await self._wait_for_last_answers(cell.variant.name)
                if self._state.stopping or len(stuck) == len(self._plan.variants):
                    break
                if cell.variant.name in stuck:
                    continue
                # A crash loses no more calls than may be in flight at once.
                if len(running) + self._unwritten >= len(self._calls):
                    self._write()
                begun = time.monotonic()
                running[cell.number] = (cell, begun)
                self._taken += 1
                number = self._taken
                try:
                    await run(call, cell)
                finally:
                    running.pop(cell.number, None)
                if call.abandoned:  # its cell was recorded as late, and another worker has taken over the queue
                    return
                # Records are written once everything that can continue in this turn of the loop has done so; if other
                # workers were active meanwhile, this one waits for that.
                ended = time.monotonic()
                took = ended - begun
                self._unwritten += 1
                # Targets and evaluators that never wait would keep the event loop to themselves until the queue is
                # empty: no deadline would be checked, nothing synced, and the other workers would start nothing.
                if number < self._taken or ended - self._breathed > _BREATH:
                    await asyncio.sleep(0)
                    self._breathed = time.monotonic()
                elif took > _BRIEF:
                    self._write()
        except (asyncio.CancelledError, UnsentCall):
            pass
        except GeneratorExit:
            raise  # left behind, and thrown away after the end of the run
        except BaseException as error:
            # StorageError most likely; or Interrupted, which is not an Exception, from a signal in blocking code. A
            # task keeps its exception to itself: handed over, it ends the run and is raised there.
            self._fail(error)
        self._leave(call)

    async def _wait_for_last_answers(self, variant: str) -> None:
        """Wait for cells in flight of a system that is about to be stopped: one of them may still get an answer."""
        stuck, running = self._state.stuck, self._state.running
        while variant in stuck and any(cell.variant.name == variant for cell, _ in list(running.values())):
            if self._state.stopping:
                return
            await asyncio.sleep(_TICK)

    def _leave(self, call: Call) -> None:
        self._calls.discard(call)
        if not self._calls:
            self._ended.set()

    def _fail(self, error: BaseException) -> None:
        """Our own code failed, most likely in a write: nothing more may start."""
        self._failure = self._failure or error
        self.stop_now()
        self._ended.set()

    async def _tick(self) -> None:
        """Cancel late calls, replace workers whose call ignores that, and show the watchdog that the loop turns."""
        last = time.monotonic()
        while True:
            self._watchdog.beat = time.monotonic()
            await asyncio.sleep(_TICK)
            now = time.monotonic()
            blocked = now - last - _TICK
            last = now
            for call in list(self._calls):
                if blocked > 10 * _TICK and call.deadline is not None:
                    call.deadline += blocked  # blocking code of another cell is not this call's fault
                call.cancel_if_late(now)
                if call.stuck(now):
                    await self._abandon(call)

    async def _abandon(self, call: Call) -> None:
        """Record the cell of a call that does not come back, and let another worker take its place.

        Cancelling it again would not help: it caught the first cancellation. Its worker hangs in the call and
        could take no other cell, so a new one goes on with the queue. Should the call come back after all, its worker
        sees that it was abandoned and ends; its thread, if it has one, is a daemon and ends with the process.
        """
        assert call.cell is not None
        call.abandoned, call.deadline = True, None
        limit = call.cell.variant.timeout_seconds
        stuck = TraceError("timeout", f"no answer within {in_seconds(limit)}, and the call ignored its cancellation")
        try:
            trace = self._pipeline.trace(call.cell, stuck, call.started, time.monotonic(), call.retried)
            if (rest := self._pipeline.record(call.cell, trace)) is not None:
                await rest
        except BaseException as error:
            # As in `_work`: this runs in the ticker, whose death would leave every later call without a limit.
            self._fail(error)
        self._state.running.pop(call.cell.number, None)
        self._start_worker(call.queue)
        self._leave(call)

    async def _sync_regularly(self) -> None:
        await asyncio.sleep(_SYNC_PERIOD)  # many runs have ended by then
        from evalwright.targets.threads import Threads

        with closing(Threads()) as threads:
            while True:
                self._syncing = time.monotonic()
                try:
                    await threads.call(self._writer.sync)  # a sync may take a second, and cells continue meanwhile
                except StorageError as error:
                    self._fail(error)
                    return
                finally:
                    self._syncing = None
                await asyncio.sleep(_SYNC_PERIOD)

    async def _wait_for_sync(self) -> None:
        """Wait while a sync takes too long: should its server never return, everything since is called again."""
        while self._syncing is not None and not self._state.stopping and time.monotonic() - self._syncing > _LATE:
            await asyncio.sleep(_SYNC_PERIOD)

    async def _wait_for_listener(self, behind: Callable[[], bool]) -> None:
        """Wait while cells finish faster than they are received: all those in between are held in memory."""
        while behind() and not self._state.stopping:
            await asyncio.sleep(_TICK)

    async def _set_up(self) -> bool:
        """Prepare what cells need; False if the user asked for the end before that. Raises InputError."""
        self.setting_up = True
        try:
            return await self._wait_before_cells(self._pipeline.open())
        finally:
            self.setting_up = False

    async def _wait_before_cells(self, work: Awaitable[None]) -> bool:
        """Await what comes before the first cell; False if the run was to stop now before that was done."""
        self._waiting = asyncio.current_task()
        try:
            await work
        except asyncio.CancelledError:
            if not self._state.stopping:
                raise
            return False
        finally:
            self._waiting = None
        return True
