"""Running cases through systems and judging the answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, overload

import msgspec

from evalwright.api.cases import CasesLike
from evalwright.api.cells import Cell
from evalwright.api.options import Options, Settings, signature
from evalwright.api.problems import masked_problems
from evalwright.api.runs import Run
from evalwright.api.suites import Preparation, Systems, prepared
from evalwright.api.systems import SystemLike
from evalwright.api.work import Listener, in_thread
from evalwright.errors import InputError
from evalwright.model.suite import Suite
from evalwright.run.locations import find_run, store_of
from evalwright.run.plan import config_hash
from evalwright.run.used_files import file_digest_of
from evalwright.session.named_objects import with_objects

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from evalwright.run.outcomes import Outcome

__all__ = ["aevaluate", "evaluate", "run_from", "stream"]


@overload
def evaluate(cases: Suite, system: Systems = None, **options: Unpack[Options]) -> Run: ...
@overload
def evaluate(
    cases: CasesLike,
    system: SystemLike | Mapping[str, SystemLike] | Sequence[SystemLike],
    **options: Unpack[Options],
) -> Run: ...
def evaluate(cases: CasesLike | Suite, system: Systems = None, **options: Unpack[Options]) -> Run:
    """Run every case with every system and judge the answers.

    Args:
        cases: The inputs. A list of inputs, cases or mappings; a mapping from id to input; a DataFrame; a file; a
            suite. Without ids, cases are numbered `1`, `2`, … by position.
        system: What is tested; a mapping gives variants their names. Functions of one parameter get the input; of two,
            the case and the variant; a parameter named `trial`, `case` or `variant` gets that. None only for a Suite.
        evaluators: What judges. None: the suite's; for plain cases, those that `Case.expected` implies.
        name: The run's name; None: the suite's, or the system's.
        trials: How often each case is run (≥ 1); None: 1, or the suite's.
        concurrency: Cells in flight at once; None: 8, or the suite's.
        timeout: Seconds for one call of a system; None: the target's (120 for a function), or the suite's.
        retries: Further attempts after `timeout` and `http_5xx`, with exponential back-off; None: 0, or the suite's.
        limit: At most this many cases: the first ones, or random ones with `seed`; None: all. An iterator is read no
            further than it takes, unless `seed` or `tags` choose among its cases.
        tags: Only cases with one of these tags.
        baseline: The variant that the others are compared with; None: none, or the suite's.
        budget_usd: Cap for all model calls, US dollars; a call that would exceed it is the error `cost_limit`.
        stop_after_equal_errors: The run stops if this many first cells all end in the same error; None: never.
        seed: Draws the cases of `limit` at random, the same ones every time; None: the first ones.
        out: Folder in which the run folder is created; None keeps the run in memory. A suite's own replaces "runs".
        on_cell: Called once for each finished cell, in order of completion, in the caller's thread or event loop.
        progress: Show a line on stderr; None: only on a terminal or in a notebook.
        resume: Continue the newest unfinished run of the same name, configuration and cases in `out`, if there is one.
        executor: `"ray"` calls the systems on a Ray cluster, whose workers import their functions; `"local"` in this
            process; None: the suite's, else local.

    Returns:
        The finished run. A cell that failed or errored raises no exception: see `Run.passed`, `Run.raise_for_status()`.

    Raises:
        InputError: arguments, files or cases that cannot be used; every problem is listed; nothing was run.
        StorageError: a record could not be written; what was written stays, and `resume` continues.
        KeyboardInterrupt: on Ctrl-C, once the cells in flight have finished; the run can be resumed.
    """
    settings = Settings.of_call("evaluate", options)
    todo = _to_do(cases, system, settings)

    def work(listener: Listener) -> Outcome:
        from evalwright.run import resumption, start
        from evalwright.run.origin import Trust

        if todo.unfinished is not None:
            trust = Trust(todo.suite)
            return resumption.resume(todo.unfinished, listener.watch, todo.options.models, trust=trust)
        return start.run_suite(todo.suite, todo.options, listener.watch)

    outcome, listener = in_thread(
        work,
        todo.objects,
        settings.on_cell,
        todo.suite.secrets,
        equal_errors=settings.stop_after_equal_errors,
        progress=settings.progress,
    )
    return run_from(outcome, todo, listener)


@overload
async def aevaluate(cases: Suite, system: Systems = None, **options: Unpack[Options]) -> Run: ...
@overload
async def aevaluate(
    cases: CasesLike,
    system: SystemLike | Mapping[str, SystemLike] | Sequence[SystemLike],
    **options: Unpack[Options],
) -> Run: ...
async def aevaluate(cases: CasesLike | Suite, system: Systems = None, **options: Unpack[Options]) -> Run:
    """`evaluate` in the caller's event loop: asynchronous systems run there, all others in threads.

    Cancelling it cancels the cells in flight; the run can be resumed.

    Args:
        cases: As for `evaluate`.
        system: As for `evaluate`.
        options: As for `evaluate`.

    Returns:
        The finished run.

    Raises:
        InputError: as in `evaluate`; also without an event loop of asyncio, as under trio.
        StorageError: as in `evaluate`.
    """
    settings = Settings.of_call("aevaluate", options)
    _must_run_in_asyncio("aevaluate")
    todo = _to_do(cases, system, settings)
    listener = Listener(
        settings.on_cell, todo.suite.secrets, equal_errors=settings.stop_after_equal_errors, progress=settings.progress
    )
    return run_from(await _work_here(todo, listener), todo, listener)


@overload
def stream(
    cases: Suite, system: Systems = None, **options: Unpack[Options]
) -> AbstractAsyncContextManager[AsyncIterator[Cell]]: ...
@overload
def stream(
    cases: CasesLike,
    system: SystemLike | Mapping[str, SystemLike] | Sequence[SystemLike],
    **options: Unpack[Options],
) -> AbstractAsyncContextManager[AsyncIterator[Cell]]: ...
def stream(
    cases: CasesLike | Suite, system: Systems = None, **options: Unpack[Options]
) -> AbstractAsyncContextManager[AsyncIterator[Cell]]:
    """`aevaluate` as an asynchronous iterator of cells, each as soon as it is judged.

    Leaving the block before the last cell lets the cells in flight finish and stops the run; it can be resumed.

    Args:
        cases: As for `evaluate`.
        system: As for `evaluate`.
        options: As for `evaluate`; `on_cell` is called, too.

    Returns:
        A context manager: `async with stream(...) as cells: async for cell in cells: ...`

    Raises:
        InputError: as in `evaluate`; also without an event loop of asyncio, as under trio.
        StorageError: as in `evaluate`, from the iterator.
    """
    settings = Settings.of_call("stream", options)
    return _streamed_cells(_to_do(cases, system, settings), settings)


for _function in (evaluate, aevaluate, stream):
    setattr(_function, "__signature__", signature(_function))  # noqa: B010 - a type checker knows no such attribute


def _must_run_in_asyncio(name: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        advice = "under trio, call `evaluate` in a thread (trio.to_thread.run_sync)"
        raise InputError(f"{name} needs an event loop of asyncio, and none is running: {advice}") from None


@asynccontextmanager
async def _streamed_cells(todo: Preparation, settings: Settings) -> AsyncIterator[AsyncIterator[Cell]]:
    _must_run_in_asyncio("stream")
    finished: asyncio.Queue[Cell | None] = asyncio.Queue()

    def deliver(cell: Cell) -> None:
        finished.put_nowait(cell)
        if settings.on_cell is not None:
            settings.on_cell(cell)

    listener = Listener(
        deliver,
        todo.suite.secrets,
        equal_errors=settings.stop_after_equal_errors,
        progress=settings.progress,
        waiting=finished.qsize,
    )
    work = asyncio.create_task(_work_here(todo, listener))
    work.add_done_callback(lambda _: finished.put_nowait(None))

    async def cells() -> AsyncIterator[Cell]:
        while (cell := await finished.get()) is not None:
            yield cell
        await work

    try:
        yield cells()
    except BaseException:  # also cancellation and GeneratorExit: the cells in flight still have to be stored
        listener.stop()
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # an exception of the block takes precedence
        raise
    listener.stop()
    await work


async def _work_here(todo: Preparation, listener: Listener) -> Outcome:
    from evalwright.run import resumption, start
    from evalwright.run.origin import Trust

    try:
        with with_objects(todo.objects), masked_problems(todo.suite.secrets):
            if todo.unfinished is not None:
                trust = Trust(todo.suite)
                return await resumption.resume_here(todo.unfinished, listener.watch, todo.options.models, trust=trust)
            return await start.run_suite_here(todo.suite, todo.options, listener.watch)
    except BaseException as error:  # cancellation and KeyboardInterrupt included
        listener.noted(error)
        raise


def _to_do(cases: CasesLike | Suite, system: Systems, settings: Settings) -> Preparation:
    todo = prepared(cases, system, settings)
    if settings.out is not None:
        return replace(todo, unfinished=_unfinished_run(todo)) if settings.resume else todo
    from evalwright.stores.memory import MemoryStore

    return replace(todo, options=replace(todo.options, store=MemoryStore(todo.masker)))


def _unfinished_run(todo: Preparation) -> Path | None:
    """The newest run with the same name, configuration and files that lacks cells."""
    store = store_of(todo.suite, todo.options.out, todo.masker)
    digest = config_hash(todo.suite)
    files = {str(path.resolve()): file_digest_of(str(path)) for path in todo.suite.files}
    for run_id in reversed(store.run_ids()):
        with closing(store.read(run_id)) as reader:
            plan, summary, location = reader.plan, reader.summary(), Path(reader.location)
        if plan is None or (plan.name, plan.config_hash) != (todo.suite.name, digest):
            continue
        if any(file and plan.files.get(path, file) != file for path, file in files.items()):
            continue  # its cases differ, or what judges them; code may have been fixed since
        if summary is None or summary.cells_missing:
            return location
    return None


def run_from(outcome: Outcome, todo: Preparation, listener: Listener) -> Run:
    """The run that the work left."""
    return Run(find_run(outcome.address), listener.stopped, todo.objects, msgspec.structs.replace(todo.suite, cases=[]))
