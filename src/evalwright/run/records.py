"""The records of a cell: the trace of an answer, the results of evaluators or their errors, and the dates of both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from evalwright.errors import EvaluatorError, Interrupted, LimitExceeded, TargetError, in_seconds
from evalwright.evaluators.onlooker import own_copy
from evalwright.evaluators.wording import shown
from evalwright.files.plain import plain
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import Evaluation, EvaluationResult
from evalwright.model.trace import Answer, Metrics, Output, ToolCall, ToolResult, Trace, TraceError
from evalwright.run.cells import Cell
from evalwright.targets.failures import error_type_of, placed, stack_of, text_of

__all__ = [
    "Clock",
    "PendingResult",
    "drop_answer",
    "ends_the_run",
    "evaluator_failure",
    "fill_error",
    "fill_result",
    "keep_detail",
    "no_evaluation",
    "reason_text",
    "result_of",
    "timed_out",
    "tool_use",
    "trace_of",
    "write_results",
]

_MICROSECOND = timedelta(microseconds=1)
_STEPS = [number * _MICROSECOND for number in range(1000)]
"""Most dates follow the previous one closely: adding a prepared step costs a third of making a new one."""

_OF_SCORE = {score: f"score {score:g}" for score in (0.0, 1.0)}
"""The reason of nearly all results whose evaluators give none."""

_NOTHING = Evaluation(False)
"""Stands for an evaluator that returned nothing: not passed, no score."""


class PendingResult(NamedTuple):
    """A result that is not available yet."""

    position: int
    """Its place in the results of the cell."""
    given: Awaitable[Evaluation] | Callable[..., Any]
    """What to await, or to call once all other results are available."""
    limit: float
    """Its time limit in seconds."""
    scores: tuple[float, float] = (0.0, 1.0)
    """The lowest and the highest score of the evaluator."""
    spec: EvaluatorSpec | None = None
    """The evaluator's, whose required score is named if it is not reached."""


class Clock:
    """Dates that never jump: one reading of the wall clock, advanced by the monotonic clock."""

    def __init__(self) -> None:
        self._date = self._last = datetime.now(UTC)
        self._tick, self._elapsed = time.monotonic(), 0

    def date(self, tick: float) -> datetime:
        """The date (UTC) of a `time.monotonic()` reading."""
        elapsed = int((tick - self._tick) * 1e6)
        step = elapsed - self._elapsed
        if 0 <= step < 1000:
            date = self._last + _STEPS[step]
        else:
            date = self._date + elapsed * _MICROSECOND
        self._last, self._elapsed = date, elapsed
        return date

    def now(self) -> datetime:
        return self.date(time.monotonic())


def trace_of(
    run_id: str, cell: Cell, answer: Answer | TraceError, started: datetime, finished: datetime, latency_ms: int | None
) -> Trace:
    """What is stored for one cell: ids and times are the runner's, except those of a replayed recording."""
    if isinstance(answer, TraceError):
        answer = Answer(output=Output(), error=answer)
    elif answer.extra and answer.extra.get("source") == "replay" and answer.started_at and answer.finished_at:
        started, finished, latency_ms = answer.started_at, answer.finished_at, answer.latency_ms
    case, calls, results = cell.case, answer.tool_calls, answer.tool_results
    if answer.messages and not (calls and results):
        calls, results = tool_use(answer)
    return Trace(  # by position, as is every result: names take three times as long
        case.id,
        cell.variant.name,
        started,
        finished,
        latency_ms,
        answer.input or case.input,
        answer.output,
        run_id,
        answer.messages,
        calls,
        results,
        answer.metrics,
        answer.error,
        answer.extra,
        cell.trial,
        cell.attempt,
        cell.case_index,
        answer.spans,
        occurrence=case.occurrence,
        group=msgspec.UNSET if case.group is None else case.group,
    )


def drop_answer(trace: Trace, error: BaseException) -> None:
    """Leave nothing of an answer but its error: it is unknown which part of it JSON cannot express."""
    trace.output, trace.messages, trace.tool_calls, trace.tool_results = Output(), [], [], []
    trace.metrics, trace.extra, trace.spans = Metrics(), {}, []
    trace.error = TraceError("adapter_error", f"the answer cannot be stored: {type(error).__name__}: {error}")


def tool_use(answer: Answer | Trace) -> tuple[list[ToolCall], list[ToolResult]]:
    """Tool calls and results: those of the answer itself, else as views of its messages."""
    calls = [message.tool_call for message in answer.messages if message.tool_call is not None]
    results = []
    for message in answer.messages:
        if message.role == "tool":
            content = message.content
            returned = content if isinstance(content, (dict, str)) else str(plain(content, "content", []))
            results.append(ToolResult(name=message.name or "", content=returned))
    return answer.tool_calls or calls, answer.tool_results or results


def result_of(
    spec: EvaluatorSpec,
    trace: Trace,
    outcome: Evaluation | None,
    error: TraceError | None,
    started: datetime,
    finished: datetime,
    latency_ms: int = 0,
    scores: tuple[float, float] = (0.0, 1.0),
) -> EvaluationResult:
    """The record of an evaluator's result for a trace, or of why there is none.

    A score outside its range, and a verdict that is not a bool, are errors: they must not enter a rate or a mean.
    """
    score: Any = 0.0 if outcome is None else outcome.score
    if outcome is None:
        evaluation = _NOTHING
    elif score.__class__ is float and scores[0] <= score <= scores[1] and type(outcome.passed) is bool:
        evaluation = outcome  # what nearly all evaluators return
    elif (wrong := _score_error(outcome, scores)) is not None:
        error, evaluation = wrong, _without_verdict(outcome)
    else:
        evaluation = outcome
    if spec.required is None:
        reason = evaluation.reason or _default_reason(evaluation, error)
    else:
        reason = _reason(evaluation, error, None if outcome is None else spec)
    return EvaluationResult(
        trace.case_id,
        trace.variant_name,
        spec.name,
        spec.type if spec.called is msgspec.UNSET else spec.called,
        evaluation.passed,
        started,
        finished,
        trace.run_id,
        evaluation.score,
        reason,
        own_copy(evaluation.detail),
        latency_ms,
        error,
        evaluation.skipped,
        trace.trial,
        trace.attempt,
        evaluation.cost_usd,
        own_copy(evaluation.hits),
        own_copy(evaluation.misses),
        occurrence=trace.occurrence,
    )


def _reason(evaluation: Evaluation, error: TraceError | None, spec: EvaluatorSpec | None) -> str:
    """The evaluator's reason, preceded by the required score if that was missed, because that decides the cell."""
    reason = evaluation.reason or _default_reason(evaluation, error)
    if spec is None or spec.required is None or error is not None:
        return reason
    gate = spec.gate_missed(evaluation.score)
    return f"{gate}; {reason}" if gate else reason


def reason_text(evaluation: Evaluation) -> str:
    """The reason of a result, also of an evaluator that gives none."""
    return evaluation.reason or _default_reason(evaluation, None)


def _default_reason(evaluation: Evaluation, error: TraceError | None) -> str:
    """The reason of a result whose evaluator gives none."""
    if error is not None:
        return error.message
    if evaluation.skipped:
        return "skipped"
    if evaluation.score is None:
        return "passed" if evaluation.passed else "failed"
    return _OF_SCORE.get(evaluation.score) or f"score {evaluation.score:g}"


def fill_result(
    row: EvaluationResult, outcome: object, scores: tuple[float, float] = (0.0, 1.0), spec: EvaluatorSpec | None = None
) -> None:
    """Fill a row with what an awaited evaluator returned, as in `result_of`."""
    if not isinstance(outcome, Evaluation):
        fill_error(row, no_evaluation(outcome))
        return
    if (wrong := _score_error(outcome, scores)) is not None:
        row.error, outcome = wrong, _without_verdict(outcome)
    row.passed, row.score = outcome.passed, outcome.score
    row.reason = _reason(outcome, row.error, spec)
    row.detail, row.skipped = outcome.detail, outcome.skipped
    row.cost_usd, row.hits, row.misses = outcome.cost_usd, outcome.hits, outcome.misses


def fill_error(row: EvaluationResult, error: TraceError) -> None:
    """Fill a row of an awaited evaluator that gave no result, as in `result_of`."""
    row.error, row.reason = error, error.message


def keep_detail(row: EvaluationResult, error: BaseException) -> None:
    """Add to a row the detail that an evaluator gives even with an error."""
    if isinstance(error, EvaluatorError):
        cost = error.cost_usd
        row.detail, row.cost_usd = error.detail, cost if isinstance(cost, (int, float)) else None


def write_results(rows: list[EvaluationResult], write: Callable[[list[EvaluationResult]], None]) -> None:
    """Write the rows of a cell; what JSON cannot express in an evaluator's result is visibly replaced."""
    if not rows:
        return
    try:
        write(rows)
    except (TypeError, ValueError, RecursionError):
        # Nothing has been written: lines are encoded before the first byte goes out. Cleaning every row in advance
        # would cost each cell what only a few need.
        for row in rows:
            _clean(row)
        write(rows)


def _clean(row: EvaluationResult) -> None:
    notes: list[str] = []
    row.passed = bool(row.passed)
    row.reason = plain(str(row.reason), "reason", notes)
    row.hits, row.misses = plain(row.hits, "hits", notes), plain(row.misses, "misses", notes)
    try:
        row.detail = plain(dict(row.detail), "detail", notes)
    except TargetError as error:  # it contains itself
        row.detail = {}
        notes.append(f"{error}: left out")
    if notes:
        row.detail["replaced"] = notes


def ends_the_run(raised: BaseException) -> bool:
    """Whether an exception in user code is a stop of the run.

    A cancellation is one only if this task is being cancelled: user code may raise it, too, or await what it cancelled.
    """
    if isinstance(raised, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(raised, Interrupted)


def evaluator_failure(error: BaseException, limit: float) -> TraceError:
    """The result's error record: the type is the exception's class name unless the evaluator named another."""
    if isinstance(error, LimitExceeded):
        return timed_out(limit)
    if isinstance(error, EvaluatorError):
        return TraceError(error_type_of(error, "evaluator_error"), text_of(error))
    return TraceError(type=type(error).__name__, message=placed(error), stack=stack_of(error))


def timed_out(limit: float) -> TraceError:
    """The error of a call that was stopped after this many seconds."""
    return TraceError(type="timeout", message=f"no answer within {in_seconds(limit)}")


def no_evaluation(outcome: object) -> TraceError:
    """The error of an evaluator that returned something else than an `Evaluation`."""
    return TraceError("evaluator_error", f"expected an Evaluation, found {type(outcome).__name__}")


def _score_error(outcome: Evaluation, scores: tuple[float, float]) -> TraceError | None:
    """What is wrong with the score or the verdict of an evaluation. Numpy numbers become Python ones."""
    score: Any = outcome.score
    if score is not None:
        if score.__class__ not in (float, int):
            score = outcome.score = _scalar(score)
        low, high = scores
        if isinstance(score, bool) or not isinstance(score, (float, int)) or not low <= score <= high:
            message = f"the score is {shown(score, 80)}, expected a number from {low:g} to {high:g}"
            return TraceError("evaluator_error", message)
    if outcome.passed.__class__ is not bool:
        outcome.passed = _scalar(outcome.passed)
        if not isinstance(outcome.passed, bool):
            return TraceError("evaluator_error", f"'passed' is {shown(outcome.passed, 80)}, expected true or false")
    return None


def _scalar(value: Any) -> Any:
    try:
        return value.item()
    except Exception:  # most have no such method, and what one of a plug-in raises says that it is no number
        return value


def _without_verdict(outcome: Evaluation) -> Evaluation:
    """The part of an evaluation that remains if it cannot count: its cost, and everything besides its verdict."""
    return Evaluation(False, None, outcome.reason, outcome.detail, cost_usd=outcome.cost_usd)
