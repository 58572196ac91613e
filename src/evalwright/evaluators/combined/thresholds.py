"""An evaluator whose results pass by score, whatever the evaluator itself decides."""

from __future__ import annotations

import operator
from collections.abc import Awaitable
from typing import Any

import msgspec

from evalwright.model.protocols import Evaluator
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["Threshold"]

_COMPARISONS = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le, "eq": operator.eq}


class Threshold:
    """`evaluator` passes if its score compares with `threshold` by `op` (gt, gte, lt, lte or eq)."""

    def __init__(self, evaluator: Evaluator, threshold: float, op: str = "gte") -> None:
        self._evaluator, self._threshold, self._compare = evaluator, threshold, _COMPARISONS[op]

    def evaluate(self, case: Case, trace: Trace, *more: Any) -> Evaluation | Awaitable[Evaluation]:
        judged = self._evaluator.evaluate(case, trace, *more)
        return self._with_threshold(judged) if isinstance(judged, Evaluation) else self._later(judged)

    async def _later(self, judging: Awaitable[Evaluation]) -> Evaluation:
        return self._with_threshold(await judging)

    def _with_threshold(self, evaluation: Evaluation) -> Evaluation:
        if evaluation.score is None or evaluation.skipped:
            return evaluation
        # Not in place: an evaluator may return the same evaluation again, for other cells.
        return msgspec.structs.replace(evaluation, passed=bool(self._compare(evaluation.score, self._threshold)))
