"""Members of JavaScript's values, as templates call them: functions of the value and of any number of arguments."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from jinja2 import Undefined

from evalwright.errors import counted
from evalwright.formats.promptfoo.javascript_operators import loosely_equal, number_of, string_of
from evalwright.formats.promptfoo.nunjucks_values import List
from evalwright.formats.promptfoo.values import template_text

__all__ = ["OF_LISTS", "OF_NUMBERS", "OF_TEXTS"]

_UNDEFINED = Undefined()
"""An argument that was left out."""
_PATTERN_IN_NEW = re.compile(r"\$([$&`'])")
_LONGEST = 2**29 - 24
"""Characters of the longest text that Node makes; without a limit, a template could take all memory."""
_LARGEST_FIXED = 1e21
"""Numbers from here on have no fixed notation."""
_DIGITS = Context(prec=130)
"""Enough for the digits of such a number, and for the 100 after the point that it may have."""


def _integer(value: Any, otherwise: int = 0) -> int:
    """An argument that is a place or a length; `otherwise` if it was left out."""
    if isinstance(value, Undefined):
        return otherwise
    number = number_of(value)
    if math.isinf(number):
        return sys.maxsize if number > 0 else -sys.maxsize
    return 0 if math.isnan(number) else int(number)


def _from_start(value: Any, length: int, otherwise: int = 0) -> int:
    return min(max(_integer(value, otherwise), 0), length)


def _from_either_end(value: Any, length: int, otherwise: int = 0) -> int:
    place = _integer(value, otherwise)
    return max(place + length, 0) if place < 0 else min(place, length)


def _at(value: Sequence[Any], place: Any = 0, *_: Any) -> Any:
    number = _integer(place)
    return value[number] if -len(value) <= number < len(value) else None


def _slice(value: Sequence[Any], start: Any = 0, end: Any = _UNDEFINED, *_: Any) -> Any:
    length = len(value)
    return value[_from_either_end(start, length) : _from_either_end(end, length, length)]


def _char_at(text: str, place: Any = 0, *_: Any) -> str:
    number = _integer(place)
    return text[number : number + 1] if number >= 0 else ""


def _ends_with(text: str, part: Any = _UNDEFINED, end: Any = _UNDEFINED, *_: Any) -> bool:
    return text[: _from_start(end, len(text), len(text))].endswith(string_of(part))


def _starts_with(text: str, part: Any = _UNDEFINED, start: Any = 0, *_: Any) -> bool:
    return text.startswith(string_of(part), _from_start(start, len(text)))


def _index(text: str, part: Any = _UNDEFINED, start: Any = 0, *_: Any) -> int:
    return text.find(string_of(part), _from_start(start, len(text)))


def _last_index(text: str, part: Any = _UNDEFINED, start: Any = _UNDEFINED, *_: Any) -> int:
    sought = string_of(part)
    return text.rfind(sought, 0, _from_start(start, len(text), len(text)) + len(sought))


def _padding(text: str, width: Any, fill: Any) -> str:
    missing = max(0, _integer(width) - len(text))
    filling = " " if isinstance(fill, Undefined) else string_of(fill)
    return _repeat(filling, math.ceil(missing / len(filling)))[:missing] if filling else ""


def _repeat(text: str, times: Any = 0, *_: Any) -> str:
    number = _integer(times)
    if number < 0 or len(text) * number > _LONGEST:
        raise ValueError(f"a text of {counted(len(text), 'character')} cannot be repeated {number} times")
    return text * number


def _replace(text: str, old: Any = _UNDEFINED, new: Any = _UNDEFINED, *_: Any, count: int = 1) -> str:
    replacement = string_of(new)

    def of_match(match: re.Match[str]) -> str:
        parts = {"$": "$", "&": match[0], "`": text[: match.start()], "'": text[match.end() :]}
        return _PATTERN_IN_NEW.sub(lambda pattern: parts[pattern[1]], replacement)

    return re.sub(re.escape(string_of(old)), of_match, text, count=count)


def _split(text: str, sign: Any = _UNDEFINED, limit: Any = _UNDEFINED, *_: Any) -> List:
    if isinstance(sign, Undefined):
        parts = [text]
    else:
        parts = text.split(separator) if (separator := string_of(sign)) else list(text)
    return List(parts[: _integer(limit, len(parts))])


def _substr(text: str, start: Any = 0, length: Any = _UNDEFINED, *_: Any) -> str:
    first = _from_either_end(start, len(text))
    return text[first : first + max(0, _integer(length, len(text)))]


def _substring(text: str, start: Any = 0, end: Any = _UNDEFINED, *_: Any) -> str:
    first, last = sorted((_from_start(start, len(text)), _from_start(end, len(text), len(text))))
    return text[first:last]


def _joined_lists(items: list[Any], *others: Any) -> List:
    return List([*items, *(item for other in others for item in (other if isinstance(other, list) else [other]))])


def _places(items: list[Any], item: Any, start: Any = 0) -> list[int]:
    """Where an item is in a list."""
    first = _from_either_end(start, len(items))
    return [place for place in range(first, len(items)) if loosely_equal(items[place], item, strictly=True)]


def _last_place(items: list[Any], item: Any = _UNDEFINED, start: Any = _UNDEFINED, *_: Any) -> int:
    last = _integer(start, len(items))
    last += len(items) if last < 0 else 0
    return max((place for place in _places(items, item) if place <= last), default=-1)


def _fixed(number: float, digits: Any = 0, *_: Any) -> str:
    if not 0 <= (places := _integer(digits)) <= 100:
        raise ValueError(f"toFixed: expected 0 to 100 digits, found {places}")
    if not abs(number) < _LARGEST_FIXED:
        return template_text(number)
    # as JavaScript, which rounds the exact value, and halves away from 0
    return f"{Decimal(number or 0).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _DIGITS):f}"


def _number_text(number: float, base: Any = 10, *_: Any) -> str:
    if isinstance(number, bool) or _integer(base, 10) == 10:
        return template_text(number)
    raise ValueError(f"toString: expected base 10, found {string_of(base)}")


OF_TEXTS: dict[str, Callable[..., Any]] = {
    "at": _at,
    "charAt": _char_at,
    "concat": lambda text, *parts: text + "".join(map(string_of, parts)),
    "endsWith": _ends_with,
    "includes": lambda text, *arguments: _index(text, *arguments) >= 0,
    "indexOf": _index,
    "lastIndexOf": _last_index,
    "padEnd": lambda text, width=0, fill=_UNDEFINED, *_: text + _padding(text, width, fill),
    "padStart": lambda text, width=0, fill=_UNDEFINED, *_: _padding(text, width, fill) + text,
    "repeat": _repeat,
    "replace": _replace,
    "replaceAll": lambda text, *arguments: _replace(text, *arguments, count=0),
    "slice": _slice,
    "split": _split,
    "startsWith": _starts_with,
    "substr": _substr,
    "substring": _substring,
    "toLowerCase": lambda text, *_: text.lower(),
    "toString": lambda text, *_: text,
    "toUpperCase": lambda text, *_: text.upper(),
    "trim": lambda text, *_: text.strip(),
    "trimEnd": lambda text, *_: text.rstrip(),
    "trimStart": lambda text, *_: text.lstrip(),
}
OF_LISTS: dict[str, Callable[..., Any]] = {
    "at": _at,
    "concat": _joined_lists,
    "includes": lambda items, item=_UNDEFINED, start=0, *_: bool(_places(items, item, start)),
    "indexOf": lambda items, item=_UNDEFINED, start=0, *_: next(iter(_places(items, item, start)), -1),
    "join": lambda items, sign=",", *_: string_of(sign).join(map(template_text, items)),
    "lastIndexOf": _last_place,
    "slice": lambda items, *places: List(_slice(items, *places)),
    "toString": lambda items, *_: template_text(items),
}
OF_NUMBERS: dict[str, Callable[..., Any]] = {"toFixed": _fixed, "toString": _number_text}
