"""Members of JavaScript's values, as templates call them: functions of the value and of any number of arguments."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from jinja2 import ChainableUndefined, Undefined

from evalwright.errors import counted
from evalwright.formats.promptfoo.javascript_operators import loosely_equal, number_of, string_of
from evalwright.formats.promptfoo.nunjucks_texts import LONGEST_TEXT
from evalwright.formats.promptfoo.nunjucks_values import List
from evalwright.formats.promptfoo.values import template_text

__all__ = ["OF_LISTS", "OF_MAPPINGS", "OF_NUMBERS", "OF_TEXTS"]

_UNDEFINED = ChainableUndefined()
"""An argument that was left out."""
_PATTERN_IN_NEW = re.compile(r"\$([$&`'])")
_LARGEST_FIXED = 1e21
"""Numbers from here on have no fixed notation."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_ENOUGH = Context(prec=130)
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
    return value[number] if -len(value) <= number < len(value) else _UNDEFINED


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
    if number < 0 or len(text) * number > LONGEST_TEXT:
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
    most = _integer(limit, len(parts))
    return List(parts[:most] if most >= 0 else parts)  # a number below 0 is no limit


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


def _removed(items: list[Any], place: int) -> Any:
    return items.pop(place) if len(items) else _UNDEFINED


def _pushed(items: list[Any], *more: Any) -> int:
    items += more
    return len(items)


def _unshifted(items: list[Any], *more: Any) -> int:
    items[:0] = more
    return len(items)


def _reversed(items: list[Any], *_: Any) -> list[Any]:
    items.reverse()
    return items


def _in_text_order(items: list[Any], *_: Any) -> list[Any]:
    """Sorted as texts, even numbers."""
    if _:
        raise ValueError("sort: a template has no functions that compare; the filter sort has an attribute")
    items.sort(key=lambda item: (isinstance(item, Undefined), string_of(item).encode("utf-16-be", "surrogatepass")))
    return items


def _spliced(items: list[Any], start: Any = _UNDEFINED, number: Any = _UNDEFINED, *more: Any) -> List:
    first = _from_either_end(start, len(items))
    last = first + max(_integer(number, 0 if isinstance(start, Undefined) else len(items)), 0)
    taken = List(items[first:last])
    items[first:last] = more
    return taken


def _filled(items: list[Any], item: Any, start: Any = 0, end: Any = _UNDEFINED, *_: Any) -> list[Any]:
    first, last = _from_either_end(start, len(items)), _from_either_end(end, len(items), len(items))
    items[first:last] = [item] * (last - first)
    return items


def _flat(items: list[Any], depth: Any = 1, *_: Any) -> List:
    deeper = _integer(depth, 1)
    nested = ((_flat(item, deeper - 1) if isinstance(item, list) and deeper > 0 else [item]) for item in items)
    return List(item for part in nested for item in part)


def _code_at(text: str, place: Any = 0, *_: Any) -> Any:
    sign = _char_at(text, place)
    return ord(sign) if sign else _UNDEFINED


def _fixed(number: float, digits: Any = 0, *_: Any) -> str:
    places = _count("toFixed", digits, 0)
    if not abs(number) < _LARGEST_FIXED:
        return template_text(number)
    # as JavaScript, which rounds the exact value, and halves away from 0
    return f"{Decimal(number or 0).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _ENOUGH):f}"


def _number_text(number: float, base: Any = 10, *_: Any) -> str:
    radix = _integer(base, 10)
    if not 2 <= radix <= len(_DIGITS):
        raise ValueError(f"toString: expected a base from 2 to {len(_DIGITS)}, found {string_of(base)}")
    if isinstance(number, bool) or radix == 10 or not math.isfinite(number):
        return template_text(number)
    whole, fraction = divmod(abs(number), 1)
    digits = _fraction_digits(fraction, radix, math.ulp(number) / 2)
    text = _whole_digits(int(whole) + (digits is None), radix)
    return ("-" if number < 0 else "") + text + ("." + "".join(_DIGITS[digit] for digit in digits) if digits else "")


def _whole_digits(number: int, base: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _fraction_digits(fraction: float, base: int, precision: float) -> list[int] | None:
    """As many as tell the number from its neighbours; None if it is rounded up to 1."""
    digits: list[int] = []
    while fraction >= precision:
        fraction, precision = fraction * base, precision * base
        digits.append(int(fraction))
        fraction -= digits[-1]
        if (fraction > 0.5 or (fraction == 0.5 and digits[-1] % 2)) and fraction + precision > 1:
            while digits and digits[-1] == base - 1:
                digits.pop()
            if not digits:
                return None
            digits[-1] += 1
            break
    return digits


def _with_digits(number: float, digits: int) -> tuple[str, int]:
    """This many digits of a number, rounded as JavaScript does, and its exponent."""
    exact = Decimal(number)
    exponent = exact.adjusted() if exact else 0
    rounded = exact.quantize(Decimal(1).scaleb(exponent - digits + 1), ROUND_HALF_UP, Context(prec=1100))
    exponent = rounded.adjusted() if rounded else 0
    return "".join(map(str, rounded.as_tuple().digits))[:digits].ljust(digits, "0"), exponent


def _exponential(number: float, digits: Any = _UNDEFINED, *_: Any) -> str:
    if not math.isfinite(number):
        return template_text(number)
    if isinstance(digits, Undefined):
        shortest = Decimal(repr(float(number))).normalize()
        found, exponent = "".join(map(str, shortest.as_tuple().digits)), shortest.adjusted() if shortest else 0
    else:
        found, exponent = _with_digits(abs(number), _count("toExponential", digits, 0) + 1)
    return f"{'-' if number < 0 else ''}{found[0]}{'.' if found[1:] else ''}{found[1:]}e{exponent:+d}"


def _precise(number: float, digits: Any = _UNDEFINED, *_: Any) -> str:
    if isinstance(digits, Undefined) or not math.isfinite(number):
        return template_text(number)
    places = _count("toPrecision", digits, 1)
    found, exponent = _with_digits(abs(number), places)
    if not -7 < exponent < places:
        return _exponential(number, places - 1)
    text = found if exponent >= 0 else "0" * -exponent + found
    point = max(exponent, 0) + 1
    return f"{'-' if number < 0 else ''}{text[:point]}{'.' if text[point:] else ''}{text[point:]}"


def _grouped(number: float, *_: Any) -> str:
    """In groups of three digits, rounded to three after the point."""
    if isinstance(number, bool) or not math.isfinite(number):
        return template_text(number)
    rounded = Decimal(repr(number)).quantize(Decimal("0.001"), ROUND_HALF_UP, Context(prec=400))
    return f"{rounded:,f}".rstrip("0").rstrip(".")


def _count(member: str, digits: Any, least: int) -> int:
    if not least <= (places := _integer(digits)) <= 100:
        raise ValueError(f"{member}: expected {least} to 100 digits, found {places}")
    return places


OF_TEXTS: dict[str, Callable[..., Any]] = {
    "at": _at,
    "charAt": _char_at,
    "codePointAt": _code_at,
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
    "toLocaleLowerCase": lambda text, *_: text.lower(),
    "toLocaleUpperCase": lambda text, *_: text.upper(),
    "toLowerCase": lambda text, *_: text.lower(),
    "toString": lambda text, *_: text,
    "toUpperCase": lambda text, *_: text.upper(),
    "trim": lambda text, *_: text.strip(),
    "trimEnd": lambda text, *_: text.rstrip(),
    "trimStart": lambda text, *_: text.lstrip(),
    "valueOf": lambda text, *_: text,
}
OF_LISTS: dict[str, Callable[..., Any]] = {
    "at": _at,
    "concat": _joined_lists,
    "fill": lambda items, item=_UNDEFINED, *places: _filled(items, item, *places),
    "flat": _flat,
    "includes": lambda items, item=_UNDEFINED, start=0, *_: bool(_places(items, item, start)),
    "indexOf": lambda items, item=_UNDEFINED, start=0, *_: next(iter(_places(items, item, start)), -1),
    "join": lambda items, sign=",", *_: string_of(sign).join(map(template_text, items)),
    "lastIndexOf": _last_place,
    "pop": lambda items, *_: _removed(items, -1),
    "push": _pushed,
    "reverse": _reversed,
    "shift": lambda items, *_: _removed(items, 0),
    "slice": lambda items, *places: List(_slice(items, *places)),
    "sort": _in_text_order,
    "splice": _spliced,
    "toReversed": lambda items, *_: List(items[::-1]),
    "toSorted": lambda items, *functions: _in_text_order(List(items), *functions),
    "toString": lambda items, *_: template_text(items),
    "unshift": _unshifted,
    "valueOf": lambda items, *_: items,
}
OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "toExponential": _exponential,
    "toFixed": _fixed,
    "toLocaleString": _grouped,
    "toPrecision": _precise,
    "toString": _number_text,
    "valueOf": lambda number, *_: number,
}
OF_MAPPINGS: dict[str, Callable[..., Any]] = {
    "hasOwnProperty": lambda value, key=_UNDEFINED, *_: string_of(key) in value,
    "toString": lambda value, *_: template_text(value),
    "valueOf": lambda value, *_: value,
}
