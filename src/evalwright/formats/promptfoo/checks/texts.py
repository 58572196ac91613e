"""Assertions on texts."""

from __future__ import annotations

import json
import re
from typing import Any

from evalwright.errors import EvaluatorError, counted
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.evaluator import AssertionInput, expected_or_forbidden
from evalwright.formats.promptfoo.values import as_javascript, compact_json, template_text
from evalwright.formats.shared.javascript.characters import CLASSES, InvalidPattern
from evalwright.model.result import Evaluation

__all__ = [
    "contains",
    "contains_all",
    "contains_any",
    "equals",
    "icontains",
    "icontains_all",
    "icontains_any",
    "listed_texts",
    "regex",
    "starts_with",
    "word_count",
]  # fmt: skip

_SHOWN = 120
_FIELD = re.compile(r'"((?:\\["\\]|""|[^"])*+)"\s*(?=,|\Z)|([^",][^,]*)')
_WORD = re.compile(f"[^{CLASSES['s']}]+")
_ESCAPED = re.compile(r'\\(["\\])|""')


def contains(question: AssertionInput) -> Evaluation:
    """The text contains the value."""
    value = _text(question)
    return question.of(value in question.text, *_lacks(f"{value!r:.{_SHOWN}}"))


def icontains(question: AssertionInput) -> Evaluation:
    """The same, both in lower case."""
    value = _text(question)
    return question.of(value.lower() in question.text.lower(), *_lacks(f"{value!r:.{_SHOWN}}"))


def starts_with(question: AssertionInput) -> Evaluation:
    """The text begins with the value."""
    value = question.value
    if not isinstance(value, str) or not value:
        raise _needs(question, "a text")
    start = f"begin with {value!r:.{_SHOWN}}"
    difference = f"the output does not {start}: {question.text[:_SHOWN]!r}"
    return question.of(question.text.startswith(value), difference, f"the output must not {start}")


def contains_any(question: AssertionInput) -> Evaluation:
    """The text contains an element of the value."""
    values = _texts(question)
    return question.of(any(value in question.text for value in values), *_lacks(f"any of {values!r:.{_SHOWN}}"))


def contains_all(question: AssertionInput) -> Evaluation:
    """The text contains every element of the value."""
    return _contains_all(question, question.text, _texts(question))


def icontains_any(question: AssertionInput) -> Evaluation:
    """`contains-any`, in lower case."""
    text, values = question.text.lower(), _texts(question)
    return question.of(any(value.lower() in text for value in values), *_lacks(f"any of {values!r:.{_SHOWN}}"))


def icontains_all(question: AssertionInput) -> Evaluation:
    """`contains-all`, in lower case."""
    return _contains_all(question, question.text.lower(), [text.lower() for text in _texts(question)])


def equals(question: AssertionInput) -> Evaluation:
    """The text equals the value; mappings and lists are compared with the parsed text."""
    value = question.value
    if "value" not in question.assertion:
        raise _needs(question, "what the output must equal")
    if isinstance(value, (dict, list)):
        output = question.output if isinstance(question.output, (dict, list)) else _parsed_json(question.text)
        return question.of(_is_equal(output, value), *_is_not(compact_json(value)[:_SHOWN]))
    return question.of(question.text == _value_text(value), *_is_not(f"{_value_text(value)!r:.{_SHOWN}}"))


def regex(question: AssertionInput) -> Evaluation:
    """The pattern, a JavaScript regular expression, is found."""
    from evalwright.formats.shared.javascript.patterns import pattern_of

    value = question.value
    if not isinstance(value, str) or not value:
        raise _needs(question, "a text")
    try:
        is_found = pattern_of(value).found_in(question.text)
    except InvalidPattern as error:
        return Evaluation(False, 0.0, f"the pattern {value!r:.{_SHOWN}} is invalid: {error}", {"unusable": True})
    pattern = f"the pattern {value!r:.{_SHOWN}}"
    return question.of(is_found, f"the output does not match {pattern}", f"the output matches {pattern}")


def word_count(question: AssertionInput) -> Evaluation:
    """The number of words is the value, or lies within its `min` and `max`."""
    count, value = len(_WORD.findall(question.text)), question.value
    bounds = [value.get("min"), value.get("max")] if isinstance(value, dict) else [value, value]
    try:
        low, high = (None if bound is None else _number(bound) for bound in bounds)
    except ValueError:
        low = high = None
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        raise _needs(question, "a number, or a mapping with min and max")
    fits = (low is None or low <= count) and (high is None or count <= high)
    return question.of(fits, *expected_or_forbidden(counted(count, "word"), _within(low, high)))


def _within(low: float | None, high: float | None) -> str:
    if low == high:
        return f"{low:g}"
    limits = ("at least", low), ("at most", high)
    return " and ".join(f"{words} {limit:g}" for words, limit in limits if limit is not None)


def _number(value: Any) -> float:
    """A number, also one in a text. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError
    return float(value)


def _lacks(what: str) -> tuple[str, str]:
    return f"the output does not contain {what}", f"the output contains {what}"


def _is_not(what: str) -> tuple[str, str]:
    return f"expected {what}", f"the output is {what}"


def _text(question: AssertionInput) -> str:
    value = question.value
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise _needs(question, "a text or a number")
    return _value_text(value)


def _texts(question: AssertionInput) -> list[str]:
    if not (values := listed_texts(question.value)):
        raise _needs(question, "a list of texts, or texts between commas")
    return values


def listed_texts(value: Any) -> list[str]:
    """The texts to look for: those in a list, or those between commas; none if quotes in the text are unbalanced."""
    if isinstance(value, str):
        return _between_commas(value)
    return [_value_text(item) for item in value] if isinstance(value, list) else []


def _between_commas(text: str) -> list[str]:
    """Nothing between two commas is no text, `""` is an empty one. A quoted text keeps its spaces and commas."""
    cells: list[str] = []
    at = _after_gap(text, 0)
    while at < len(text):
        field = _FIELD.match(text, at)
        if field is None:
            return []
        quoted, plain = field.groups()
        cells.append(plain.strip() if quoted is None else _ESCAPED.sub(lambda escape: escape[1] or '"', quoted))
        at = _after_gap(text, field.end())
    return cells


def _after_gap(text: str, at: int) -> int:
    while at < len(text) and (text[at] == "," or text[at].isspace()):
        at += 1
    return at


def _needs(question: AssertionInput, what: str) -> EvaluatorError:
    shown = "none" if question.value in (None, "") else as_written(question.value)
    return EvaluatorError(f"{question.kind} needs a value: expected {what}, found {shown}", "bad_value")


def _value_text(value: Any) -> str:
    return "null" if value is None else template_text(value)


def _contains_all(question: AssertionInput, text: str, values: list[str]) -> Evaluation:
    lacking = [value for value in values if value not in text]
    present = f"the output contains all of {values!r:.{_SHOWN}}"
    evaluation = question.of(not lacking, f"missing: {', '.join(lacking)}", present)
    evaluation.hits, evaluation.misses = [phrase for phrase in values if phrase in text], lacking
    return evaluation


def _parsed_json(text: str) -> Any:
    try:
        return as_javascript(json.loads(text))
    except ValueError:
        return None


def _is_equal(left: Any, right: Any) -> bool:
    return bool(type(left) is type(right) and left == right)
