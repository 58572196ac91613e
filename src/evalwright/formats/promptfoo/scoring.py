"""`assertScoringFunction`: a user's function that decides the outcome of a cell from its named scores."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from evalwright.errors import EvaluatorError
from evalwright.formats.promptfoo.checks.code import finite_scores, is_result
from evalwright.formats.promptfoo.components import components
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.scripts import call_file
from evalwright.formats.promptfoo.verdicts import named_scores
from evalwright.model.result import Evaluation, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["ScoringFunction"]


class ScoringFunction:
    """`function` is `file://FILE[:NAME]`; its result replaces the outcome of the cell."""

    uses_results: bool = True
    scores: tuple[float, float] = (-sys.float_info.max, sys.float_info.max)

    def __init__(self, function: str, folder: str, threshold: float | None = None) -> None:
        self._function, self._folder, self._threshold = function, folder, threshold

    async def evaluate(self, case: Case, trace: Trace, results: Sequence[EvaluationResult]) -> Evaluation:
        parts = list(components(results, case))
        context = {"threshold": self._threshold, "componentResults": parts, "parentAssertionSet": None}
        try:
            returned = await call_file(self._folder, self._function, "func", [named_scores(results), context])
        except ScriptError as error:
            if error.type != "exception":  # a function that is not there, or does not end, says nothing of the output
                raise EvaluatorError(f"{self._function}: {error}", error.type) from None
            return Evaluation(False, 0.0, f"{self._function} raised {error}", {"threw": True})
        if not is_result(returned):
            return Evaluation(False, 0.0, f"{self._function} must give pass, score and reason: found {returned!r:.80}")
        detail = {"named_scores": scores} if (scores := finite_scores(returned)) is not None else {}
        return Evaluation(returned["pass"], float(returned["score"]), returned["reason"], detail)
