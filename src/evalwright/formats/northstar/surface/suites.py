"""Graders over a dataset."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evalwright.errors import InputError
from evalwright.formats.northstar.authored import EvalCase
from evalwright.formats.northstar.cases import case_of
from evalwright.formats.northstar.plans import DETERMINISTIC, configured
from evalwright.formats.northstar.surface.graders import Grader, default_graders
from evalwright.formats.northstar.surface.judge_calls import settled
from evalwright.formats.northstar.surface.plans import grader_plan
from evalwright.formats.northstar.surface.results import (
    CaseResult,
    CaseStatus,
    EvalResult,
    GradeResult,
    GradeStatus,
    failed_grade,
    grade_of,
)
from evalwright.formats.northstar.surface.runs import run_of
from evalwright.formats.northstar.totals import totals
from evalwright.model.recordings import recorded_of
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["EvalSuite", "suite_from_config"]

_WIDTH = 16
"""How many cases may wait for models at once."""
_STATUSES = {"passed": "pass", "failed": "fail", "not_evaluated": "skip", "errored": "error"}


class EvalSuite:
    """A list of graders: of a plan, or any objects with `name` and `grade(case, run)`. Raises TypeError for others."""

    def __init__(
        self,
        graders: Sequence[Any] | None = None,
        *,
        plan: str = "deterministic",
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.graders: list[Any] = grader_plan(plan) if graders is None else [_grader(grader) for grader in graders]
        self.plan = plan
        self.metadata: dict[str, Any] = dict(metadata or {})

    def run(self, cases: Iterable[EvalCase]) -> EvalResult:
        """Grade every case with every grader; a grader's exception is its failed grade.

        Raises TypeError for objects other than EvalCase.
        """
        started = datetime.now(UTC)
        results = settled(self._all_results([_case(case) for case in cases]))
        statuses = Counter(_STATUSES[result.status] for result in results)
        skipped = sum(grade.status == GradeStatus.SKIPPED for result in results for grade in result.grades)
        names = [grader.name for grader in self.graders]
        about = {"plan": self.plan, "grader_names": names, "created_at": started.isoformat(), **self.metadata}
        return EvalResult(metadata=about, case_results=results, **totals(statuses, skipped))

    async def _all_results(self, cases: Sequence[EvalCase]) -> list[CaseResult]:
        gate = asyncio.Semaphore(_WIDTH)

        async def one(case: EvalCase) -> CaseResult:
            async with gate:
                return await self._case(case)

        return list(await asyncio.gather(*map(one, cases)))

    async def _case(self, case: EvalCase) -> CaseResult:
        snapped = case_of(case)
        trace = recorded_of(snapped)
        assert isinstance(trace, Trace)
        grades = [self._grade(grader, case, snapped, trace) for grader in self.graders]
        done = [grade if isinstance(grade, GradeResult) else await grade for grade in grades]
        if trace.error is not None:
            return CaseResult(case_id=case.id, status=CaseStatus.ERRORED, grades=done, error=trace.error.message)
        outcome = {grade.status for grade in done} - {GradeStatus.SKIPPED}
        status = CaseStatus.FAILED if GradeStatus.FAILED in outcome else CaseStatus.PASSED
        return CaseResult(case_id=case.id, status=status if outcome else CaseStatus.NOT_EVALUATED, grades=done)

    def _grade(self, grader: Any, case: EvalCase, made: Case, trace: Trace) -> GradeResult | Awaitable[GradeResult]:
        try:
            if not isinstance(grader, Grader) or not _grades_as_ours(grader):
                return _checked_grade(grader.grade(case, run_of(case, trace)))
            evaluation = grader.evaluate(made, trace)
            if isinstance(evaluation, Awaitable):
                return asyncio.ensure_future(_awaited_grade(grader, evaluation))
            return grade_of(grader.name, evaluation)
        except Exception as error:
            return _failed_grade(grader, error)


def suite_from_config(configuration: Mapping[str, Any]) -> EvalSuite:
    """The suite of a run configuration. Raises ValueError with every problem."""
    try:
        specs = configured(configuration, "configuration")
    except InputError as error:
        raise ValueError(str(error)) from error
    added = [Grader(spec.name, spec.type, spec.config) for spec in specs[len(DETERMINISTIC) :]]
    return EvalSuite([*default_graders(), *added], plan="quality" if added else "deterministic")


def _grader(authored: Any) -> Any:
    if isinstance(authored, type) or not hasattr(authored, "name") or not callable(getattr(authored, "grade", None)):
        name = f"the class {authored.__name__}" if isinstance(authored, type) else type(authored).__name__
        raise TypeError(f"expected a grader, an object with `name` and `grade(case, run)`, found {name}")
    return authored


def _case(authored: Any) -> EvalCase:
    if not isinstance(authored, EvalCase):
        raise TypeError(
            f"expected an EvalCase, found {type(authored).__name__}; Dataset.from_records makes them of data"
        )
    return authored


def _grades_as_ours(grader: Grader) -> bool:
    """Whether `grade` is ours rather than overridden in a user's class."""
    return type(grader).grade.__module__.startswith(__package__)


async def _awaited_grade(grader: Grader, pending: Awaitable[Any]) -> GradeResult:
    try:
        return grade_of(grader.name, await pending)
    except Exception as error:
        return _failed_grade(grader, error)


def _failed_grade(grader: Any, error: Exception) -> GradeResult:
    own = getattr(grader, "failed", None)
    return own(error) if isinstance(grader, Grader) and own is not None else failed_grade(grader, error)


def _checked_grade(grade: Any) -> GradeResult:
    if not isinstance(grade, GradeResult):
        raise TypeError(f"a grader must return a GradeResult, found {type(grade).__name__}")
    return grade
