"""Assertions on what a call used."""

from __future__ import annotations

from evalwright.errors import EvaluatorError
from evalwright.files.numbers import is_number
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.model.result import Evaluation

__all__ = ["cost_limit", "latency_limit"]


def latency_limit(question: AssertionInput) -> Evaluation:
    """The call took at most `threshold` milliseconds."""
    limit, took = _limit(question, "milliseconds"), _latency(question)
    if took is None:
        raise EvaluatorError("the recording has no latency", "not_measured")
    return question.of(
        took <= limit, f"{took} ms, the limit is {limit:g} ms", f"{took} ms, expected more than {limit:g} ms"
    )


def _latency(question: AssertionInput) -> float | None:
    """The time that a provider itself states; else the one that was measured."""
    stated = question.trace.extra.get("promptfoo", {}).get("remarks", {}).get("latencyMs")
    return stated if is_number(stated) else question.trace.latency_ms


def cost_limit(question: AssertionInput) -> Evaluation:
    """The call cost at most `threshold` US dollars."""
    limit, spent = _limit(question, "US dollars"), question.trace.metrics.cost_usd
    if spent is None:
        raise EvaluatorError("the provider does not say what the call cost", "not_measured")
    what = f"{spent:g} US dollars"
    return question.of(spent <= limit, f"{what}, the limit is {limit:g}", f"{what}, expected more than {limit:g}")


def _limit(question: AssertionInput, unit: str) -> float:
    if question.threshold is None:
        raise EvaluatorError(f"{question.kind} needs a threshold in {unit}", "bad_value")
    return question.threshold
