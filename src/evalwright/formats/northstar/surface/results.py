"""The results of graders, and the result of a suite."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from evalwright.errors import EvaluatorError
from evalwright.formats.northstar.surface.judge_keys import JudgeAuthenticationError, failure_message
from evalwright.model.result import Evaluation, status_of

__all__ = ["CaseResult", "CaseStatus", "EvalResult", "GradeResult", "GradeStatus", "failed_grade", "grade_of"]


class GradeStatus(StrEnum):
    """The verdict of one grader on one case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class CaseStatus(StrEnum):
    """The verdicts of all graders on one case; `errored` when its record cannot be judged."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_EVALUATED = "not_evaluated"
    ERRORED = "errored"


class _Record(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class GradeResult(_Record):
    """One grader's result for one case."""

    name: str
    status: GradeStatus
    reason: str
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


class CaseResult(_Record):
    """One case with its grades, in the order of the graders."""

    case_id: str
    status: CaseStatus
    grades: list[GradeResult]
    error: str | None = None
    """Why the case could not be judged."""


class EvalResult(_Record):
    """The result of a whole dataset: `pass_rate` is passed cases divided by evaluated ones, 0 if there are none."""

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


def grade_of(name: str, evaluation: Evaluation) -> GradeResult:
    """The grade for an evaluator's result: the parts of its detail that a grade has fields for, and the rest."""
    status = _STATUSES[status_of(evaluation.passed, evaluation.skipped, None)]
    own = {key: evaluation.detail[key] for key in _OWN if evaluation.detail.get(key) is not None}
    if status is not GradeStatus.SKIPPED:
        own = {"threshold": 1.0, "label": "pass" if evaluation.passed else "fail", **own}
    metadata = {key: value for key, value in evaluation.detail.items() if key not in (*_OWN, "metadata")}
    given = evaluation.detail.get("metadata")  # values returned by code belong to the grade
    return GradeResult(
        name=name,
        status=status,
        reason=evaluation.reason or f"{name}: {status}.",
        score=evaluation.score,
        metadata={**metadata, **(given if isinstance(given, dict) else {})},
        **own,
    )


def failed_grade(grader: Any, error: Exception) -> GradeResult:
    """A grader's exception, as its failed grade; `error_type` distinguishes it from a bad answer."""
    name = str(getattr(grader, "name", type(grader).__name__))
    model = getattr(grader, "model", None)
    judges = bool(getattr(grader, "requires_feedback", False))
    kind, message = _class_of(error), str(error)
    feedback = "The grader failed before it reached a verdict." if judges else None
    if judges and isinstance(model, str):
        reason, feedback = failure_message(error, model)
        if isinstance(error, (EvaluatorError, JudgeAuthenticationError)):
            reason = f"{reason} {message}"
    else:
        reason = message if isinstance(error, EvaluatorError) else f"The grader raised {kind}: {message}"
    detail = error.detail if isinstance(error, EvaluatorError) else {}
    return GradeResult(
        name=name,
        status=GradeStatus.FAILED,
        reason=reason,
        feedback=feedback,
        score=0.0,
        threshold=1.0,
        label="fail",
        metadata={
            **detail,
            **({"judge_model": model} if isinstance(model, str) else {}),
            **({"error_type": kind} if kind else {}),
            "error_message": message,
        },
    )


_CLASSES = {
    "authentication": "AuthenticationError", "rate_limited": "RateLimitError", "timeout": "Timeout",
    "exception": "RuntimeError",
}  # fmt: skip
"""For errors that we raise, the class that the original used."""


def _class_of(error: Exception) -> str:
    return _CLASSES.get(error.type, error.type) if isinstance(error, EvaluatorError) else type(error).__name__
