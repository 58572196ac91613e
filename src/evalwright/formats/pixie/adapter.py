"""Turns a scorer (`eval_async(output, expected, ...)`) into an evaluator of evaluables."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.formats.pixie.scorers import scored
from evalwright.formats.pixie.surface.evaluable import UNSET, Evaluable, collapse_named_data
from evalwright.formats.pixie.surface.evaluation import Evaluation, finite_score, label_of

__all__ = ["AutoevalsAdapter"]


class AutoevalsAdapter:
    """An evaluator made from any object with `eval_async` or `eval`; its exceptions become EvaluatorError."""

    def __init__(
        self,
        scorer: Any,
        *,
        expected: Any = UNSET,
        expected_key: str = "expected",
        input_key: str | None = "input",
        extra_metadata_keys: Sequence[str] = (),
        **scorer_kwargs: Any,
    ) -> None:
        self._scorer, self._expected, self._expected_key = scorer, expected, expected_key
        self._input_key, self._extra, self._keywords = input_key, tuple(extra_metadata_keys), scorer_kwargs
        self.made_by: tuple[str, dict[str, Any]] | None = None
        """The name of the pre-made evaluator that this is, and the options with which it was made."""

    @property
    def name(self) -> str:
        """The scorer's own name, else its class's."""
        name = getattr(self._scorer, "name", None)
        return name if isinstance(name, str) else type(self._scorer).__name__

    async def __call__(self, evaluable: Evaluable, *, trace: Any = None) -> Evaluation:
        metadata = evaluable.eval_metadata or {}
        keywords: dict[str, Any] = {}
        if self._input_key is not None:
            keywords[self._input_key] = collapse_named_data(evaluable.eval_input)
        keywords |= {key: metadata[key] for key in self._extra if key in metadata}
        output = collapse_named_data(evaluable.eval_output)
        try:
            score = await scored(self._scorer, output, self._expectation(evaluable), **keywords, **self._keywords)
            return self._evaluation(score)
        except Exception as error:
            details = {"error": type(error).__name__, "traceback": traceback.format_exc()}
            raised = EvaluatorError(str(error) or type(error).__name__, "evaluator_error", details)
            raised.add_note(f"{label_of(self)} could not judge")
            raise raised from error

    def _expectation(self, evaluable: Evaluable) -> Any:
        """The entry's expectation, else the adapter's, else the one in the metadata; None counts as none."""
        if evaluable.expectation is not UNSET and evaluable.expectation is not None:
            return evaluable.expectation
        if self._expected is not UNSET:
            return self._expected
        return (evaluable.eval_metadata or {}).get(self._expected_key)

    def _evaluation(self, score: Any) -> Evaluation:
        if isinstance(failure := getattr(score, "error", None), Exception):
            raise failure
        metadata = dict(getattr(score, "metadata", None) or {})
        name = getattr(score, "name", None) or self.name
        details = {**metadata, "scorer_name": name}
        if score.score is None:
            return Evaluation(0.0, "Evaluation skipped (score is None)", {**details, "skipped": True})
        number = finite_score(score.score)
        if number is None:
            raise ValueError(f"{name} returned the score {score.score}")
        rationale = metadata.get("rationale")
        reason = rationale if isinstance(rationale, str) and rationale.strip() else f"{name}: {score.score}"
        return Evaluation(number, reason, details)
