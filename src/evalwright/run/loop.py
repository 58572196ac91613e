"""One session of work on a run: an event loop of its own, signals, limits and the display round the runner."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from evalwright.errors import Interrupted
from evalwright.model.chat import Models
from evalwright.model.plan import Plan, Variant
from evalwright.model.protocols import RunWriter, Target
from evalwright.run.clock import Clock
from evalwright.run.judge import Judge
from evalwright.run.limits import Watchdog, exits_refused
from evalwright.run.pipeline import Pipeline
from evalwright.run.runner import Runner
from evalwright.run.state import RunState
from evalwright.scoring.tally import Tally
from evalwright.session import InUse, in_use
from evalwright.session.stdout import prints_to_stderr
from evalwright.targets.build import build_target
from evalwright.targets.threads import Threads

if TYPE_CHECKING:
    from evalwright.run.history import History
    from evalwright.run.steps.mirror import Mirroring

__all__ = ["Watch", "targets_of", "work"]

Watch = Callable[[RunState], AbstractContextManager[None]]
"""A display: it gets the state of the run and is entered for as long as the run works."""

_LAST_SECONDS = 2.0
"""How long tasks that user code left behind may take to end when they are cancelled at the end of a run."""


def targets_of(plan: Plan) -> dict[str, Target]:
    """The target of each variant, in a process of its own where the variant asks for that."""
    return {variant.name: _target(variant, plan.import_paths) for variant in plan.variants}


def _target(variant: Variant, import_paths: Sequence[str]) -> Target:
    if variant.isolation != "process":
        return build_target(variant, import_paths)
    from evalwright.run.isolation import Isolated

    return Isolated(variant, import_paths)


def work(
    plan: Plan,
    writer: RunWriter,
    tally: Tally,
    state: RunState,
    mirrors: Mirroring | None,
    models: Callable[[], Models],
    watch: Watch | None = None,
    history: History | None = None,
    again: frozenset[int] = frozenset(),
) -> bool:
    """Run what is left of a plan. True when it was interrupted before the end.

    Raises InputError for a target or evaluator that cannot be built, StorageError when a write fails.
    """
    clock, watchdog, threads = Clock(), Watchdog(), Threads()
    judge = Judge(plan, watchdog, clock)
    targets = targets_of(plan)
    if history is None and not again and all(variant.adapter == "replay" for variant in plan.variants):
        from evalwright.run.replay import processes_for, replay_in_processes

        if (processes := processes_for(plan, writer)) > 1:
            with watch(state) if watch else contextlib.nullcontext(), _stopping(state):
                replay_in_processes(plan, writer, targets, tally, state, processes)
            return state.done < state.total
    pipeline = Pipeline(plan, writer, targets, judge, clock, state, tally, mirrors, threads)
    runner = Runner(plan, writer, pipeline, watchdog, state, threads)
    display = watch(state) if watch else contextlib.nullcontext()
    interruptible = _interruptible(runner, watchdog, state)
    with in_use(models) as asked, watchdog, exits_refused(), prints_to_stderr(), display, interruptible:
        _run_loop(runner, asked, history, again)
    return state.stopping and state.done < state.total


def _run_loop(runner: Runner, asked: InUse, history: History | None, again: frozenset[int]) -> None:
    """Run to the end in a loop of its own.

    `asyncio.run` would wait for ever on user tasks that ignore their cancellation, and for the default executor's
    threads. Here both waits at the end have a bound: for the models to close, and for tasks that were left behind.
    """
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _loop, _context: None)  # what user code left behind is no news at the end
    try:
        loop.run_until_complete(runner.run(history, again))
    finally:
        with contextlib.suppress(Exception):
            loop.run_until_complete(asyncio.wait_for(asked.close(), _LAST_SECONDS))
        if leftover := asyncio.all_tasks(loop):
            for task in leftover:
                task.cancel()
            loop.run_until_complete(asyncio.wait(leftover, timeout=_LAST_SECONDS))
        loop.close()


@contextlib.contextmanager
def _stopping(state: RunState) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask for the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        state.stopping = True

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _interruptible(runner: Runner, watchdog: Watchdog, state: RunState) -> Iterator[None]:
    """Ctrl-C once finishes what runs, twice (or SIGTERM) stops now, and in code that blocks, raises.

    While targets are set up there is nothing to finish: once stops, twice raises.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: object) -> None:
        first = not state.stopping
        state.stopping = True
        if number == signal.SIGINT and first and runner.setting_up is None:
            return
        blocked = watchdog.beat is not None and time.monotonic() - watchdog.beat > 1.0
        if blocked or (runner.setting_up is not None and not first):
            raise Interrupted
        runner.stop_soon()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except Interrupted:
        state.stopping = True
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
