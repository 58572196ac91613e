"""One call of a target under its time limit, contained against everything that user code can do."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from evalwright.errors import InputError, Interrupted, LimitExceeded, in_seconds
from evalwright.model.plan import Variant
from evalwright.model.protocols import Target
from evalwright.model.trace import Answer, TraceError
from evalwright.run.cells import Cell
from evalwright.run.limits import end_of, held_to
from evalwright.run.records import ends_the_run, timed_out
from evalwright.session.open_files import has_run_out, limit_of_files
from evalwright.session.process import end_child
from evalwright.targets.answers import is_empty_answer
from evalwright.targets.build import build_target, optional_parts
from evalwright.targets.failures import target_failure

__all__ = [
    "GRACE",
    "MOST_LOST",
    "NO_WORKER",
    "OUT_OF_FILES",
    "WORKER_LOST",
    "Call",
    "out_of_files",
    "set_up",
    "shut_down",
    "target_of",
]

GRACE = 5.0
"""Seconds that cancelled code has for returning before it is left behind: it may need them to close connections."""
_LAST = 1.0
"""Seconds that closing a target may go on after it was cancelled, to end what it has started."""
_SILENT = "the system gave no answer (allow_missing: [final_answer] of the system if it may be absent)"
OUT_OF_FILES = "out_of_files"
"""Error type of a call for which this process could open no more files."""
WORKER_LOST = "worker_lost"
"""Error type of a call whose worker, or its machine, was lost."""
MOST_LOST = 3
"""Workers that one cell may lose: the cell itself may be what kills them."""
NO_WORKER = "no_worker"
"""Error type of a cell that was not called because there was no worker for it."""


@dataclass(slots=True, eq=False)
class Call:
    """What a worker is doing: at most one call of a target at a time, observed by the ticker and the watchdog."""

    queue: Iterator[Cell]
    """Where the worker takes its cells from; a worker that replaces it continues there."""
    task: asyncio.Task[None] | None = None
    cell: Cell | None = None
    started: float = 0.0
    deadline: float | None = None
    """Monotonic; None while no target code is being awaited."""
    overdue_since: float | None = None
    """When the call was cancelled for being late."""
    judged: float = 0.0
    """Seconds for which evaluators had kept the process busy when it began."""
    retried: list[TraceError] = field(default_factory=list)
    """Errors of earlier attempts at the same cell."""
    stopped: bool = False
    """The run wants this call to end."""
    abandoned: bool = False
    """The call ignored its cancellation; its cell has been recorded without it."""
    process: int = field(default_factory=os.getpid)
    """The process of the run."""

    async def ask(self, target: Target, cell: Cell) -> Answer | TraceError:
        """The target's answer, or the record of why there is none. Only a stop of the whole run is raised."""
        limit = cell.variant.timeout_seconds
        self.cell, self.overdue_since = cell, None
        self.started = time.monotonic()
        # a target that limits itself still has what its system did until then, and needs a moment to hand it over
        self.deadline = self.started + limit + getattr(target, "grace_seconds", 0.0)
        try:
            answer = await target.run(cell.case, cell.trial)
            if os.getpid() != self.process:
                end_child(answer.error)
            self.deadline = None
        except Interrupted:
            raise  # the run is ending: not the target's doing
        except GeneratorExit as error:
            if not self._is_current():
                raise  # this coroutine was abandoned and is being discarded
            self.deadline = None
            return target_failure(error)
        except LimitExceeded:  # the watchdog, in a target that blocks the event loop
            self.deadline = None
            return timed_out(limit)
        except asyncio.CancelledError as error:
            self.deadline = None
            # Either the ticker cancelled because the call is late; or the run is ending, which alone is passed on; or
            # the target cancelled itself or a part of it, which is an error of the target like any other.
            if self._was_late():
                return timed_out(limit)
            if self.stopped:
                raise
            self._goes_on()
            return target_failure(error)
        except BaseException as error:
            # Targets are user code: SystemExit, KeyboardInterrupt and refused exits are this cell's error, not the end.
            if os.getpid() != self.process:
                end_child(error)
            self.deadline = None
            return timed_out(limit) if self._was_late() else out_of_files(error) or target_failure(error)
        if self.overdue_since is not None and self._was_late():
            return timed_out(limit)
        if answer.output.final_answer is None and answer.error is None and _is_silent(answer, cell.variant, target):
            answer.error = TraceError("adapter_error", _SILENT)
        return answer

    def stop(self) -> Callable[[], None]:
        """Stop the clock until the returned function is called, or until the call is over.

        That time is neither the system's limit nor its latency.
        """
        deadline, begun = self.deadline, time.monotonic()
        if deadline is None or deadline == math.inf:
            return lambda: None
        self.deadline = math.inf

        def start() -> None:
            if self.deadline == math.inf:
                waited = time.monotonic() - begun
                self.deadline = deadline + waited
                self.started += waited

        return start

    def _is_current(self) -> bool:
        """Whether the task of this call is what runs now."""
        try:
            return asyncio.current_task() is self.task
        except RuntimeError:  # the loop has ended
            return False

    def _was_late(self) -> bool:
        """Whether the ticker cancelled this call; takes the cancellation back, so that the worker lives on."""
        if self.overdue_since is None:
            return False
        self._goes_on()
        return True

    def _goes_on(self) -> None:
        if self.task is not None and self.task.cancelling():
            self.task.uncancel()

    def end(self) -> None:
        """Cancel it because the run is to end."""
        self.stopped = True
        if self.task is not None:
            self.task.cancel()

    def stuck(self, now: float) -> bool:
        """Whether the call has ignored its cancellation for longer than it may."""
        return self.overdue_since is not None and self.deadline is not None and now - self.overdue_since > GRACE

    def cancel_if_late(self, now: float) -> None:
        if self.deadline is not None and now > self.deadline and self.overdue_since is None and self.task is not None:
            self.overdue_since = now
            self.task.cancel()


async def set_up(variant: Variant, opening: Callable[[], Awaitable[object]]) -> None:
    """Await the setup of a variant's target, for as long as one of its calls may take."""
    limit = variant.timeout_seconds
    try:
        async with asyncio.timeout(limit) as bound:
            with held_to(end_of(bound)):
                await opening()
    except (TimeoutError, LimitExceeded):
        raise InputError(f"{variant.name!r} was not set up within {in_seconds(limit)}") from None
    except InputError as error:
        raise InputError(f"{variant.name!r} cannot be set up: {error}") from error
    except BaseException as error:
        if ends_the_run(error):
            raise
        # Setup is the user's code, which may also raise SystemExit; it is reported as a mistake in the suite, not in
        # evalwright.
        failure = target_failure(error)
        raise InputError(f"{variant.name!r} cannot be set up: {failure.message}") from error


async def shut_down(closing: Callable[[], Awaitable[None]]) -> str:
    """Close a target; returns what is to be said of it. One that does not end, even when it is cancelled, is left."""
    ending = asyncio.create_task(_close_error(closing))
    if not (await asyncio.wait([ending], timeout=GRACE))[0]:
        ending.cancel()
        await asyncio.wait([ending], timeout=_LAST)
        return f"was not closed within {GRACE:g} seconds"
    return ending.result()


async def _close_error(closing: Callable[[], Awaitable[None]]) -> str:
    until = time.monotonic() + GRACE
    try:
        with held_to(lambda: until):
            await closing()
    except LimitExceeded:
        return f"was not closed within {GRACE:g} seconds"
    except Interrupted:  # by the user, who is tired of waiting: the others are still closed
        return "closing it was interrupted"
    except BaseException as error:  # the user's code may even raise SystemExit: the others must still be closed
        return f"closing it raised {target_failure(error).message}"
    return ""


def target_of(variant: Variant, import_paths: Sequence[str]) -> Target:
    """The target of a variant, in a process of its own if the variant asks for that."""
    if variant.isolation != "process":
        return build_target(variant, import_paths)
    from evalwright.run.isolation import IsolatedTarget

    return IsolatedTarget(variant, import_paths)


def out_of_files(error: BaseException) -> TraceError | None:
    """The record of an exception caused by too many open files, which says nothing about the system; else None."""
    if not has_run_out(error):
        return None
    return TraceError(OUT_OF_FILES, f"too many open files: {limit_of_files()} may be open (ulimit -n)")


def _is_silent(answer: Answer, variant: Variant, target: Target) -> bool:
    """Whether there is nothing to judge, and neither the suite nor its format's rules allow that."""
    allowed = variant.evalh_rules or getattr(target, "may_be_silent", False)
    return not allowed and is_empty_answer(answer) and "final_answer" not in optional_parts(variant.config)
