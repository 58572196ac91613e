"""Operators of JavaScript, as templates use them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from jinja2 import Undefined

from evalwright.formats.promptfoo.values import template_text

__all__ = ["ARITHMETIC", "loosely_equal", "number_of", "ordered_as", "plus", "string_of"]


def _divide(left: float, right: float) -> float:
    """`/` of JavaScript, which has results for divisions by 0."""
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left)


def _remainder(left: float, right: float) -> float:
    """`%` of JavaScript, whose sign is the left operand's."""
    return math.fmod(left, right) if right and math.isfinite(left) else math.nan


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "//": lambda left, right: math.floor(_divide(left, right)),
    "%": _remainder,
    "**": operator.pow,
}


def string_of(value: Any) -> str:
    """`String(value)` of JavaScript."""
    if value is None or isinstance(value, Undefined):
        return "null" if value is None else "undefined"
    return template_text(value)


def number_of(value: Any) -> float:
    """`Number(value)` of JavaScript."""
    if isinstance(value, (int, float)):
        return value
    if value is None or isinstance(value, Undefined):
        return 0 if value is None else math.nan
    try:
        number = float(template_text(value).strip() or 0)
    except ValueError:
        return math.nan
    return int(number) if number.is_integer() else number


def loosely_equal(left: Any, right: Any, strictly: bool) -> bool:
    """`left == right` of JavaScript: nothing equals only nothing, and a string with a number equals that number; if
    `strictly`, as `===`."""
    missing = [operand is None or isinstance(operand, Undefined) for operand in (left, right)]
    if any(missing):
        return all(missing) and not (strictly and (left is None) != (right is None))
    if isinstance(left, (list, dict)) and isinstance(right, (list, dict)):
        return left is right
    if isinstance(left, (int, float)) == isinstance(right, (int, float)):
        return bool(left == right) and not (strictly and isinstance(left, bool) != isinstance(right, bool))
    if strictly:
        return False
    texts = [
        str(int(operand)) if isinstance(operand, bool) else template_text(operand).strip() for operand in (left, right)
    ]
    try:
        return float(texts[0] or 0) == float(texts[1] or 0)
    except ValueError:
        return False


_ORDERS = {"lt": operator.lt, "lteq": operator.le, "gt": operator.gt, "gteq": operator.ge}


def ordered_as(left: Any, right: Any, order: str) -> bool:
    """`<`, `<=`, `>` and `>=` of JavaScript: strings by their letters, everything else as numbers."""
    if isinstance(left, str) and isinstance(right, str):
        return bool(_ORDERS[order](left, right))
    return bool(_ORDERS[order](number_of(left), number_of(right)))


def plus(left: Any, right: Any) -> Any:
    """`+` of JavaScript."""
    if isinstance(left, (str, list, dict)) or isinstance(right, (str, list, dict)):
        return string_of(left) + string_of(right)
    return number_of(left) + number_of(right)
