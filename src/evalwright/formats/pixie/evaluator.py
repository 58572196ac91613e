"""An evaluator of an instrumented application within a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.errors import EvaluatorError
from evalwright.formats.pixie.observer import PASSES
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

if TYPE_CHECKING:
    from evalwright.formats.pixie.surface import evaluation

__all__ = ["TYPE", "PixieEvaluator", "WrapCheck", "judged", "judgement"]

TYPE = "pixie"
"""The type name of such evaluators in users' files."""


class PixieEvaluator:
    """An evaluator of your own (`file.py:check`), with its `reference` and `folders`."""

    calls_models = True
    imports_code = True

    def __init__(self, reference: str, folders: list[str]) -> None:
        from evalwright.formats.pixie.user_code import evaluator_at

        self._evaluator = evaluator_at(reference, [Path(folder) for folder in folders])

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        return await judged(self._evaluator, case, trace)


async def judged(evaluator: Any, case: Case, trace: Trace) -> Evaluation:
    """An evaluator's judgement of an entry's values (`extra` of the case) and outputs (`extra.outputs` of the trace).

    Raises EvaluatorError if there is no output, or if a scorer reports an error, and whatever the evaluator raises.
    """
    from evalwright.formats.pixie.surface.evaluation import evaluate_unrecorded

    if trace.error is not None:
        raise EvaluatorError(f"the application returned no output: {trace.error.message}", "no_output")
    return judgement(await evaluate_unrecorded(evaluator, _evaluable(case, trace)))


def judgement(result: evaluation.Evaluation, threshold: float = PASSES) -> Evaluation:
    """An evaluator's judgement as it is stored. Raises EvaluatorError if its score of 0 stands for an exception."""
    from evalwright.formats.pixie.surface.evaluation import could_not_judge

    details = dict(result.details or {})
    if could_not_judge(result):
        raise EvaluatorError(result.reasoning or str(details["error"]), "evaluator_error", details)
    if details.pop("skipped", False):
        return Evaluation(False, None, result.reasoning, details, skipped=True)
    return Evaluation(result.score >= threshold, float(result.score), result.reasoning, details)


def _evaluable(case: Case, trace: Trace) -> Any:
    from evalwright.formats.pixie.surface.evaluable import UNSET, Evaluable

    extra: Mapping[str, Any] = case.extra
    return Evaluable(
        eval_input=extra["eval_input"],
        eval_output=[{"name": output["name"], "value": output["value"]} for output in trace.extra["outputs"]],
        expectation=extra.get("expectation", UNSET),
        eval_metadata=extra.get("eval_metadata"),
        description=case.description,
    )


class WrapCheck:
    """Whether the entry had every input that the application asked for; skipped if it had."""

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if trace.error is not None and trace.error.type == "wrap_error":
            return Evaluation(False, 0.0, trace.error.message)
        return Evaluation(False, None, "no input was missing", skipped=True)
