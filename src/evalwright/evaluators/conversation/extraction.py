"""An evaluator behind an extractor: it evaluates one text of a conversation instead of the whole trace.

The text replaces the final answer and is kept in the result as `submission`. As in letta-evals 0.9, an empty
conversation or text is an error and the evaluator is not called; a case with one ground truth per user message is
evaluated turn by turn, and its score is the mean; turns without any text score 0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from evalwright.errors import EvaluatorError
from evalwright.evaluators.conversation.turns import Turn, blocks_of, turns_of
from evalwright.model.protocols import Evaluator, Extractor
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, Trace

__all__ = ["ExtractingEvaluator"]


class ExtractingEvaluator:
    """`evaluator` behind `extractor`."""

    def __init__(self, evaluator: Evaluator, extractor: Extractor) -> None:
        self._evaluator, self._extractor = evaluator, extractor

    def evaluate(self, case: Case, trace: Trace, *more: Any) -> Evaluation | Awaitable[Evaluation]:
        if trace.error is not None:
            raise EvaluatorError(f"not judged, the system had an error: {trace.error.message}", "not_judged")
        turns, blocks = turns_of(trace), blocks_of(trace)
        if not turns:
            raise EvaluatorError("empty trajectory", "no_trajectory")
        truths = case.extra.get("ground_truth")
        if isinstance(truths, list) and isinstance(case.input, list):
            return self._by_turn(case, trace, turns, blocks, truths, more)
        if not any(turns):
            raise EvaluatorError("empty trajectory", "empty_trajectory")
        text = self._extract(turns, blocks)
        if not text:
            raise EvaluatorError("empty submission: the extractor found no text", "empty_submission")
        with _adding_text(text):
            judged = self._evaluator.evaluate(case, _with_answer(trace, text), *more)
        return _with_text(judged, text) if isinstance(judged, Evaluation) else _kept_later(judged, text)

    def _extract(self, turns: list[Turn], blocks: dict[str, str] | None) -> str:
        try:
            text: object = self._extractor.extract(turns, blocks)
        except EvaluatorError:
            raise
        except Exception as error:
            raise EvaluatorError(f"the extractor raised {type(error).__name__}: {error}", "extraction_error") from error
        if not text:  # users' extractors may return None
            return ""
        if not isinstance(text, str):
            raise EvaluatorError(f"the extractor returned {type(text).__name__}, expected text", "extraction_error")
        return text

    def _by_turn(
        self,
        case: Case,
        trace: Trace,
        turns: list[Turn],
        blocks: dict[str, str] | None,
        truths: list[Any],
        more: Sequence[Any],
    ) -> Evaluation | Awaitable[Evaluation]:
        texts = [self._extract([turn], blocks) if (turn := _at(turns, i)) else "" for i in range(len(truths))]
        judged = [
            self._evaluator.evaluate(_turn_of(case, i, truth), _with_answer(trace, text), *more) if text else _NOTHING
            for i, (truth, text) in enumerate(zip(truths, texts, strict=True))
        ]
        done = [evaluation for evaluation in judged if isinstance(evaluation, Evaluation)]
        if len(done) == len(judged):
            return _mean_over_turns(done, texts, truths)
        return _together_later(judged, texts, truths)


_SPOILING = ("extraction_error", "grader_error")
"""Errors of one turn that make the whole result an error. Any other failure in a turn scores 0, as in letta-evals."""
_NOTHING = Evaluation(False, 0.0, "empty submission")


def _at(turns: list[Turn], i: int) -> Turn:
    return turns[i] if i < len(turns) else []


def _turn_of(case: Case, i: int, truth: Any) -> Case:
    return msgspec.structs.replace(case, input=case.input[i], extra={**case.extra, "ground_truth": truth})


def _with_answer(trace: Trace, text: str) -> Trace:
    return msgspec.structs.replace(trace, output=Output(final_answer=text))


def _with_text(evaluation: Evaluation, text: str) -> Evaluation:
    # Not in place: an evaluator may return the same evaluation again, for other cells.
    return msgspec.structs.replace(evaluation, detail={**evaluation.detail, "submission": text})


async def _kept_later(judging: Awaitable[Evaluation], text: str) -> Evaluation:
    with _adding_text(text):
        return _with_text(await judging, text)


@contextmanager
def _adding_text(text: str) -> Iterator[None]:
    """Adds the text that could not be evaluated to whatever the evaluator raises."""
    try:
        yield
    except EvaluatorError as error:
        error.detail = {**error.detail, "submission": text}
        raise


async def _together_later(
    judged: Sequence[Evaluation | Awaitable[Evaluation]], texts: list[str], truths: list[Any]
) -> Evaluation:
    from evalwright.llm.patience import all_given

    async def one(item: Evaluation | Awaitable[Evaluation]) -> Evaluation:
        try:
            return item if isinstance(item, Evaluation) else await item
        except EvaluatorError as error:
            if error.type in _SPOILING:
                raise
            return Evaluation(False, 0.0, f"not judged: {error}", {"error": error.type})

    return _mean_over_turns(await all_given(map(one, judged)), texts, truths)


def _mean_over_turns(turns: list[Evaluation], texts: list[str], truths: list[Any]) -> Evaluation:
    """The mean over the turns; a turn passes with a score of 1."""
    scores = [turn.score or 0.0 for turn in turns]
    marks = ["✓" if score >= 1.0 else "✗" for score in scores]
    costs = [turn.cost_usd for turn in turns if turn.cost_usd is not None]
    parts = [
        {"turn": i, "score": score, "reason": turn.reason, "submission": text, "ground_truth": truth, **turn.detail}
        for i, (score, turn, text, truth) in enumerate(zip(scores, turns, texts, truths, strict=True))
    ]
    passed = marks.count("✓")
    detail = {
        "turns": scores,
        "turns_passed": passed,
        "turns_total": len(turns),
        "per_turn": parts,
        "submission": " | ".join(f"[Turn {i}] {text}" for i, text in enumerate(texts)),
    }
    score = sum(scores) / len(scores)
    reason = f"{passed}/{len(turns)} passed: {' '.join(marks)}"
    return Evaluation(passed == len(turns), score, reason, detail, cost_usd=sum(costs) if costs else None)
