"""The results of graders, and the result of a suite."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field

from evalwright.errors import EvaluatorError
from evalwright.model.result import Evaluation, status_of

__all__ = ["CaseResult", "CaseStatus", "EvalResult", "GradeResult", "GradeStatus", "failed_grade", "grade_of"]


class GradeStatus(StrEnum):
    """What a grader says of one case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class CaseStatus(StrEnum):
    """What all graders say of one case; `errored` when its record cannot be judged."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_EVALUATED = "not_evaluated"
    ERRORED = "errored"


class GradeResult(BaseModel):
    """One grader's result for one case."""

    name: str
    status: GradeStatus
    reason: str = ""
    feedback: str | None = None
    score: float | None = None
    threshold: float | None = None
    label: str | None = None
    confidence: float | None = None
    evidence: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.status == GradeStatus.PASSED


class CaseResult(BaseModel):
    """One case with its grades, in the order of the graders."""

    case_id: str
    status: CaseStatus
    grades: list[GradeResult] = Field(default_factory=list)
    error: str | None = None
    """Why the case could not be judged."""


class EvalResult(BaseModel):
    """A whole dataset: `pass_rate` is passed cases by evaluated ones, 0 when there is none."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    total_cases: int = 0
    evaluated_cases: int = 0
    not_evaluated_cases: int = 0
    passed_cases: int = 0
    failed_cases: int = 0
    errored_cases: int = 0
    pass_rate: float = 0.0
    skipped_grades: int = 0
    case_results: list[CaseResult] = Field(default_factory=list)


_OWN = ("feedback", "threshold", "label", "confidence", "evidence")
_STATUSES = {"pass": GradeStatus.PASSED, "fail": GradeStatus.FAILED, "skip": GradeStatus.SKIPPED}


def grade_of(name: str, said: Evaluation) -> GradeResult:
    """The grade in what an evaluator said: parts of the detail that a grade has fields for, and the rest."""
    status = _STATUSES[status_of(said.passed, said.skipped, None)]
    own = {key: said.detail[key] for key in _OWN if said.detail.get(key) is not None}
    if status is not GradeStatus.SKIPPED:
        own = {"threshold": 1.0, "label": "pass" if said.passed else "fail", **own}
    metadata = {key: value for key, value in said.detail.items() if key not in _OWN}
    return GradeResult(name=name, status=status, reason=said.reason, score=said.score, metadata=metadata, **own)


def failed_grade(name: str, error: Exception) -> GradeResult:
    """What a grader raised, as its failed grade; `error_type` distinguishes it from a bad answer."""
    known = isinstance(error, EvaluatorError)
    kind = error.type if isinstance(error, EvaluatorError) else type(error).__name__
    detail = error.detail if isinstance(error, EvaluatorError) else {}
    reason = f"{kind}: {error}" if not known else str(error)
    return GradeResult(
        name=name,
        status=GradeStatus.FAILED,
        reason=reason,
        feedback=f"The grader could not judge: {reason}",
        score=0.0,
        threshold=1.0,
        label="fail",
        metadata={**detail, "error_type": kind, "error_message": str(error)},
    )
