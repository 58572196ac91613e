"""Work on a run: in a thread of its own for callers that wait, in the caller's event loop for those that await."""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec

from evalwright.api.cells import Cell
from evalwright.api.problems import masked_problems
from evalwright.errors import counted
from evalwright.files.masker import Masker
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.session.named_objects import with_objects

if TYPE_CHECKING:
    from evalwright.model.snapshot import Case
    from evalwright.run.cells import RunState
    from evalwright.run.outcomes import Outcome

__all__ = ["Listener", "in_thread"]


_MOST_WAITING = 64
"""Cells that may wait to be received before the run waits: few enough for memory, too many to be received in a tick."""


class Listener:
    """Receives the cells of a run as they finish: passes them on, and stops a run that only repeats one error."""

    def __init__(
        self,
        on_cell: Callable[[Cell], object] | None,
        secrets: Mapping[str, str],
        *,
        equal_errors: int | None = None,
        progress: bool | None = None,
        waiting: Callable[[], int] | None = None,
    ) -> None:
        """`secrets` are the suite's; those of the environment are masked, too.

        `waiting` counts the cells that were passed on and are not received yet; None if none has to wait.
        """
        self._secrets, self._kept = secrets, set[str]()
        self._on_cell, self._equal_errors, self._progress = on_cell, equal_errors, progress
        self._waiting, self._finished = waiting, 0
        self._error: tuple[str, str] | None = None
        self.state: RunState | None = None
        """The state of the run once it works."""
        self.stopped: str | None = None
        """Why the run was stopped, if this listener stopped it."""

    @cached_property
    def _masker(self) -> Masker:
        """Made on first use: it takes longer than a small run's cell, and most runs need none here."""
        return Masker.of(self._secrets, os.environ)

    @contextmanager
    def watch(self, state: RunState) -> Iterator[None]:
        """The display with which a run is started."""
        self.state, state.listener = state, self._on_verdict
        if (waiting := self._waiting) is not None:
            state.behind = lambda: waiting() >= _MOST_WAITING
        with self._display(state):
            yield

    def stop(self) -> None:
        """Let the cells in flight finish and start no more; the second time, cancel them."""
        if self.state is None:
            return
        if self.state.stopping and self.state.stop_now is not None:
            with contextlib.suppress(RuntimeError):  # the loop has closed: nothing is left to cancel
                self.state.stop_now()
        self.state.stopping = True

    def noted(self, error: BaseException) -> BaseException:
        """The exception that ends the run; its traceback says where the finished cells are and how to go on."""
        state = self.state
        if state is not None and state.address and state.done < state.total:
            cells = f"{state.done:,} of {counted(state.total, 'cell')}"
            how = f"evalwright.resume({state.address!r}) or evaluate(..., resume=True) runs the rest"
            error.add_note(f"{cells} are stored; {how}")
        return error

    def _display(self, state: RunState) -> AbstractContextManager[None]:
        shown = self._progress
        if shown is None:
            from evalwright.reports.text import is_terminal

            shown = is_terminal(sys.stderr) or "ipykernel" in sys.modules
        if not shown:
            return contextlib.nullcontext()
        from evalwright.run.progress import progress_on

        return progress_on()(state)

    def _on_verdict(self, case: Case, trace: Trace, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> None:
        if self._equal_errors is not None and self._finished is not None:
            self._count(trace)
        if self._on_cell is not None:
            self._on_cell(self._cell(case, trace, results, verdict))
        elif self._equal_errors is None and self.state is not None:
            self.state.listener = None  # cells that no listener receives can be written together

    def _cell(self, case: Case, trace: Trace, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> Cell:
        """The cell as it is stored: programs print what they receive."""
        records = msgspec.json.encode([trace, results, verdict]) if self._masker else b""
        if self._masker.finds(records):
            names = {verdict.variant_name, *(row.evaluator for row in results)}
            if not names <= self._kept:  # a masker takes long to make
                self._kept |= names
                self._masker = self._masker.keeping(names)
            kind = tuple[Trace, list[EvaluationResult], CaseVerdict]
            trace, results, verdict = msgspec.json.decode(self._masker.mask_bytes(records), type=kind)
        return Cell(case, trace, results, verdict)

    def _count(self, trace: Trace) -> None:
        """Only the first cells count: a system that has answered once is not entirely broken."""
        error = None if trace.error is None else (trace.error.type, trace.error.message)
        if error is None or (self._finished and error != self._error) or self.state is None:
            self._equal_errors = None
            return
        self._finished, self._error = self._finished + 1, error
        if self._finished == self._equal_errors and self.state.done < self.state.total:
            message = self._masker.mask_text(error[1])
            self.stopped = f"the first {self._finished} cells all ended in the same error: {message}"
            self.state.stopping = True


class _WorkEnded:
    """The end of the work in the other thread."""

    def __init__(self, outcome: Outcome | None, error: BaseException | None) -> None:
        self.outcome, self.error = outcome, error


def in_thread(
    work: Callable[[Listener], Outcome],
    objects: Mapping[str, Any],
    on_cell: Callable[[Cell], object] | None,
    secrets: Mapping[str, str],
    *,
    equal_errors: int | None = None,
    progress: bool | None = None,
) -> tuple[Outcome, Listener]:
    """Do the work in a thread with an event loop of its own, and call `on_cell` here; the run waits for a slow one.

    After a first KeyboardInterrupt the cells in flight finish, after a second they are cancelled; then it is raised.
    What `on_cell` raises ends the run in the same way.
    """
    events: SimpleQueue[Cell | _WorkEnded] = SimpleQueue()
    on_record, waiting = (None, None) if on_cell is None else (events.put, events.qsize)
    listener = Listener(on_record, secrets, equal_errors=equal_errors, progress=progress, waiting=waiting)
    context = contextvars.copy_context()

    def run() -> None:
        try:
            with with_objects(objects), masked_problems(secrets):
                events.put(_WorkEnded(work(listener), None))
        except BaseException as error:  # whatever it is: without this last event the caller would wait forever
            events.put(_WorkEnded(None, error))

    thread = threading.Thread(target=context.run, args=(run,), name="evalwright-run", daemon=True)
    thread.start()
    raised: BaseException | None = None
    while True:
        try:
            event = events.get()
            if isinstance(event, _WorkEnded):
                break
            if on_cell is not None and raised is None:
                on_cell(event)
        except BaseException as error:
            raised = raised or error
            listener.stop()
    thread.join()
    if (failure := raised or event.error) is not None:
        raise listener.noted(failure)
    assert event.outcome is not None
    return event.outcome, listener
