"""The tests of Nunjucks: `value is odd`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import Undefined

from evalwright.files.numbers import is_number
from evalwright.formats.promptfoo.javascript_operators import arithmetic, loosely_equal, ordered_as
from evalwright.formats.promptfoo.nunjucks_texts import SafeText, present_text

__all__ = ["TESTS"]


def _missing(value: Any) -> bool:
    return isinstance(value, Undefined)


def _equal(value: Any, other: Any = None) -> bool:
    return loosely_equal(value, other, strictly=True)


def _ordered(order: str) -> Callable[..., bool]:
    return lambda value, other=None: ordered_as(value, other, order)


def _is_iterable(value: Any) -> bool:
    if value is None or _missing(value):
        raise TypeError("iterable: expected a value, found nothing")
    return isinstance(value, (str, list, tuple))


_GREATER, _LESS = _ordered("gt"), _ordered("lt")
TESTS: dict[str, Callable[..., bool]] = {
    "callable": lambda value: callable(value) and not _missing(value),
    "defined": lambda value: not _missing(value),
    "divisibleby": lambda value, by=None: arithmetic("%", value, by) == 0,
    "eq": _equal,
    "equalto": _equal,
    "escaped": lambda value: isinstance(value, SafeText),
    "even": lambda value: arithmetic("%", value, 2) == 0,
    "falsy": lambda value: not value,
    "ge": _ordered("gteq"),
    "greaterthan": _GREATER,
    "gt": _GREATER,
    "iterable": _is_iterable,
    "le": _ordered("lteq"),
    "lessthan": _LESS,
    "lower": lambda value: present_text(value).lower() == value,
    "lt": _LESS,
    "mapping": lambda value: isinstance(value, dict),
    "ne": lambda value, other=None: not _equal(value, other),
    "none": lambda value: value is None,
    "null": lambda value: value is None,
    "number": is_number,
    "odd": lambda value: arithmetic("%", value, 2) == 1,
    "sameas": _equal,
    "string": lambda value: isinstance(value, str),
    "truthy": bool,
    "undefined": _missing,
    "upper": lambda value: present_text(value).upper() == value,
}
