"""Several judges, or one judge several times: their joint decision and their agreement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from evalwright.errors import EvaluatorError, Problem
from evalwright.evaluators.judges.calls import JudgeOutcome, JudgeSettings, model_problems

__all__ = ["Panel", "agreeing_share", "first_error", "majority", "panel_problems"]

T = TypeVar("T")


class Panel(JudgeSettings, frozen=True, kw_only=True):
    """The judges: one `model` or several `models`, each called `samples` times."""

    model: str | None = None
    models: list[str] | None = None
    samples: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1

    @property
    def planned_calls(self) -> list[tuple[str, int]]:
        """Each call as its model and the number of its repeat."""
        return [(model, repeat) for model in self.judges for repeat in range(self.samples)]

    @property
    def judges(self) -> list[str]:
        return self.models or [self.model or ""]

    @property
    def label(self) -> str:
        return ", ".join(self.judges)


def panel_problems(values: Mapping[str, Any]) -> list[Problem]:
    """Problems of the models in a panel's configuration."""
    model, models = values.get("model"), values.get("models")
    if model is None and models is None:
        message = "the required key 'model' is missing, expected a string (or 'models', a list of strings)"
        return [Problem("", message, key="model")]
    if model is not None and models is not None:
        return [Problem("", "expected 'model' or 'models', found both", key="models")]
    if models == []:
        return [Problem("", "'models' must be a non-empty list of strings", key="models")]
    if isinstance(models, list) and len(set(models)) < len(models):
        return [Problem("", "'models' names a model twice; 'samples' asks each several times", key="models")]
    named = [("model", model)] if model is not None else []
    if isinstance(models, list):
        named += [(f"models[{i}]", name) for i, name in enumerate(models)]
    return model_problems(values, named)


def majority(outcomes: Sequence[JudgeOutcome[T]], passes: Callable[[T], bool]) -> bool:
    """Whether more than half of all judges pass it.

    Raises the first judge's error if the judges without a verdict could change the decision.
    """
    votes = [passes(outcome.value) for outcome in outcomes if outcome.value is not None]
    if sum(votes) * 2 > len(outcomes):
        return True
    missing = len(outcomes) - len(votes)
    if (sum(votes) + missing) * 2 <= len(outcomes):
        return False
    raise first_error(outcomes)


def first_error(outcomes: Sequence[JudgeOutcome[Any]]) -> EvaluatorError:
    """The first error among the judges, of which at least one has one."""
    return next(outcome.error for outcome in outcomes if outcome.error is not None)


def agreeing_share(verdicts: Sequence[object], decision: object) -> float:
    """The share of verdicts that agree with the decision."""
    return sum(verdict == decision for verdict in verdicts) / len(verdicts)
