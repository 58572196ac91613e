"""The gate of a suite of the native format: conditions on the scores of its evaluators over all cells."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from typing import Any

from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import RunSummary
from evalwright.scoring.facts import ResultLike, TraceLike
from evalwright.scoring.gate import decided

__all__ = ["GateTotals"]


class GateTotals:
    """Scores by evaluator, eight bytes each. A result with an error counts 0, so that a gate fails closed."""

    def __init__(self, plan: Plan) -> None:
        self._gate = plan.gate
        self._scores = {spec.name: array("d") for spec in plan.evaluators}

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        for row in results:
            if not row.skipped and row.evaluator in self._scores:
                score = float(row.passed) if row.score is None else row.score
                self._scores[row.evaluator].append(0.0 if row.error is not None else score)

    def merge(self, other: Any) -> None:
        for name, scores in other._scores.items():
            self._scores[name].extend(scores)

    def finish(self, summary: RunSummary) -> None:
        if self._gate is not None:
            summary.gate = decided(self._gate, self._scores)
