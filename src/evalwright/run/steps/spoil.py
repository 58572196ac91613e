"""Withdraw the other results of a cell in which an evaluator had an error that spoils it."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.model.plan import Plan
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import TraceError

__all__ = ["SpoilingErrors"]


class SpoilingErrors:
    """The types of errors that spoil a cell of the plan."""

    def __init__(self, plan: Plan) -> None:
        self._types = frozenset(plan.pass_criteria.spoiling_errors)

    def spoil(self, results: Sequence[EvaluationResult]) -> None:
        """Turn the results beside a spoiling error into errors; their content is kept in `detail.not_counted`."""
        spoilt = next((row for row in results if row.error is not None and row.error.type in self._types), None)
        if spoilt is None:
            return
        for row in results:
            if row.error is None:
                row.detail = {**row.detail, "not_counted": {"passed": row.passed, "score": row.score}}
                row.error = TraceError("not_counted", f"{spoilt.evaluator!r} had an error")
                row.passed, row.score = False, None
