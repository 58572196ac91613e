"""Scales of judges that reply with a score or a verdict, and how their replies are read (NorthStar 0.1)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from evalwright.evaluators.judges.replies import keys_once, number_in, only_object
from evalwright.files.key_paths import as_written

__all__ = ["Reading", "Scale", "Scoring", "scale_problem"]

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_MOST_TRIES = 500
"""Opening braces of a reply that are tried as JSON: each costs a scan, and no real reply has this many."""
_LONGEST = 200_000
_TRUTHS = {
    **dict.fromkeys(("true", "yes", "on", "t", "y", "1"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n", "0"), False),
}


class Scoring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a judge scores. Without a passing score, `binary` passes at the top of its scale."""

    mode: Literal["binary", "numeric"]
    min_score: float = 0.0
    max_score: float = 1.0
    passing_score: float | None = None
    labels: dict[str, str] | None = None
    """Labels by score."""


def scale_problem(scoring: Scoring) -> str | None:
    """What is wrong with a scale; None if nothing is."""
    if not scoring.max_score > scoring.min_score:
        return "max_score must be greater than min_score"
    if wrong := [key for key in scoring.labels or () if not _is_score(key)]:
        return f"labels must have scores as keys, found {as_written(wrong[0])}"
    if scoring.mode == "binary":
        return None  # the verdict decides, whatever its passing score is
    if scoring.passing_score is None:
        return "passing_score is required for numeric scoring"
    if not scoring.min_score <= scoring.passing_score <= scoring.max_score:
        return "passing_score must be within min_score and max_score"
    return None


def _is_score(key: str) -> bool:
    try:
        return math.isfinite(float(key))
    except ValueError:
        return False


class Reading(NamedTuple):
    """A judge's reply, read; a verdict is the upper or lower end of its scale."""

    raw: float
    reason: str
    feedback: str
    label: str | None
    confidence: float | None
    evidence: list[str]


class Scale(NamedTuple):
    """A scale with its passing score."""

    mode: str
    low: float
    high: float
    passing: float
    labels: dict[float, str]

    @classmethod
    def of(cls, scoring: Scoring | None, threshold: float) -> Scale:
        """The scale of a configuration; without one, a number from 0 to 1 that passes at `threshold`."""
        if scoring is None:
            return cls("numeric", 0.0, 1.0, threshold, {})
        passing = scoring.max_score if scoring.passing_score is None else scoring.passing_score
        labels = {float(key): label for key, label in (scoring.labels or {}).items()}
        return cls(scoring.mode, scoring.min_score, scoring.max_score, passing, labels)

    def share(self, raw: float) -> float:
        """A score on the scale as a number from 0 to 1."""
        return (raw - self.low) / (self.high - self.low)

    def passed(self, reading: Reading) -> bool:
        return reading.raw >= (self.high if self.mode == "binary" else self.passing)

    def label(self, reading: Reading) -> str:
        plain = "pass" if self.passed(reading) else "fail"
        if self.mode == "binary":
            return reading.label or plain
        return self.labels.get(reading.raw) or reading.label or plain

    def wording(self) -> str:
        """The shape of the reply, in words."""
        verdict = '"passed": true or false' if self.mode == "binary" else f'"score": a number {self._range()}'
        return (
            f'{{{verdict}, "reason": why in a sentence or two, "feedback": what to do better, "label": a short text or '
            'null, "confidence": a number from 0 to 1 or null, "evidence": a list of quotes}'
        )

    def _range(self) -> str:
        return f"from {self.low:g} to {self.high:g} (it passes from {self.passing:g})"

    def schema(self) -> dict[str, Any]:
        """The shape of the reply as a JSON Schema."""
        verdict = ("passed", {"type": "boolean"}) if self.mode == "binary" else ("score", {"type": "number"})
        properties = {
            verdict[0]: verdict[1],
            "reason": {"type": "string"},
            "feedback": {"type": "string"},
            "label": {"type": ["string", "null"]},
            "confidence": {"type": ["number", "null"]},
            "evidence": {"type": "array", "items": {"type": "string"}},
        }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def read(self, text: str, *, as_original: bool = False) -> Reading:
        """The verdict in a reply. Raises ValueError if it has none, or several that differ.

        A judge may quote a verdict from the text that it judges, which must not decide. `as_original` reads like
        NorthStar 0.1: the first object of the requested shape decides, and true is the score 1.
        """
        if not as_original:
            return self._reading(only_object(_ANSI.sub("", text), (self._answer_key,)), truths=False)
        candidates = list(_objects(text))
        problem = "there is no JSON object in the reply"
        for i, candidate in enumerate(candidates):
            try:
                return self._reading(candidate, truths=True)
            except ValueError as error:
                problem = problem if i else str(error)
        raise ValueError(problem)

    @property
    def _answer_key(self) -> str:
        return "passed" if self.mode == "binary" else "score"

    def _reading(self, fields: dict[str, Any], *, truths: bool) -> Reading:
        strange = fields.keys() - {self._answer_key, "reason", "feedback", "label", "confidence", "evidence"}
        if strange:
            raise ValueError(f"unknown key {min(strange)!r}")
        if self.mode == "binary":
            raw = self.high if _truth(fields.get("passed")) else self.low
        else:
            raw = number_in(fields.get("score"), "'score'", self.low, self.high, truths=truths)
        label, confidence, evidence = fields.get("label"), fields.get("confidence"), fields.get("evidence", [])
        if label is not None and not isinstance(label, str):
            raise ValueError("label: expected text or null")
        if not isinstance(evidence, list) or not all(isinstance(item, str) for item in evidence):
            raise ValueError("evidence: expected a list of texts")
        sure = None if confidence is None else number_in(confidence, "'confidence'", 0.0, 1.0, truths=truths)
        return Reading(raw, _text(fields, "reason"), _text(fields, "feedback"), label, sure, evidence)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a reply, outer ones first. Raises ValueError for a repeated key."""
    text = _unfenced(_ANSI.sub("", text[:_LONGEST]).strip())
    position = -1
    for _ in range(_MOST_TRIES):
        position = text.find("{", position + 1)
        if position < 0:
            return
        try:
            value, _ = _decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            continue
        yield value


_decoder = json.JSONDecoder(object_pairs_hook=keys_once)


def _unfenced(text: str) -> str:
    lines = text.split("\n")
    if lines and lines[0].startswith("```"):
        lines = lines[1:]
        if lines and lines[-1].strip() == "```":
            lines = lines[:-1]
    return "\n".join(lines).strip()


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key}: expected text that is not blank, found {as_written(value)}")
    return value.strip()


def _truth(value: Any) -> bool:
    if isinstance(value, str) and value.strip().lower() in _TRUTHS:
        return _TRUTHS[value.strip().lower()]
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return bool(value)
    raise ValueError(f"passed: expected true or false, found {as_written(value)}")
