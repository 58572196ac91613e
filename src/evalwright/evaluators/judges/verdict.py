"""One judge's reply about assertions and a rubric, and whether it passes (evalh 2.0, `llm_judge`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from evalwright.evaluators.judges.replies import BadReply, number_in, only_object, reason_in, truth_in

__all__ = ["Assertion", "Criteria", "Rubric", "RubricScale", "Verdict", "needed"]

_K_OF_N = re.compile(r"\s*k_of_n\s*=\s*(\d{1,9})\s*")


class Assertion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement that holds for a good answer."""

    text: str
    required: bool = True


class RubricScale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The range of a rubric's score, both ends included."""

    min: float = 1
    max: float = 5


class Rubric(NamedTuple):
    """A text that says how to score, and the minimum score that passes."""

    text: str
    scale: RubricScale
    threshold: float


class Verdict(NamedTuple):
    """One judge's reply: whether each assertion holds and why, and the rubric's score and why."""

    holds: list[bool]
    reasons: list[str]
    score: float | None = None
    rubric_reason: str = ""


def needed(pass_when: str) -> int | None:
    """The N of `k_of_n=N`, or None for anything else."""
    match = _K_OF_N.fullmatch(pass_when)
    return int(match[1]) if match else None


class Criteria(NamedTuple):
    """The assertions and the rubric (at least one of the two), and when they pass."""

    assertions: Sequence[Assertion]
    pass_when: str
    rubric: Rubric | None
    lenient: bool = False
    """Replies are read as by evalh: a missing `passed` is false, and true as a score is 1."""

    def read(self, text: str) -> Verdict:
        """What a reply says. Assertions are matched by position. Raises BadReply."""
        reply = only_object(text, ("assertions", "score"))
        holds, reasons = self._assertions_in(reply)
        if self.rubric is None:
            return Verdict(holds, reasons)
        scale = self.rubric.scale
        score = number_in(reply.get("score"), "'score'", scale.min, scale.max, truths=self.lenient)
        return Verdict(holds, reasons, score, reason_in(reply.get("rubric_reason")))

    def _assertions_in(self, reply: dict[str, Any]) -> tuple[list[bool], list[str]]:
        if not self.assertions:
            return [], []
        items, count = reply.get("assertions"), len(self.assertions)
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise BadReply("expected 'assertions' to be a list of JSON objects")
        if len(items) != count:
            raise BadReply(f"expected {count} verdicts in 'assertions', found {len(items)}")
        holds = [self._holds(item.get("passed"), f"'assertions[{i}].passed'") for i, item in enumerate(items)]
        return holds, [reason_in(item.get("reason")) for item in items]

    def _holds(self, value: Any, what: str) -> bool:
        return False if value is None and self.lenient else truth_in(value, what)

    def passes(self, verdict: Verdict) -> bool:
        """Whether the assertions pass together and the score reaches its threshold."""
        if self.rubric is not None and (verdict.score is None or verdict.score < self.rubric.threshold):
            return False
        return not self.assertions or self._hold(verdict.holds)

    def _hold(self, holds: Sequence[bool]) -> bool:
        required = [held for held, assertion in zip(holds, self.assertions, strict=True) if assertion.required]
        if self.pass_when == "all":
            return all(required)
        if self.pass_when == "any":
            return any(required or holds)
        least = needed(self.pass_when)
        return sum(holds) * 2 > len(holds) if least is None else sum(holds) >= least

    def score(self, verdict: Verdict) -> float | None:
        """The share of assertions that hold; with only a rubric, its score."""
        return sum(verdict.holds) / len(verdict.holds) if verdict.holds else verdict.score

    def detail(self, verdict: Verdict) -> dict[str, Any]:
        """Each assertion and the rubric, as a result stores them."""
        detail: dict[str, Any] = {}
        if self.assertions:
            detail["assertions"] = [
                {"text": assertion.text, "required": assertion.required, "passed": held, "reason": reason}
                for assertion, held, reason in zip(self.assertions, verdict.holds, verdict.reasons, strict=True)
            ]
        if self.rubric is not None:
            threshold = self.rubric.threshold
            detail["rubric"] = {"score": verdict.score, "reason": verdict.rubric_reason, "threshold": threshold}
        return detail

    def reason(self, verdict: Verdict) -> str:
        """What does not hold, in the judge's words."""
        parts = [
            f"{assertion.text!r} does not hold" + (f": {why}" if why else "")
            for assertion, held, why in zip(self.assertions, verdict.holds, verdict.reasons, strict=True)
            if not held
        ]
        rubric = self.rubric
        if rubric is not None and verdict.score is not None:
            relation = "at least" if verdict.score >= rubric.threshold else "below"
            why = f": {verdict.rubric_reason}" if verdict.rubric_reason else ""
            parts.append(f"score {verdict.score:g}, {relation} {rubric.threshold:g}{why}")
        return "; ".join(parts)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply."""
        properties: dict[str, Any] = {}
        if self.assertions:
            item = _object(text={"type": "string"}, passed={"type": "boolean"}, reason={"type": "string"})
            properties["assertions"] = {"type": "array", "items": item}
        if self.rubric is not None:
            properties |= {"score": {"type": "number"}, "rubric_reason": {"type": "string"}}
        return _object(**properties)


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
