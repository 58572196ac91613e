"""One session of work on a run: its own event loop, signals, limits and the display around the runner."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evalwright.errors import Interrupted, StorageError
from evalwright.files.bulk import collector_eased
from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter, Target
from evalwright.run.call import target_of
from evalwright.run.cells import Grid, RunState, fitted, groups_of, most_at_once
from evalwright.run.judge import Judge
from evalwright.run.limits import LAST_SECONDS, Watchdog, end_loose_tasks, new_loop, run_to_end
from evalwright.run.pipeline import Pipeline
from evalwright.run.records import Clock
from evalwright.run.runner import Runner
from evalwright.run.verdicts import Verdicts
from evalwright.scoring.tally import Tally
from evalwright.session import returning, session
from evalwright.session.open_files import descriptors_kept
from evalwright.session.process import users_begin
from evalwright.session.signals import Signals

if TYPE_CHECKING:
    from evalwright.run.executors import Sites
    from evalwright.run.history import History
    from evalwright.run.steps.mirror import MirrorsOfPlan

__all__ = ["Job", "Watch", "begin", "targets_of", "work", "work_here"]

Watch = Callable[[RunState], AbstractContextManager[None]]
"""A display: it gets the state of the run and is entered for as long as the run works."""

_CLOSED = (
    "the files of the run were closed while it worked, most likely by the system under test: run it with "
    "isolation: process; what was stored stays valid, and `evalwright resume` runs the rest"
)


def targets_of(plan: Plan) -> dict[str, Target]:
    """The target of each variant, for calls from this process."""
    return {variant.name: target_of(variant, plan.import_paths) for variant in plan.variants}


@dataclass(slots=True)
class Job:
    """What is left of a run, and where it is written."""

    plan: Plan
    writer: RunWriter
    tally: Tally
    state: RunState
    """Setting its `stopping` lets the cells in flight finish and starts no more."""
    mirrors: MirrorsOfPlan | None = None
    history: History | None = None
    """What earlier sessions did; None for a fresh run."""
    again: frozenset[int] = frozenset()
    """Cells that are run again although they have a trace."""
    signals: Signals = field(default_factory=lambda: Signals(owns_process=False))
    """Signals that ask for the end, from before the job was made until its summary is stored."""


def begin(
    state: RunState, plan: Plan, history: History | None, again: frozenset[int], models: ModelChoices | None
) -> None:
    """Set the counters with which a session on a plan begins, and what is reported before its first cell."""
    total = Grid(plan).total
    finished = 0 if history is None else sum(history.finished(n) and n not in again for n in range(total))
    spent = 0.0 if history is None else history.spent_usd
    most, warning = most_at_once(plan, total - finished)
    if warning:
        plan.warnings = [*plan.warnings, warning]
    state.total, state.done, state.already_done, state.cost_usd = total, finished, finished, spent
    state.warnings, state.at_once = plan.warnings, most
    if plan.shard is not None:
        from evalwright.run.shards import notes_at_start

        state.about = notes_at_start(plan, models, state.lease)


@returning()
def work(job: Job, watch: Watch | None = None) -> bool:
    """Run what is left of a plan for the current session, in an event loop of its own. True when it was interrupted.

    Raises InputError for a target or evaluator that cannot be built, StorageError when a write fails, RuntimeError in
    a thread in which an event loop runs: `work_here` is for those.
    """
    plan, state, ours = job.plan, job.state, session().owns_process
    display = watch(state) if watch else contextlib.nullcontext()
    watchdog = Watchdog(ours)
    runner, targets = _runner(job, watchdog)
    # only a process of our own may be forked: in another, other threads may hold locks for ever in the child
    forks = ours and plan.until_decided is None  # only this process can know that it has seen enough to decide
    if (
        forks
        and job.history is None
        and not job.again
        and all(variant.adapter == "replay" for variant in plan.variants)
    ):
        from evalwright.run.replay import processes_for, replay_in_processes

        if (processes := processes_for(plan, job.writer)) > 1:
            with display, job.signals.handled_by(lambda _: setattr(state, "stopping", True)):
                replay_in_processes(plan, job.writer, targets, job.tally, state, processes)
            return state.done < state.total
    users_begin()
    calls = sum(width for _, width in fitted(groups_of(plan), state.total - state.done, state.at_once))
    eased = collector_eased(calls) if ours else contextlib.nullcontext()  # elsewhere the collector is not ours
    with watchdog, display, eased, _interruptible(runner, watchdog, job):
        _run_loop(runner, job)
    return state.interrupted


async def work_here(job: Job, watch: Watch | None = None) -> bool:
    """Like `work`, in the caller's running event loop: targets and asynchronous evaluators run there, too.

    Needs a session, as `work` does; it may belong to this task alone. Setting `job.state.stopping` ends the run once
    the cells in flight have finished; cancelling this task cancels them, and leaves behind after a few seconds what
    ignores that. Either way the run can be resumed. Nothing can interrupt a target that blocks the loop.
    """
    state = job.state
    runner, _ = _runner(job, Watchdog(owns_process=False))
    with watch(state) if watch else contextlib.nullcontext():
        running = asyncio.create_task(runner.run(job.history, job.again))
        try:
            await asyncio.shield(running)  # the runner itself continues: it has records to write and targets to close
        except asyncio.CancelledError:
            runner.stop_now()
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # asyncio would log an exception that was never retrieved
            raise
        finally:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(session().aclose(), LAST_SECONDS)
    return state.interrupted


def _runner(job: Job, watchdog: Watchdog) -> tuple[Runner, dict[str, Target]]:
    """What runs the cells, and the systems that it calls."""
    plan, writer, state, clock = job.plan, job.writer, job.state, Clock()
    judge, (targets, sites) = Judge(plan, watchdog, clock), _executor(job)
    verdicts = Verdicts(plan, writer, judge, clock, state, job.tally, job.mirrors)
    answered = frozenset[str]() if job.history is None else job.history.answered(Grid(plan))
    pipeline = Pipeline(plan, writer, targets, sites, clock, state, verdicts, answered)
    return Runner(plan, writer, pipeline, verdicts, watchdog, state), targets


def _executor(job: Job) -> tuple[dict[str, Target], Sites | None]:
    """What calls the systems of a run, and where that takes place. Raises InputError."""
    plan, targets = job.plan, targets_of(job.plan)
    if not isinstance(plan.run.executor, msgspec.UnsetType):
        from evalwright.run.executors import is_elsewhere

        if is_elsewhere(plan):
            from evalwright.run.executors.ray import RaySites

            sites = RaySites(plan, plan.run.executor, job.writer, targets, job.state)
            return sites.targets, sites
    if plan.workspace is None:
        return targets, None
    from evalwright.run.steps.workspace import Workspaces

    return targets, Workspaces(plan, plan.workspace, job.writer)


def _run_loop(runner: Runner, job: Job) -> None:
    """Run to the end in a new loop.

    `asyncio.run` would wait forever for user tasks that ignore their cancellation, and for the default executor's
    threads. Here both final waits are limited: for the models to close, and for tasks that were left behind.
    """
    loop = new_loop()
    loop.set_exception_handler(lambda _loop, _context: None)  # leftovers of user code deserve no log lines at the end
    try:
        with descriptors_kept(str(Path(job.writer.location).absolute())):
            run_to_end(loop, runner.run(job.history, job.again))
    except OSError as error:
        if error.errno != errno.EBADF:  # caused by code that closes descriptors behind our back
            raise
        raise StorageError(_CLOSED) from error
    finally:
        with contextlib.suppress(Exception):
            loop.run_until_complete(asyncio.wait_for(session().aclose(), LAST_SECONDS))
        with contextlib.suppress(OSError):  # the code that closed our files has closed the loop's, too
            end_loose_tasks(loop)
            loop.close()


@contextlib.contextmanager
def _interruptible(runner: Runner, watchdog: Watchdog, job: Job) -> Iterator[None]:
    """Ctrl-C once finishes what runs; twice (or SIGTERM, SIGHUP) stops now, and in blocking code it raises.

    While targets are being set up there is nothing to finish: once stops, twice raises.
    """
    state = job.state

    def stop(number: int) -> None:
        first = not state.stopping
        state.stopping = True
        if number == signal.SIGINT and first and not runner.setting_up:
            return
        runner.hurry()
        # A blocked loop would not get to what is scheduled on it, and neither would the user.
        blocked = watchdog.beat is not None and time.monotonic() - watchdog.beat > 1.0
        if blocked or (runner.setting_up and not first):
            raise Interrupted
        if state.stop_now is not None:  # otherwise nothing has begun yet, or everything has ended
            state.stop_now()

    try:
        with job.signals.handled_by(stop):
            yield
    except Interrupted:
        state.stopping = True
