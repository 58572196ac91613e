"""Operators of JavaScript, as templates use them."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from jinja2 import Undefined

from evalwright.formats.promptfoo.values import as_javascript, template_text

__all__ = ["arithmetic", "loosely_equal", "number_of", "ordered_as", "plus", "string_of"]

_EXACT = 2**53
"""Whole numbers beyond this are rounded."""
_OTHER_BASE = re.compile(r"0[xXoObB][0-9a-fA-F]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)


class _NotANumber(float):
    """NaN, which is false."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


_NAN = _NotANumber("nan")


def _divide(left: float, right: float) -> float:
    """`/` of JavaScript, which has results for divisions by 0."""
    if right != 0:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left)


def _remainder(left: float, right: float) -> float:
    """`%` of JavaScript, whose sign is the left operand's."""
    return math.fmod(left, right) if right and math.isfinite(left) else math.nan


def _whole_quotient(left: float, right: float) -> float:
    quotient = _divide(left, right)
    return math.floor(quotient) if math.isfinite(quotient) else quotient


def _power(base: float, exponent: float) -> float:
    """`Math.pow` of JavaScript, which has a result for everything."""
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    odd = math.isfinite(exponent) and math.fmod(exponent, 2) in (1, -1)
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:  # a root of a negative number, or a division by 0
        return math.nan if base else math.copysign(math.inf, base if odd else 1)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "//": _whole_quotient,
    "%": _remainder,
    "**": _power,
}


def arithmetic(operator_sign: str, left: Any, right: Any) -> Any:
    """The result of `-`, `*`, `/`, `//`, `%` or `**` of JavaScript."""
    return _as_number(_ARITHMETIC[operator_sign](number_of(left), number_of(right)))


def _as_number(value: float) -> Any:
    if math.isnan(value):
        return _NAN
    return as_javascript(float(value)) if abs(value) > _EXACT else as_javascript(value)


def string_of(value: Any) -> str:
    """`String(value)` of JavaScript."""
    if value is None or isinstance(value, Undefined):
        return "null" if value is None else "undefined"
    return template_text(value)


def number_of(value: Any) -> float:
    """`Number(value)` of JavaScript."""
    if isinstance(value, (int, float)):
        return value if value == value else _NAN
    if value is None or isinstance(value, Undefined):
        return 0 if value is None else _NAN
    text = template_text(value).strip()
    if not text or _NUMBER.fullmatch(text):
        number: float = _as_number(float(text or 0))
        return number
    try:
        return int(text, 0) if _OTHER_BASE.fullmatch(text) else _NAN
    except ValueError:
        return _NAN


def loosely_equal(left: Any, right: Any, strictly: bool) -> bool:
    """`left == right` of JavaScript: nothing equals only nothing, and a string with a number equals that number; if
    `strictly`, as `===`."""
    missing = [operand is None or isinstance(operand, Undefined) for operand in (left, right)]
    if any(missing):
        return all(missing) and not (strictly and (left is None) != (right is None))
    if isinstance(left, (list, dict)) and isinstance(right, (list, dict)):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right and not (strictly and isinstance(left, bool) != isinstance(right, bool))
    if not isinstance(left, (int, float)) and not isinstance(right, (int, float)):
        same_kind = isinstance(left, str) and isinstance(right, str)
        return (same_kind or not strictly) and template_text(left) == template_text(right)
    return not strictly and number_of(left) == number_of(right)


_ORDERS = {"lt": operator.lt, "lteq": operator.le, "gt": operator.gt, "gteq": operator.ge}


def ordered_as(left: Any, right: Any, order: str) -> bool:
    """`<`, `<=`, `>` and `>=` of JavaScript: strings, lists and mappings by their letters, everything else as
    numbers."""
    if isinstance(left, (str, list, dict)) and isinstance(right, (str, list, dict)):
        return bool(_ORDERS[order](template_text(left), template_text(right)))
    return bool(_ORDERS[order](number_of(left), number_of(right)))


def plus(left: Any, right: Any) -> Any:
    """`+` of JavaScript."""
    if isinstance(left, (str, list, dict)) or isinstance(right, (str, list, dict)):
        return string_of(left) + string_of(right)
    return _as_number(number_of(left) + number_of(right))
