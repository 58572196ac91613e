"""Progress callbacks of Letta Evals, called in the event loop of the code that runs the suite."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = [
    "LISTENER",
    "Emit",
    "EvalProgress",
    "Listener",
    "NoOpProgress",
    "ProgressCallback",
    "ProgressMirror",
    "ProgressStyle",
    "create_progress_callback",
    "reporter",
]

Emit = Callable[..., None]
"""Reports an event of one sample: its name, its values and keywords."""


class ProgressStyle(StrEnum):
    """The original's own progress displays; from Python, nothing is shown here."""

    NONE = "none"
    SIMPLE = "simple"
    RICH = "rich"


class ProgressCallback(ABC):
    """Is called with the events of each sample and of the suite.

    These methods are required. `start`, `agent_loading`, `message_sending` (number of the message from 1, and their
    total), `grading_started`, `turn_graded` (turn from 0, total, score), `suite_completed` (the result) and `stop` are
    called if a callback has them, each with those keywords that it takes.
    """

    @abstractmethod
    async def sample_started(self, sample_id: int | str, **about: Any) -> None: ...

    @abstractmethod
    async def sample_completed(self, sample_id: int | str, **about: Any) -> None: ...

    @abstractmethod
    async def sample_error(self, sample_id: int | str, error: str, **about: Any) -> None: ...


class NoOpProgress(ProgressCallback):
    """Shows nothing: the run itself reports its progress."""

    async def sample_started(self, sample_id: int | str, **about: Any) -> None: ...

    async def sample_completed(self, sample_id: int | str, **about: Any) -> None: ...

    async def sample_error(self, sample_id: int | str, error: str, **about: Any) -> None: ...


class EvalProgress(NoOpProgress):
    """The original's displays, created with a suite and more; the run itself reports its progress."""

    def __init__(self, *_suite: Any, **_about: Any) -> None: ...


def create_progress_callback(style: Any = "none", *_suite: Any, **_about: Any) -> ProgressCallback:
    """A callback in one of the original's styles, all of which show nothing here. Raises ValueError for an unknown
    style."""
    ProgressStyle(style)
    return NoOpProgress()


class Listener:
    """Passes events from the threads of a run to a callback, one after the other, in the caller's loop."""

    def __init__(self, callback: Any) -> None:
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Callable[[], Any] | None] = asyncio.Queue()
        self._started: dict[tuple[str, int, Any], int | str] = {}
        """Ids as in their dataset, for samples by id as text, run and model."""

    def started(self, case: Case, trial: int, model: Any) -> bool:
        """Note a sample; False for a further attempt."""
        known = (case.id, trial, model)
        new = known not in self._started
        self._started[known] = case.extra.get("id", case.id)
        return new

    def id_of(self, trace: Trace) -> int | str:
        known = (trace.case_id, trace.trial, trace.extra.get("model"))
        return self._started.get(known, trace.case_id)

    def emit(self, event: str, *values: Any, **about: Any) -> None:
        """Pass an event to the method of that name, with those keywords that its signature has. From any thread."""
        method = getattr(self._callback, event, None)
        if method is not None:
            arguments = _understood(method, about)
            self._loop.call_soon_threadsafe(self._events.put_nowait, lambda: method(*values, **arguments))

    def end(self) -> None:
        """No further events follow."""
        self._loop.call_soon_threadsafe(self._events.put_nowait, None)

    async def work(self) -> None:
        """Call the callback until the end. Its exceptions are raised here."""
        while (call := await self._events.get()) is not None:
            returned = call()
            if inspect.isawaitable(returned):
                await returned


def _understood(method: Callable[..., Any], about: dict[str, Any]) -> dict[str, Any]:
    """Versions name the model differently, and older ones know fewer keywords."""
    known = inspect.signature(method).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values()):
        return about
    return {name: value for name, value in about.items() if name in known}


LISTENER: ContextVar[Listener | None] = ContextVar("LISTENER", default=None)
"""The listener of the run in this context, if there is one."""


class ProgressMirror:
    """Reports finished samples to the listener; in a resumed run there is none."""

    def __init__(self, _config: dict[str, Any]) -> None:
        self._listener = LISTENER.get()

    def trace(self, trace: Trace, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> None:
        if self._listener is None:
            return
        sample, about = self._listener.id_of(trace), _about(trace.extra.get("agent_id"), trace.extra.get("model"))
        if verdict.status == "error":
            self._listener.emit("sample_error", sample, "; ".join(verdict.reasons), **about)
            return
        for row in results:
            turns = row.detail.get("turns") or []
            for i, score in enumerate(turns):
                self._listener.emit("turn_graded", sample, i, len(turns), score, grader_key=row.evaluator, **about)
        self._listener.emit(
            "sample_completed",
            sample,
            score=results[0].score if results else None,
            metric_scores={row.evaluator: row.score for row in results},
            rationale=results[0].reason if results else None,
            metric_rationales={row.evaluator: row.reason for row in results},
            target_cost=trace.metrics.cost_usd,
            **about,
        )


def reporter(case: Case, trial: int, model: str | None) -> Emit:
    """Reports the events of one attempt at a sample to the listener, if there is one."""
    listener = LISTENER.get()
    if listener is None:
        return lambda *_values, **_about: None
    first, sample = listener.started(case, trial, model), case.extra.get("id", case.id)

    def emit(event: str, *values: Any, agent_id: Any = None, **more: Any) -> None:
        if first or event != "sample_started":
            listener.emit(event, sample, *values, **_about(agent_id, model), **more)

    return emit


def _about(agent_id: Any, model: Any) -> dict[str, Any]:
    """The agent and its model under the names of every version."""
    return {"agent_id": agent_id, "model_name": model, "model_handle": model}
