"""An evaluator and a target, as another package would add them."""

from __future__ import annotations

import msgspec

from evalwright.plugins import Answer, Case, Evaluation, InputError, Output, Problem, TargetError, Trace, Variant

__all__ = ["Canned", "WordCount"]


class WordCount(msgspec.Struct, frozen=True):
    """An answer of at least `minimum` and at most `maximum` words.

    The fields are the configuration: evalwright checks their types and names every mistake before anything runs.
    """

    maximum: int
    minimum: int = 1

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        words = len((trace.output.final_answer or "").split())
        if self.minimum <= words <= self.maximum:
            return Evaluation(True, 1.0, detail={"words": words})
        expected = f"{self.minimum} to {self.maximum}"
        return Evaluation(False, 0.0, f"words: {words}, expected {expected}", {"words": words})


class Canned:
    """Answers from a table in the configuration: `answers: {case id: text}`."""

    def __init__(self, variant: Variant) -> None:
        answers = variant.config.get("answers")
        if not isinstance(answers, dict):
            raise InputError(Problem("", "expected a mapping of case ids to texts", key="answers"))
        self._answers = answers

    async def run(self, case: Case, trial: int) -> Answer:
        try:
            return Answer(output=Output(final_answer=str(self._answers[case.id])))
        except KeyError:
            raise TargetError(f"there is no canned answer for {case.id!r}") from None
