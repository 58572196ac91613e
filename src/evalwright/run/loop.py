"""One session of work on a run: an event loop of its own, signals, limits and the display round the runner."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from evalwright.errors import Interrupted
from evalwright.model.chat import Models
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter, Target
from evalwright.run.clock import Clock
from evalwright.run.history import History
from evalwright.run.judge import Judge
from evalwright.run.limits import Watchdog, exits_refused
from evalwright.run.replay import processes_for, replay_in_processes
from evalwright.run.runner import Runner
from evalwright.run.state import RunState
from evalwright.run.steps.mirror import Mirroring
from evalwright.scoring.tally import Tally
from evalwright.session import InUse, in_use
from evalwright.session.stdout import prints_to_stderr
from evalwright.targets.build import build_target

__all__ = ["Watch", "targets_of", "work"]

Watch = Callable[[RunState], AbstractContextManager[None]]
"""A display: it gets the state of the run and is entered for as long as the run works."""

_LAST_SECONDS = 2.0
"""How long tasks that user code left behind may take to end when they are cancelled at the end of a run."""


def targets_of(plan: Plan) -> dict[str, Target]:
    """The target of each variant, in a process of its own where the variant asks for that."""
    from evalwright.run.isolation import Isolated

    return {
        variant.name: Isolated(variant, plan.import_paths)
        if variant.isolation == "process"
        else build_target(variant, plan.import_paths)
        for variant in plan.variants
    }


def work(
    plan: Plan,
    writer: RunWriter,
    tally: Tally,
    state: RunState,
    mirrors: Mirroring,
    models: Callable[[], Models],
    watch: Watch | None = None,
    history: History | None = None,
    again: frozenset[int] = frozenset(),
) -> bool:
    """Run what is left of a plan. True when it was interrupted before the end.

    Raises InputError for a target or evaluator that cannot be built, StorageError when a write fails.
    """
    clock, watchdog = Clock(), Watchdog()
    judge = Judge(plan, watchdog, clock)
    processes = processes_for(plan, writer) if history is None and not again else 1
    if processes > 1:
        with watch(state) if watch else contextlib.nullcontext(), _stopping(state):
            replay_in_processes(plan, writer, targets_of(plan), tally, state, processes)
        return state.done < state.total
    runner = Runner(plan, writer, targets_of(plan), judge, watchdog, clock, state, tally, mirrors)
    display = watch(state) if watch else contextlib.nullcontext()
    interruptible = _interruptible(runner, watchdog, state)
    with in_use(models) as asked, watchdog, exits_refused(), prints_to_stderr(), display, interruptible:
        _run_loop(runner, asked, history, again)
    return runner.stopping and state.done < state.total


def _run_loop(runner: Runner, asked: InUse, history: History | None, again: frozenset[int]) -> None:
    """`asyncio.run` would wait for ever on user tasks that ignore their cancellation; this waits a moment."""
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
        first = not runner.stopping
        state.stopping = runner.stopping = True
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
        runner.stopping = True
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
