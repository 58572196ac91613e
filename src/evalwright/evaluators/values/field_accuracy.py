"""Fields of a JSON answer compared with the expected ones (AgentEvals 1.0, `field_accuracy`)."""

from __future__ import annotations

import calendar
import json
import math
import re
import sys
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from evalwright.errors import shorten
from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.values.equality import deeply_equal
from evalwright.evaluators.values.json_text import as_text, loaded_json
from evalwright.files.numbers import is_number
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.sandbox.patterns import search

__all__ = ["Field", "FieldAccuracy", "same_day"]

_MOST_LISTED = 4
_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_STEP = re.compile(r"[^.\[\]]+")
_MONTHS = {name.lower(): i for i, name in enumerate(calendar.month_abbr) if name}
_WEEKDAY = re.compile(r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+", re.IGNORECASE)
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)")
_NAMED = re.compile(r"(\d{1,2})[-/ ]([A-Za-z]{3})[A-Za-z]*\.?,?[-/ ](\d{4})(?!\d)")
_MONTH_FIRST = re.compile(r"([A-Za-z]{3})[A-Za-z]*\.?\s+(\d{1,2}),?\s+(\d{4})(?!\d)")
_NUMERIC = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?!\d)")
_SHORT = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{2})(?!\d)")
_ABSENT: Any = object()


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One field: `path` with dots and `[n]`, and how it is compared."""

    path: Annotated[str, msgspec.Meta(min_length=1)]
    match: Literal["exact", "numeric_tolerance", "date", "contains", "regex"] = "exact"
    required: bool = True
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    tolerance: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    relative: bool = False
    formats: list[str] = []


class _Outcome(NamedTuple):
    path: str
    score: float
    weight: float
    message: str


class FieldAccuracy(msgspec.Struct, frozen=True):
    """The weighted share of fields in which the answer has the expected value."""

    fields: Annotated[list[Field], msgspec.Meta(min_length=1)]
    aggregation: Literal["weighted_average", "all_or_nothing", "minimum"] = "weighted_average"

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        answer, expected = _json_in(trace.output.final_answer or ""), _expected_object(case)
        if answer is _ABSENT:
            return banded(0.0, misses=["the answer is no JSON"])
        if expected is None:
            return banded(0.0, misses=["the case expects no JSON object"])
        outcomes = [
            outcome for field in self.fields if (outcome := _compared_field(field, expected, answer)) is not None
        ]
        hits = [outcome.message for outcome in outcomes if outcome.score]
        misses = [outcome.message for outcome in outcomes if not outcome.score]
        reason = f"{len(hits)}/{len(self.fields)} fields matched"
        return banded(self._score(outcomes), hits[:_MOST_LISTED], misses[:_MOST_LISTED], reason)

    def _score(self, outcomes: Sequence[_Outcome]) -> float:
        if self.aggregation == "all_or_nothing":
            return float(all(outcome.score for outcome in outcomes))
        if self.aggregation == "minimum":
            return min((outcome.score for outcome in outcomes), default=0.0)
        total = sum(outcome.weight for outcome in outcomes)
        return sum(outcome.score * outcome.weight for outcome in outcomes) / total if total else 0.0


def _json_in(text: str) -> Any:
    """The JSON in a text: from the first `{` to the last `}`, or, if there is no object, the text without fences."""
    start, end = text.find("{"), text.rfind("}")
    written = text[start : end + 1] if 0 <= start < end else text.replace("```json", "").replace("```", "").strip()
    try:
        return loaded_json(written)
    except (ValueError, RecursionError):
        return _ABSENT


def _expected_object(case: Case) -> dict[str, Any] | None:
    """The last expected message of the assistant that is or contains an object; else the facts of the case."""
    messages = case.extra.get("expected_messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        content = message.get("content") if isinstance(message, dict) and message.get("role") == "assistant" else None
        parsed = _json_in(content) if isinstance(content, str) else content
        if isinstance(parsed, dict):
            return parsed
    return case.expected.facts or None


def _compared_field(field: Field, expected: dict[str, Any], answer: Any) -> _Outcome | None:
    """None for a field that is left out: not required, and not in the answer."""
    expected_value, actual_value = _at(expected, field.path), _at(answer, field.path)
    if expected_value is _ABSENT:
        return _Outcome(field.path, 1.0, field.weight, f"{field.path}: nothing is expected")
    if actual_value is _ABSENT:
        if not field.required:
            return None
        return _Outcome(field.path, 0.0, field.weight, f"{field.path}: missing, expected {_short_json(expected_value)}")
    score = float(_matches(field, expected_value, actual_value))
    message = f"{field.path}: {_short_json(actual_value)}" + (
        "" if score else f", expected {_short_json(expected_value)}"
    )
    return _Outcome(field.path, score, field.weight, message)


def _at(value: Any, path: str) -> Any:
    for step in _STEP.findall(path):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _ABSENT
    return value


def _matches(field: Field, expected: Any, actual: Any) -> bool:
    if field.match == "numeric_tolerance":
        a, b = _number(actual), _number(expected)
        if a is None or b is None:
            return False
        scale = abs(b) if field.relative and b else 1.0
        return abs(a - b) / scale <= field.tolerance
    if field.match == "date":
        return same_day(actual, expected, field.formats)
    if field.match == "contains":
        return as_text(expected) in as_text(actual)
    if field.match == "regex":
        return search(re.compile(as_text(expected)), as_text(actual)) is not None
    return deeply_equal(expected, actual)


def _number(value: Any) -> float | None:
    if is_number(value):
        return float(value) if abs(value) <= sys.float_info.max else math.inf if value > 0 else -math.inf
    match = _NUMBER.match(value) if isinstance(value, str) else None
    return float(match[0]) if match else None


def same_day(a: Any, b: Any, formats: Sequence[str] = ()) -> bool:
    """Whether both are the same calendar day, ignoring the time of day; time zones are not converted."""
    one, other = _day(a, formats), _day(b, formats)
    return one is not None and one == other


def _day(value: Any, formats: Sequence[str]) -> date | None:
    text = _WEEKDAY.sub("", value.strip(), count=1) if isinstance(value, str) else ""
    try:
        if match := _YEAR_FIRST.match(text):
            return date(int(match[1]), int(match[3]), int(match[4]))
        if match := _NAMED.match(text):
            return date(int(match[3]), _MONTHS[match[2].lower()], int(match[1]))
        if match := _MONTH_FIRST.match(text):
            return date(int(match[3]), _MONTHS[match[1].lower()], int(match[2]))
        if match := _NUMERIC.match(text) or _SHORT.match(text):
            return _ordered_date(int(match[1]), int(match[2]), _full_year(match[3]), formats)
    except (ValueError, KeyError):
        pass
    return None


def _full_year(digits: str) -> int:
    """Two digits are a year from 1950 to 2049, as JavaScript reads them."""
    year = int(digits)
    return year if len(digits) > 2 else year + (2000 if year < 50 else 1900)


def _ordered_date(first: int, second: int, year: int, formats: Sequence[str]) -> date:
    """A number above 12 is the day; if there is none, the month comes first, unless formats are named that begin with
    the day, and none that begins with the month."""
    beginnings = {name.strip()[:1].upper() for name in formats}
    day_first = "D" in beginnings and "M" not in beginnings
    if first > 12 or (second <= 12 and day_first):
        return date(year, second, first)
    return date(year, first, second)


def _short_json(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), 80)
