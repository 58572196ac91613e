"""What evaluators return (`Evaluation`), what is stored (`EvaluationResult`), and the verdict of a cell."""

# No `from __future__ import annotations`: msgspec resolves annotations that are strings in the module named by the
# class, which for public records is `evalwright`.

from datetime import datetime
from typing import Any, Literal

import msgspec

from evalwright.model.cell import Attempt, OfCase
from evalwright.model.score_rule import reaches
from evalwright.model.trace import SCHEMA_VERSION, TraceError

__all__ = [
    "FAILED",
    "JUDGED",
    "NOT_PASSED",
    "PASSING",
    "CaseVerdict",
    "Evaluation",
    "EvaluationResult",
    "Status",
    "band",
    "is_judge_call",
    "status_of",
]

Status = Literal["pass", "borderline", "fail", "skip", "error"]

FAILED: tuple[Status, ...] = ("fail", "borderline")
"""The statuses of a failure: borderline is the milder one."""
JUDGED: tuple[Status, ...] = ("pass", *FAILED)
NOT_PASSED: tuple[Status, ...] = (*FAILED, "error")


class Evaluation(msgspec.Struct, gc=False):
    """What an evaluator returns; the runner adds ids, times and the status.

    `passed` says whether the answer passes, and `reason` why or why not. `score` is in the evaluator's own range (0 to
    1 for deterministic ones), None if there is none. `detail` is kept with the result. `skipped` says that the
    evaluator does not apply to the case. `cost_usd` is the cost of judging (US dollars), which is kept apart from the
    system's cost. `hits` and `misses` name what was found and what was not, if there is a list.

    Example:
        `Evaluation(passed=False, score=0.4, reason="two of five steps are missing")`
    """

    passed: bool
    score: float | None = None
    reason: str = ""
    detail: dict[str, Any] = {}
    skipped: bool = False
    cost_usd: float | None = None
    hits: list[str] = []
    misses: list[str] = []


class EvaluationResult(OfCase, msgspec.Struct, gc=False):
    """One evaluator's result for one attempt of a cell, as stored in `results.jsonl`."""

    case_id: str
    variant_name: str
    evaluator: str
    evaluator_type: str
    passed: bool
    started_at: datetime
    finished_at: datetime
    run_id: str = ""
    score: float | None = None
    reason: str = ""
    detail: dict[str, Any] = {}
    latency_ms: int = 0
    error: TraceError | None = None
    skipped: bool = False
    trial: int = 0
    attempt: Attempt = 1
    cost_usd: float | None = None
    hits: list[str] = []
    misses: list[str] = []
    schema_version: str = SCHEMA_VERSION

    @property
    def status(self) -> Status:
        """`pass`, `fail`, `skip` or `error`; also `borderline` if the evaluator gives three verdicts
        (`detail.verdict`)."""
        status = status_of(self.passed, self.skipped, self.error)
        return "borderline" if status == "fail" and self.detail.get("verdict") == "borderline" else status


class _JudgeCall(msgspec.Struct):
    usage: dict[str, Any] | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    messages: list[dict[str, Any]] | None = None


def is_judge_call(value: Any) -> bool:
    """Whether an entry of `detail.judge_calls` has the parts that readers show; other programs may store anything
    there."""
    try:
        msgspec.convert(value, _JudgeCall)
    except msgspec.ValidationError:
        return False
    return True


class CaseVerdict(OfCase, msgspec.Struct, gc=False):
    """The verdict of one cell, as stored in `verdicts.jsonl`. If there is one, the cell is finished."""

    case_id: str
    variant_name: str
    status: Status
    run_id: str = ""
    trial: int = 0
    attempt: Attempt = 1
    score: float | None = None
    reasons: list[str] = []
    error: TraceError | None = None
    case_index: int | None = None
    schema_version: str = SCHEMA_VERSION
    named_scores: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """Scores for parts of the answer by name, if the format has any."""
    extra: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """What the format's totals count besides status and score."""


PASSING = 0.8
"""The score from which `band` passes."""


def band(score: float) -> Literal["pass", "borderline", "fail"]:
    """`pass` from 0.8, `borderline` from 0.6, else `fail` (AgentEvals 1.0).

    Floating-point error does not push a mean of 0.8 below it.
    """
    return "pass" if reaches(score, PASSING) else "borderline" if reaches(score, 0.6) else "fail"


def status_of(passed: bool, skipped: bool, error: object | None) -> Status:
    """The one place where a result's status is derived: error, else skip, else pass or fail."""
    if error is not None:
        return "error"
    if skipped:
        return "skip"
    return "pass" if passed else "fail"
