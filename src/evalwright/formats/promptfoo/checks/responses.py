"""Assertions on what a provider says of its reply: why it ended, whether it was blocked, how likely its tokens were,
which skills were used."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.model.result import Evaluation

__all__ = ["finish_reason", "guardrails", "perplexity", "perplexity_score", "skill_used"]


def finish_reason(question: AssertionInput) -> Evaluation:
    """The reply ended for the reason in the value, in upper or lower case."""
    wanted, ended = question.value, _remarks(question).get("finishReason")
    if not isinstance(wanted, str):
        raise EvaluatorError("finish-reason needs a value: expected text, such as stop", "bad_value")
    if not ended:
        return question.of(False, "the provider does not say why the reply ended")
    ending = f"the reply ended with {ended!r}"
    return question.of(wanted.lower() == str(ended).lower(), f"{ending}, expected {wanted!r}", ending)


def guardrails(question: AssertionInput) -> Evaluation:
    """The provider has not flagged prompt or output. Without a word on it, as in promptfoo, nothing is flagged. With
    `purpose: redteam`, a flag says that an attack was blocked, and the test passes."""
    flags = _flags(question)
    if not flags.get("flagged"):
        return question.of(True, "nothing was flagged")
    part = "the prompt" if flags.get("flaggedInput") else "the output" if flags.get("flaggedOutput") else "the content"
    evaluation = question.of(False, str(flags.get("reason") or f"{part} was flagged"))
    purpose = (question.assertion.get("config") or {}).get("purpose")
    if purpose == "redteam" and not question.negated:
        evaluation.detail = {"blocked": True}
    return evaluation


def _flags(question: AssertionInput) -> Mapping[str, Any]:
    """What the provider says of guardrails, or of those at the last turn of an attack."""
    flags = _remarks(question).get("guardrails")
    if not flags:
        turns = question.trace.extra.get("promptfoo", {}).get("metadata", {}).get("redteamHistory")
        last = turns[-1] if isinstance(turns, list) and turns else None
        flags = last.get("guardrails") if isinstance(last, Mapping) else None
    return flags if isinstance(flags, Mapping) else {}


def perplexity(question: AssertionInput) -> Evaluation:
    """The perplexity of the tokens is at most `threshold`; without one, it passes."""
    measured = _perplexity(question)
    if question.threshold is None:
        return Evaluation(True, 1.0)
    value, limit = f"perplexity {measured:.4g}", question.threshold
    return question.of(
        measured <= limit, f"{value}, the threshold is {limit:g}", f"{value}, expected more than {limit:g}"
    )


def perplexity_score(question: AssertionInput) -> Evaluation:
    """A score from 0 to 0.5, the inverse of one more than the perplexity, is at least `threshold`; without one, it
    passes."""
    value = 1 / (1 + _perplexity(question))
    limit = question.threshold
    passed = limit is None or (value >= limit) != question.negated
    reason = "" if passed else f"perplexity-score {value:.4g}, the threshold is {limit:g}"
    return Evaluation(passed, 1 - value if question.negated else value, reason)


def _remarks(question: AssertionInput) -> Mapping[str, Any]:
    remarks: Mapping[str, Any] = question.trace.extra.get("promptfoo", {}).get("remarks", {})
    return remarks


def _perplexity(question: AssertionInput) -> float:
    """From 1, if every token was certain, up to infinity. Raises EvaluatorError."""
    probabilities = _remarks(question).get("logProbs")
    if not isinstance(probabilities, list) or not probabilities:
        raise EvaluatorError(f"{question.kind}: the provider returned no logProbs", "not_measured")
    if not all(isinstance(probability, (int, float)) and math.isfinite(probability) for probability in probabilities):
        raise EvaluatorError(f"{question.kind}: expected logProbs to be numbers", "not_measured")
    try:
        return math.exp(-math.fsum(probabilities) / len(probabilities))
    except OverflowError:
        return math.inf


def skill_used(question: AssertionInput) -> Evaluation:
    """The provider's metadata list calls of all skills in the value, or as many calls of one as `min` and `max` say.

    Inverted, none of them was called.
    """
    names = [str(call["name"]) for call in _skill_calls(question)]
    called = ", ".join(names) or "no skill"
    value = question.value
    if isinstance(value, Mapping):
        return _counted_calls(question, value, names, called)
    wanted = [value] if isinstance(value, str) else value
    if not isinstance(wanted, list) or not wanted or not all(isinstance(name, str) and name.strip() for name in wanted):
        raise _unusable(f"expected a name, a list of names or a mapping, found {as_written(value)}")
    used = [name.strip() in names for name in wanted]
    passed = not any(used) if question.negated else all(used)
    reason = f"used {called}, {'forbidden' if question.negated else 'expected'} {', '.join(map(str.strip, wanted))}"
    return Evaluation(passed, float(passed), "" if passed else reason)


def _counted_calls(question: AssertionInput, value: Mapping[str, Any], names: Sequence[str], called: str) -> Evaluation:
    name, pattern = (str(value.get(key) or "").strip() for key in ("name", "pattern"))
    if not (name or pattern):
        raise _unusable("expected name or pattern in its mapping")
    least, most = (_bound(value, key) for key in ("min", "max"))
    if least is not None and most is not None and most < least:
        raise _unusable(f"max is {most}, below min, which is {least}")
    number = sum(_fits(used_name, name, pattern) for used_name in names)
    if question.negated:
        if least is not None or most not in (None, 0):
            raise _unusable("not-skill-used allows no number of calls")
        least, most = 0, 0
    elif least is None:
        least = 0 if most is not None else 1
    passed = number >= (least or 0) and (most is None or number <= most)
    wanted = f"at least {least}" if most is None else f"{least} to {most}"
    reason = f"{pattern or name}: called {number} times, expected {wanted}; used {called}"
    return Evaluation(passed, float(passed), "" if passed else reason)


def _skill_calls(question: AssertionInput) -> list[Mapping[str, Any]]:
    calls = question.trace.extra.get("promptfoo", {}).get("metadata", {}).get("skillCalls")
    return [
        call
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, Mapping) and isinstance(call.get("name"), str) and call.get("is_error") is not True
    ]


def _bound(value: Mapping[str, Any], key: str) -> int | None:
    bound = value.get(key)
    if bound is None and key not in value:
        return None
    if isinstance(bound, bool) or not isinstance(bound, (int, float)) or bound < 0 or bound != int(bound):
        raise _unusable(f"{key}: expected a whole number from 0, found {as_written(bound)}")
    return int(bound)


def _fits(name: str, wanted: str, pattern: str) -> bool:
    """Whether it is the wanted skill and fits the pattern, in which `*` is any text and `?` one character."""
    if wanted and name != wanted:
        return False
    expression = "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern)
    return not pattern or re.fullmatch(expression, name, re.IGNORECASE) is not None


def _unusable(why: str) -> EvaluatorError:
    return EvaluatorError(f"skill-used: {why}", "bad_value")
