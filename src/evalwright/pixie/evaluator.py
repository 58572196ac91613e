"""An evaluator of an instrumented application within a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["PixieEvaluator", "WrapCheck"]

_PASSES = 0.5


class PixieEvaluator:
    """A pre-made evaluator (`ExactMatch`) or one of your own (`file.py:check`), with its `reference` and `folders`."""

    calls_models = True

    def __init__(self, reference: str, folders: list[str]) -> None:
        from evalwright.pixie.loading import evaluator_at

        self._evaluator = evaluator_at(reference, [Path(folder) for folder in folders])

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        from evalwright.pixie.evaluation import evaluate

        if trace.error is not None:
            raise EvaluatorError(f"the application gave no output: {trace.error.message}", "no_output")
        said = await evaluate(self._evaluator, _evaluable(case, trace))
        details = dict(said.details or {})
        if "error" in details and "traceback" in details:
            raise EvaluatorError(said.reasoning or str(details["error"]), "evaluator_error", details)
        if details.pop("skipped", False):
            return Evaluation(False, None, said.reasoning, details, skipped=True)
        return Evaluation(said.score >= _PASSES, float(said.score), said.reasoning, details)


def _evaluable(case: Case, trace: Trace) -> Any:
    from evalwright.pixie.evaluable import UNSET, Evaluable

    extra: Mapping[str, Any] = case.extra
    return Evaluable(
        eval_input=extra["eval_input"],
        eval_output=[{"name": one["name"], "value": one["value"]} for one in trace.extra["outputs"]],
        expectation=extra.get("expectation", UNSET),
        eval_metadata=extra.get("eval_metadata"),
        description=case.description,
    )


class WrapCheck:
    """Whether the entry had every input that the application asked for; skipped where it had."""

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if trace.error is not None and trace.error.type == "wrap_error":
            return Evaluation(False, 0.0, trace.error.message)
        return Evaluation(False, None, "no input was missing", skipped=True)
