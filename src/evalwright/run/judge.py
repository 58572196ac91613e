"""Judge one trace with every evaluator of the plan: results, then the verdict of the cell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from evalwright.errors import EvaluatorError, Interrupted, LimitExceeded
from evalwright.evaluators.build import build, calls_models
from evalwright.files.plain import plain
from evalwright.model.artifact import Artifact
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.result import CaseVerdict, Evaluation, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace, TraceError
from evalwright.run.clock import Clock
from evalwright.run.failures import evaluator_failure, timed_out
from evalwright.run.limits import Watchdog
from evalwright.scoring.bands import banded_verdict
from evalwright.scoring.verdict import cell_verdict

__all__ = ["Judge", "append", "ask_models", "result_of"]

_Pending = tuple[int, Awaitable[Evaluation] | Callable[..., Any], float]
"""A position in the results, what is awaited or called once all others are there, and the seconds it has."""
_GRACE = 10.0
"""Seconds beyond a time limit of its own that an evaluator has to say that it was reached."""
_NOTHING = Evaluation(False)
"""What an evaluator has said that has not said anything: not passed, no score."""


class _Check(NamedTuple):
    """An evaluator of a plan, and what it says about itself, asked once and not for every trace."""

    spec: EvaluatorSpec
    evaluate: Callable[..., Any]
    uses_case: bool
    uses_artifact: bool
    uses_results: bool
    limit: float
    """The seconds that it declares for itself if it is asynchronous."""


def _check(spec: EvaluatorSpec) -> _Check:
    evaluator, traits = build(spec)
    own_limit = traits.timeout_seconds + _GRACE
    return _Check(spec, evaluator.evaluate, traits.uses_case, traits.uses_artifact, traits.uses_results, own_limit)


class Judge:
    """The evaluators of a plan (or only one of them), built once, and the stamps put on what they say."""

    def __init__(self, plan: Plan, watchdog: Watchdog, clock: Clock, only: str | None = None) -> None:
        self._plan, self._watchdog, self._clock = plan, watchdog, clock
        self._limit = plan.run.evaluator_timeout_seconds
        self._only = only
        self._in_bands = plan.pass_criteria.rule == "bands"
        self._built = self._build(plan.evaluators)
        self._names = [spec.name for spec in plan.evaluators]
        self.uses_case = plan.evaluators_by_case or any(check.uses_case for check in self._built)
        """Whether any evaluator looks at the case; if none does, `case` may be anything."""
        self.uses_artifact = plan.evaluators_by_case or any(check.uses_artifact for check in self._built)
        """Whether any evaluator looks at what the cell did to files."""

    def _build(self, specs: Iterable[EvaluatorSpec]) -> list[_Check]:
        return [_check(spec) for spec in specs if self._only is None or spec.name == self._only]

    def _of(self, case: Case) -> list[_Check]:
        """The evaluators of one case. Raises InputError when the case has one that cannot be built."""
        return self._build(case.evaluators or ()) if self._plan.evaluators_by_case else self._built

    def _specs(self, case: Case) -> list[EvaluatorSpec]:
        return case.evaluators or [] if self._plan.evaluators_by_case else self._plan.evaluators

    def passes_over(self, trace: Trace) -> bool:
        """Whether no evaluator has a word on it: the money was spent, or AgentEvals knows nothing but its error."""
        return trace.error is not None and (self._in_bands or trace.error.type == "cost_limit")

    def names(self, case: Case) -> list[str]:
        """The evaluators that a cell of the case needs a result of."""
        return [spec.name for spec in self._specs(case)] if self._plan.evaluators_by_case else self._names

    def evaluate(
        self, case: Case, trace: Trace, known: Collection[str] = (), artifact: Artifact | None = None
    ) -> tuple[list[EvaluationResult], list[_Pending]]:
        """Results of every evaluator that is not in `known`, and what is still to be awaited by position."""
        results: list[EvaluationResult] = []
        pending: list[_Pending] = []
        if self.passes_over(trace):
            return results, pending
        watchdog, limit, monotonic, date_of = self._watchdog, self._limit, time.monotonic, self._clock.date
        tick = monotonic()
        date = date_of(tick)
        for spec, evaluate, _, uses_artifact, uses_results, own_limit in self._of(case):
            if known and spec.name in known:
                continue
            outcome: Any
            error = failed = None
            if uses_results:
                pending.append((len(results), partial(evaluate, case, trace), limit))
                results.append(result_of(spec, trace, None, None, date, date, 0))
                continue
            try:
                watchdog.until = tick + limit
                outcome = evaluate(case, trace, artifact) if uses_artifact else evaluate(case, trace)
                watchdog.until = None
            except Interrupted:
                raise
            except BaseException as raised:
                watchdog.until, outcome = None, None
                error, failed = evaluator_failure(raised, limit), raised
            if outcome is not None and not isinstance(outcome, Evaluation):
                if isinstance(outcome, Awaitable):
                    pending.append((len(results), outcome, max(limit, own_limit)))
                    outcome = None
                else:
                    error, outcome = _no_evaluation(outcome), None
            end = monotonic()
            finished = date_of(end)
            results.append(result_of(spec, trace, outcome, error, date, finished, int((end - tick) * 1000)))
            if failed is not None:
                _keep(results[-1], failed)
            tick, date = end, finished
        return results, pending

    async def finish(self, results: list[EvaluationResult], pending: Sequence[_Pending]) -> None:
        """Await the asynchronous evaluators together, each within its limit, then those that use their results."""
        waiting = [one for one in pending if isinstance(one[1], Awaitable)]
        if self._in_bands:  # AgentEvals: the evaluators of a case one after another
            for one in waiting:
                await self._finish(results, *one)
        else:
            await asyncio.gather(*(self._finish(results, *one) for one in waiting))
        for last in pending:
            if not isinstance(last[1], Awaitable):
                await self._finish(results, *last)

    async def _finish(
        self,
        results: list[EvaluationResult],
        position: int,
        awaited: Awaitable[Evaluation] | Callable[..., Any],
        limit: float,
    ) -> None:
        row = results[position]
        start = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                given = awaited if isinstance(awaited, Awaitable) else awaited([r for r in results if r is not row])
                outcome = await given if isinstance(given, Awaitable) else given
            if not isinstance(outcome, Evaluation):
                row.error = _no_evaluation(outcome)
            else:
                _fill(row, outcome)
        except TimeoutError:
            row.error = timed_out(limit)
        except (asyncio.CancelledError, LimitExceeded, Interrupted):
            raise
        except BaseException as raised:
            row.error = evaluator_failure(raised, limit)
            _keep(row, raised)
        end = time.monotonic()
        row.finished_at, row.latency_ms = self._clock.date(end), int((end - start) * 1000)

    def spoil(self, results: Sequence[EvaluationResult]) -> None:
        """Take back what others said of a cell in which an evaluator had an error that spoils it."""
        types = self._plan.pass_criteria.spoiling_errors
        if not types:
            return
        spoilt = next((row for row in results if row.error is not None and row.error.type in types), None)
        if spoilt is None:
            return
        for row in results:
            if row.error is None:
                row.detail = {**row.detail, "not_counted": {"passed": row.passed, "score": row.score}}
                row.error = TraceError("not_counted", f"{spoilt.evaluator} had an error")
                row.passed, row.score = False, None

    def verdict(self, case: Case, trace: Trace, results: Sequence[EvaluationResult]) -> CaseVerdict:
        if self._in_bands:
            return banded_verdict(self._specs(case), trace, results, self._plan.pass_criteria.threshold)
        return cell_verdict(self._plan.pass_criteria, self.names(case), trace, results)


def ask_models(plan: Plan) -> bool:
    """Whether an evaluator of the plan asks models, so that judging waits more than it computes."""
    return any(calls_models(spec.type, spec.config) for spec in plan.evaluators)


def _no_evaluation(outcome: object) -> TraceError:
    return TraceError("evaluator_error", f"expected an Evaluation, found {type(outcome).__name__}")


def result_of(
    spec: EvaluatorSpec,
    trace: Trace,
    outcome: Evaluation | None,
    error: TraceError | None,
    started: datetime,
    finished: datetime,
    latency_ms: int = 0,
) -> EvaluationResult:
    """The record of what an evaluator said of a trace, or of why it said nothing; a score must be finite."""
    if outcome is not None and (score := outcome.score) is not None and score - score != 0:
        error, outcome = _no_number(score), None
    said = _NOTHING if outcome is None else outcome
    return EvaluationResult(
        trace.case_id,
        trace.variant_name,
        spec.name,
        spec.type,
        said.passed,
        started,
        finished,
        trace.run_id,
        said.score,
        said.reason,
        said.detail,
        latency_ms,
        error,
        said.skipped,
        trace.trial,
        trace.attempt,
        said.cost_usd,
        said.hits,
        said.misses,
        occurrence=trace.occurrence,
    )


def _fill(row: EvaluationResult, outcome: Evaluation) -> None:
    score = outcome.score
    if score is not None and score - score != 0:
        row.error = _no_number(score)
        return
    row.passed, row.score, row.reason = outcome.passed, outcome.score, outcome.reason
    row.detail, row.skipped = outcome.detail, outcome.skipped
    row.cost_usd, row.hits, row.misses = outcome.cost_usd, outcome.hits, outcome.misses


def _keep(row: EvaluationResult, error: BaseException) -> None:
    """What an evaluator that could not judge tells all the same."""
    if isinstance(error, EvaluatorError):
        row.detail, row.cost_usd = error.detail, error.cost_usd


def _no_number(score: float) -> TraceError:
    return TraceError("evaluator_error", f"the score is {score}, expected a finite number")


def append(rows: list[EvaluationResult], write: Callable[[list[EvaluationResult]], None]) -> None:
    """Write the rows of a cell; what an evaluator put into them that JSON cannot hold is replaced visibly."""
    if not rows:
        return
    try:
        write(rows)
    except (TypeError, ValueError, RecursionError):
        for row in rows:
            _clean(row)
        write(rows)


def _clean(row: EvaluationResult) -> None:
    notes: list[str] = []
    row.passed = bool(row.passed)
    row.reason, row.detail = plain(str(row.reason), "reason", notes), plain(dict(row.detail), "detail", notes)
    if notes:
        row.detail["replaced"] = notes
