"""Judge one trace with every evaluator of the plan: results, then the verdict of the cell.

What depends on the plan alone is determined when a `Judge` is created: the evaluators and what they need, whether
results are spoilt, and by which rule a cell passes.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from evalwright.errors import InputError, Interrupted
from evalwright.evaluators.build import build, declared, is_judge, uses_results
from evalwright.evaluators.onlooker import Look, Onlooker
from evalwright.model.artifact import Artifact
from evalwright.model.facts import ReasonedResult
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.result import CaseVerdict, Evaluation, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.model.traits import Traits
from evalwright.registry import format_of_run, resolve
from evalwright.run.limits import Watchdog
from evalwright.run.records import (
    Clock,
    PendingResult,
    evaluator_failure,
    keep_detail,
    no_evaluation,
    result_of,
    write_results,
)
from evalwright.scoring.verdict import cell_verdict, passes_over_errored
from evalwright.session.process import end_child

if TYPE_CHECKING:
    from evalwright.run.judge_thread import JudgeThread
    from evalwright.run.steps.spoil import SpoilingErrors

__all__ = ["Judge", "by_common_rule", "compares", "evaluators_call_models"]

_GRACE = 10.0
"""Seconds that an evaluator has after its own time limit to report that the limit was reached."""


class _Check(NamedTuple):
    """An evaluator of a plan, and what it declares about itself, read once and not for every trace."""

    spec: EvaluatorSpec
    evaluate: Callable[..., Any]
    uses_case: bool
    uses_artifact: bool
    uses_results: bool
    scores: tuple[float, float]
    look: Look | None
    """For an onlooker whose evaluation becomes the result unchanged; None for others."""
    patience: float
    """Seconds for which it is awaited if it is asynchronous: more than usual if its own limit is higher."""


class Judge:
    """The evaluators of a plan (or only one of them), built once, and the ids and times added to their results."""

    def __init__(self, plan: Plan, watchdog: Watchdog, clock: Clock, only: str | None = None) -> None:
        self.watchdog: Watchdog = watchdog
        self.limit: float = plan.run.evaluator_timeout_seconds
        self._clock, self._only = clock, only
        self._process = os.getpid()
        self._thread: JudgeThread | None = None
        judging = format_of_run(plan).judging
        self._concurrent, self._keep_calls = judging.concurrent, plan.run.keep_judge_calls
        self._skips_errored = passes_over_errored(plan)
        self._by_case = plan.evaluators_by_case
        self._specs = plan.evaluators
        self._built = self._build(plan.evaluators)
        self._names = [spec.name for spec in plan.evaluators]
        self._comparisons = [spec for spec in plan.evaluators if compares(spec.type) and self._is_judged_again(spec)]
        self._standing = [spec.name for spec in plan.evaluators if not self._is_judged_again(spec)]
        self._spoiling: SpoilingErrors | None = None
        if plan.pass_criteria.spoiling_errors:
            from evalwright.run.steps.spoil import SpoilingErrors

            self._spoiling = SpoilingErrors(plan)
        self._criteria = plan.pass_criteria
        self._by_common_rule = by_common_rule(plan)
        self._verdict = self._verdict_by(plan)
        by_case = self._by_case or bool(self._comparisons) or not self._by_common_rule
        self.uses_case: bool = by_case or any(check.uses_case for check in self._built)
        """Whether an evaluator or the rule of verdicts may look at the case; if none does, `case` may be anything."""
        self.uses_artifact: bool = self._by_case or any(check.uses_artifact for check in self._built)
        """Whether any evaluator looks at what the cell did to files."""

    def close(self) -> None:
        """Nothing more is to be judged."""
        if self._thread is not None:
            self._thread.close()

    def _build(self, specs: Iterable[EvaluatorSpec]) -> list[_Check]:
        return [self._check(spec) for spec in specs if self._is_judged_again(spec) and not compares(spec.type)]

    def _is_judged_again(self, spec: EvaluatorSpec) -> bool:
        """If only one evaluator re-evaluates, those that use its results do, too, because theirs would be outdated."""
        return self._only is None or spec.name == self._only or uses_results(spec)

    def _check(self, spec: EvaluatorSpec) -> _Check:
        evaluator, traits = build(spec)
        look = evaluator.looking() if traits.looks and isinstance(evaluator, Onlooker) else None
        evaluate, patience = self._bounded(spec, look or evaluator.evaluate, traits)
        uses = traits.uses_case, traits.uses_artifact, traits.uses_results
        return _Check(spec, evaluate, *uses, traits.scores, look if spec.required is None else None, patience)

    def _bounded(
        self, spec: EvaluatorSpec, evaluate: Callable[..., Any], traits: Traits
    ) -> tuple[Callable[..., Any], float]:
        """How an evaluator is called, and for how many seconds the awaitable that it may return is then awaited."""
        patience = self.limit if traits.uses_results else max(self.limit, traits.timeout_seconds + _GRACE)
        if traits.bind_members is not None:
            # A member that is late has an error of its own, which only then becomes that of the whole.
            traits.bind_members(lambda member, built: self._bounded(member, built.evaluate, built.traits)[0])
            patience += _GRACE
        if not traits.blocks and (traits.blocks is not None or self.watchdog.watches):
            return evaluate, patience
        if self._thread is None:
            from evalwright.run.judge_thread import JudgeThread

            self._thread = JudgeThread()
        # It limits itself: the wait for its turn does not count.
        return self._thread.bounded(evaluate, self.limit, patience, together=is_judge(spec)), math.inf

    def _verdict_by(self, plan: Plan) -> Callable[[Case, Trace, Sequence[EvaluationResult]], CaseVerdict]:
        """The rule of the plan."""
        criteria = plan.pass_criteria
        own = format_of_run(plan).verdicts
        if own is not None:
            return partial(resolve(own), criteria)
        if criteria.rule == "bands":
            from evalwright.scoring.bands import banded_verdict, case_threshold

            return lambda case, trace, results: banded_verdict(
                case.evaluators or [] if self._by_case else self._specs, trace, results, case_threshold(case, criteria)
            )
        if self._by_case:
            return lambda case, trace, results: cell_verdict(criteria, self.names(case), trace, results)
        return lambda _, trace, results: cell_verdict(criteria, self._names, trace, results)

    @property
    def lookers(self) -> list[tuple[EvaluatorSpec, Look]] | None:
        """The evaluators, if all are onlookers that need no thread, and nothing but their results decides about a
        cell."""
        others = self._only is not None or self._by_case or self._spoiling is not None or self._comparisons
        if others or self._thread is not None or not self._by_common_rule:
            return None
        if any(check.look is None for check in self._built):
            return None
        return [(check.spec, check.look) for check in self._built if check.look is not None]

    def verdict(self, trace: Trace, results: Sequence[ReasonedResult]) -> CaseVerdict:
        """By the common rule."""
        return cell_verdict(self._criteria, self._names, trace, results)

    def passes_over(self, trace: Trace) -> bool:
        """Whether no evaluator is called on it, because its system raised an error, or was not called to save money."""
        return trace.error is not None and (self._skips_errored or trace.error.type == "cost_limit")

    def names(self, case: Case) -> list[str]:
        """The evaluators whose results a cell of the case needs."""
        return [spec.name for spec in case.evaluators or ()] if self._by_case else self._names

    def standing(self, case: Case) -> list[str]:
        """Those whose stored results stay, because only others re-evaluate."""
        if not self._by_case:
            return self._standing
        return [spec.name for spec in case.evaluators or () if not self._is_judged_again(spec)]

    def comparisons(self, case: Case) -> list[EvaluatorSpec]:
        """The evaluators of the case that judge the answers of all variants together."""
        if not self._by_case:
            return self._comparisons
        return [spec for spec in case.evaluators or () if compares(spec.type) and self._is_judged_again(spec)]

    def evaluate(
        self, case: Case, trace: Trace, known: Collection[str] = (), artifact: Artifact | None = None
    ) -> tuple[list[EvaluationResult], list[PendingResult]]:
        """Results of every evaluator that is not in `known`, and by position what is still to be awaited.

        Comparisons are not among them: they need the other cells of the case.

        Raises InputError if the case has an evaluator of its own that cannot be built.
        """
        results: list[EvaluationResult] = []
        pending: list[PendingResult] = []
        if trace.error is not None and self.passes_over(trace):
            return results, pending
        watchdog, limit, monotonic, date_of = self.watchdog, self.limit, time.monotonic, self._clock.date
        tick = monotonic()
        date = date_of(tick)
        checks = self._build(case.evaluators or ()) if self._by_case else self._built
        for spec, evaluate, _, uses_artifact, comes_last, scores, _, patience in checks:
            if known and spec.name in known:
                continue
            outcome: Any
            error = failed = None
            if comes_last:
                # Called once all others are there; its row keeps its place among theirs.
                call = partial(evaluate, case, trace)
                pending.append(PendingResult(len(results), call, patience, scores, spec))
                results.append(result_of(spec, trace, None, None, date, date))
                continue
            try:
                watchdog.until = tick + limit
                outcome = evaluate(case, trace, artifact) if uses_artifact else evaluate(case, trace)
                watchdog.until = None
            except Interrupted:
                raise
            except BaseException as raised:
                # User code may call `sys.exit`. The watchdog's LimitExceeded is no Exception, so that user code does
                # not swallow it. All of that belongs to this result, not to the run.
                if os.getpid() != self._process:
                    end_child(raised)
                watchdog.until, outcome = None, None
                error, failed = evaluator_failure(raised, limit), raised
            if outcome is not None and not isinstance(outcome, Evaluation):
                if isinstance(outcome, Awaitable):
                    pending.append(PendingResult(len(results), outcome, patience, scores, spec))
                    outcome = None
                else:
                    error, outcome = no_evaluation(outcome), None
            # The end of one evaluation is the start of the next, and of many that together take less than a
            # millisecond.
            end = monotonic()
            took = int((end - tick) * 1000)
            finished = date_of(end) if took else date
            results.append(result_of(spec, trace, outcome, error, date, finished, took, scores))
            if failed is not None:
                keep_detail(results[-1], failed)
            if took:
                tick, date = end, finished
        if os.getpid() != self._process:  # once for all: what evaluators return is not written yet
            end_child()
        return results, pending

    async def finish(self, results: list[EvaluationResult], pending: Sequence[PendingResult]) -> None:
        """Wait for pending results, and fill them in."""
        from evalwright.run.steps.awaited import await_results

        await await_results(results, pending, self._clock, concurrent=self._concurrent, keep_calls=self._keep_calls)

    def conclude(
        self,
        case: Case,
        trace: Trace,
        results: list[EvaluationResult],
        write: Callable[[list[EvaluationResult]], None],
        known: Sequence[EvaluationResult] = (),
    ) -> CaseVerdict:
        """Write the results of a cell. Returns its verdict, by them and by the `known` ones; the verdict is not yet
        written."""
        if self._spoiling is not None:
            self._spoiling.spoil(results)
        write_results(results, write)
        verdict = self._verdict(case, trace, [*known, *results] if known else results)
        verdict.case_index = trace.case_index
        return verdict


def by_common_rule(plan: Plan) -> bool:
    """Whether the results alone decide about a cell; other rules may look at the case, too."""
    return format_of_run(plan).verdicts is None and plan.pass_criteria.rule != "bands"


@cache
def compares(type_name: str) -> bool:
    """Whether an evaluator judges several answers together; False for one that is not installed here."""
    try:
        return declared("evaluators", type_name).compares
    except InputError:
        return False


def evaluators_call_models(plan: Plan) -> bool:
    """Whether an evaluator of the plan calls models, so that judging waits more than it computes."""
    return any(map(is_judge, plan.evaluators))
