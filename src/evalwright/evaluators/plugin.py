"""Evaluators of other packages. Python checks no types, so what they say is checked here, wherever they are asked."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec

from evalwright.errors import EvaluatorError
from evalwright.model.protocols import Evaluator
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["PluginEvaluator", "readable"]

_PARTS = ("reason", "detail", "skipped", "cost_usd", "hits", "misses")


class PluginEvaluator:
    """An evaluator whose evaluations a reader of the run can read, or that errs."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._evaluator, name)

    def evaluate(self, case: Case, trace: Trace, *more: Any) -> Evaluation | Awaitable[Evaluation]:
        evaluation = self._evaluator.evaluate(case, trace, *more)
        return _awaited_evaluation(evaluation) if isinstance(evaluation, Awaitable) else readable(evaluation)

    async def compare(self, case: Case, cells: Sequence[Any]) -> list[Evaluation]:
        comparing: Any = self._evaluator
        return [readable(evaluation) for evaluation in await comparing.compare(case, cells)]


async def _awaited_evaluation(evaluation: Awaitable[Evaluation]) -> Evaluation:
    return readable(await evaluation)


def readable(evaluation: object) -> Evaluation:
    """An evaluation of users' code: with a part of another type no reader could read the result back.

    Verdict and score are checked for all evaluators, when the result is stored. Raises EvaluatorError.
    """
    if not isinstance(evaluation, Evaluation):
        raise EvaluatorError(f"expected an Evaluation, found {type(evaluation).__name__}")
    try:
        msgspec.convert({"passed": False, **{name: getattr(evaluation, name) for name in _PARTS}}, Evaluation)
    except msgspec.ValidationError as error:
        raise EvaluatorError(f"the Evaluation cannot be stored: {error}") from None
    if evaluation.cost_usd is not None and not 0 <= evaluation.cost_usd < math.inf:
        raise EvaluatorError(f"the Evaluation's cost_usd is {evaluation.cost_usd}, expected a finite number from 0 on")
    return evaluation
