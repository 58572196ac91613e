"""Values as JavaScript has them: a single type of number, and its ways to turn values into text."""

from __future__ import annotations

import json
import math
import re
from datetime import date
from decimal import Decimal
from operator import is_
from typing import Any

__all__ = [
    "as_it_was",
    "as_javascript",
    "compact_json",
    "dense",
    "json_parse",
    "number_text",
    "pretty_json",
    "recorded",
    "shown_text",
    "template_text",
]

_EXACT = 10.0**21
"""From here on JavaScript prints a whole number with an exponent."""

_LEAST = 1e-6
"""Below this it prints any number with an exponent; Python does so below 1e-4."""
_NUMBERS = re.compile(r'"(?:[^"\\]|\\.)*+"|-?[\d.]+e-0\d')

_BLANKS = " \t\r\n"
_JSON_BEGINS = ("[", "{", '"', "-", *"0123456789")


def as_it_was(copy: Any, value: Any) -> Any:
    """What was made of a mapping or list; the original if all its parts are unchanged.

    A configuration is traversed several times while it is read, and little of it changes. Copies of the rest would take
    most of the memory for reading, and what many tests share is read only once if it stays one object.
    """
    if type(copy) is not type(value) or len(copy) != len(value) or not all(map(is_, copy, value)):
        return copy
    same = not isinstance(copy, dict) or all(map(is_, copy.values(), value.values()))
    return value if same else copy


def as_javascript(value: Any) -> Any:
    """Plain data in which whole numbers are ints, as JavaScript has a single type of number, and all keys are
    strings."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, dict):
        converted = {
            key if isinstance(key, str) else template_text(key): as_javascript(item) for key, item in value.items()
        }
        return as_it_was(converted, value)
    if isinstance(value, (list, tuple)):
        return as_it_was([as_javascript(item) for item in value], value)
    return value.isoformat() if isinstance(value, date) else value


def recorded(variables: dict[str, Any]) -> dict[str, Any]:
    """Variables in the form of promptfoo's result files: JSON text without blanks."""
    return {name: dense(value) if isinstance(value, str) else value for name, value in variables.items()}


def dense(text: str) -> str:
    """A JSON text without blanks, as in promptfoo's result files."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return compact_json(json_parse(text))
    except ValueError:
        return text


def json_parse(text: str) -> Any:
    """`JSON.parse(text)`. Raises ValueError."""
    text = text.strip(_BLANKS)
    if text[:1] not in _JSON_BEGINS and text not in ("true", "false", "null"):
        raise ValueError("no JSON")
    return as_javascript(json.loads(text, parse_constant=_no_number))


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def number_text(value: float) -> str:
    """A number as JavaScript prints it: `5`, not `5.0`."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        value = as_javascript(value)
    written = str(value)
    if "e-0" not in written:
        return written
    return f"{Decimal(written):f}" if abs(value) >= _LEAST else written.replace("e-0", "e-")


def compact_json(value: Any) -> str:
    """`JSON.stringify(value)`."""
    return _with_javascript_numbers(
        json.dumps(as_javascript(value), ensure_ascii=False, separators=(",", ":"), default=str)
    )


def pretty_json(value: Any, indent: int | str = 2) -> str:
    """`JSON.stringify(value, null, indent)`."""
    return _with_javascript_numbers(
        json.dumps(as_javascript(value), ensure_ascii=False, indent=indent or None, default=str)
    )


def _with_javascript_numbers(text: str) -> str:
    """JSON with its small numbers as JavaScript prints them."""
    if "e-0" not in text:
        return text
    return _NUMBERS.sub(lambda match: match[0] if match[0][0] == '"' else number_text(float(match[0])), text)


def shown_text(value: Any) -> str:
    """The text of an output for assertions on texts: strings unchanged, anything else as JSON."""
    return value if isinstance(value, str) else compact_json(value)


def template_text(value: Any) -> str:
    """The text for a value in a rendered template."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, dict):
        return "[object Object]"
    if isinstance(value, (list, tuple)):
        return ",".join(map(template_text, value))
    return str(value)
