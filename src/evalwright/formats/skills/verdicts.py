"""When a case passes: all of its criteria hold, and the skill was used as the case says."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.formats.skills.cases import USED
from evalwright.model.plan import PassCriteria
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.scoring.verdict import cell_verdict

__all__ = ["verdict"]

_UNJUDGED = "the case has no criteria: nothing judges it"


def verdict(criteria: PassCriteria, case: Case, trace: Trace, results: Sequence[EvaluationResult]) -> CaseVerdict:
    """The verdict of a cell; its score is the share of the criteria that hold."""
    names = [spec.name for spec in case.evaluators or ()]
    silent = {row.evaluator for row in results if not _counts(row)}
    needed = [name for name in names if name not in silent]
    found = cell_verdict(criteria, needed, trace, [row for row in results if _counts(row)])
    if trace.error is not None:
        return found
    missing = [name for name in names if name not in {row.evaluator for row in results}]
    own = [row for row in results if row.evaluator != USED]
    deciding = [row for row in results if _counts(row) and not row.skipped]
    if any(row.error is not None for row in results) or missing:
        found.status, found.score = "error", None
    elif not deciding:
        found.status, found.score = "skip", None
        found.reasons = [_UNJUDGED] if not own else found.reasons
    else:
        found.status = "pass" if all(row.passed for row in deciding) else "fail"
        found.score = sum(row.passed for row in (own or deciding)) / len(own or deciding)
        found.reasons = [] if found.status == "pass" else found.reasons
    return found


def _counts(row: EvaluationResult) -> bool:
    """Whether a result decides: the use of the skill does if the case says whether it should be used."""
    return row.evaluator != USED or row.error is not None or row.detail.get("decides") is True
