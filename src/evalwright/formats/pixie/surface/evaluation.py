"""A score with its reason, and calling evaluators for it."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, SupportsFloat

from evalwright.formats.pixie.observer import noted
from evalwright.targets.threads import Threads

__all__ = ["Evaluation", "Evaluator", "could_not_judge", "evaluate", "evaluate_unrecorded", "finite_score", "label_of"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Evaluation:
    """A score from 0 to 1 and why."""

    score: float
    reasoning: str
    details: dict[str, Any] = field(default_factory=dict)


class Evaluator(Protocol):
    """Anything that judges an evaluable; it may be asynchronous, and may take `trace`."""

    def __call__(self, evaluable: Any) -> Any: ...


async def evaluate(evaluator: Any, evaluable: Any, *, trace: Any = None) -> Evaluation:
    """What `evaluator` returns, with its score clamped to 0 to 1; a synchronous one runs in a thread of its own.

    Its exceptions are passed on unchanged. Raises TypeError if it returns no score.
    """
    with noted(getattr(evaluable, "eval_input", None), [evaluator], evaluable=evaluable) as note:
        try:
            result = await evaluate_unrecorded(evaluator, evaluable, trace=trace)
        except BaseException as error:
            note.outcomes = [error]
            raise
        note.outcomes = [result]
        return result


def label_of(evaluator: Any) -> str:
    """The label of an evaluator: a pre-made one's as in datasets, otherwise its name or its class's."""
    made: tuple[str, Any] | None = getattr(evaluator, "made_by", None)
    name = made[0] if made else getattr(evaluator, "name", None) or getattr(evaluator, "__name__", None)
    return name if isinstance(name, str) else type(evaluator).__name__


def could_not_judge(evaluation: Evaluation) -> bool:
    """Whether a score of 0 stands for an exception inside a pre-made evaluator."""
    return {"error", "traceback"} <= (evaluation.details or {}).keys()


async def evaluate_unrecorded(evaluator: Any, evaluable: Any, *, trace: Any = None) -> Evaluation:
    """`evaluate` without a note of it."""
    keywords = {"trace": trace} if _takes_trace(evaluator) else {}
    if _is_asynchronous(evaluator):
        returned = await evaluator(evaluable, **keywords)
    else:
        threads = Threads()
        try:
            returned = await threads.call(lambda: evaluator(evaluable, **keywords))
        finally:
            threads.close()
        if inspect.isawaitable(returned):
            returned = await returned
    return _with_bounded_score(_evaluation(returned), evaluator)


def _is_asynchronous(evaluator: Any) -> bool:
    return inspect.iscoroutinefunction(evaluator) or inspect.iscoroutinefunction(
        getattr(type(evaluator), "__call__", None)  # noqa: B004 - the method, not whether there is one
    )


def _takes_trace(evaluator: Any) -> bool:
    try:
        parameters = inspect.signature(evaluator).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "trace" or p.kind is p.VAR_KEYWORD for p in parameters)


def _evaluation(returned: Any) -> Evaluation:
    if isinstance(returned, Evaluation):
        return returned
    if isinstance(returned, Mapping) and "score" in returned:
        return Evaluation(returned["score"], str(returned.get("reasoning") or ""), dict(returned.get("details") or {}))
    if hasattr(returned, "score"):
        reason = str(getattr(returned, "reasoning", None) or "")
        return Evaluation(returned.score, reason, dict(getattr(returned, "details", None) or {}))
    if isinstance(returned, SupportsFloat):
        return Evaluation(returned, "")  # type: ignore[arg-type]  # becomes a float below
    raise TypeError(f"the evaluator returned {type(returned).__name__}, expected an Evaluation")


def finite_score(score: Any) -> float | None:
    """The score as a number, from truth values and the numbers of other libraries, too; None for anything else."""
    try:
        number = float(score) if isinstance(score, SupportsFloat) else math.nan
    except (TypeError, ValueError, OverflowError):  # an array of several, for instance
        return None
    return number if math.isfinite(number) else None


def _with_bounded_score(evaluation: Evaluation, evaluator: Any) -> Evaluation:
    score = finite_score(evaluation.score)
    if score is None:
        raise TypeError(f"the evaluator returned the score {evaluation.score!r}, expected a number from 0 to 1")
    if not 0 <= score <= 1:
        _log.warning("%s: the score %r is outside of 0 to 1 and was clamped", label_of(evaluator), score)
    return replace(evaluation, score=min(1.0, max(0.0, score)))
