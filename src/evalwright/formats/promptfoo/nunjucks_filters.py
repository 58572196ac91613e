"""The filters and tests of Nunjucks that Jinja2 lacks or defines differently."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cmp_to_key, reduce
from typing import Any
from urllib.parse import quote

from jinja2 import ChainableUndefined, Undefined

from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.javascript_operators import (
    arithmetic,
    loosely_equal,
    number_of,
    ordered_as,
    plus,
    string_of,
)
from evalwright.formats.promptfoo.nunjucks_tests import TESTS
from evalwright.formats.promptfoo.nunjucks_texts import TEXT_FILTERS
from evalwright.formats.promptfoo.nunjucks_values import MOST_ITEMS, List, Mapped, in_template, mapped
from evalwright.formats.promptfoo.values import as_javascript, compact_json, json_parse, pretty_json, template_text
from evalwright.formats.shared.javascript.characters import code_units

__all__ = ["FILTERS", "KEPT_FILTERS"]


def _dump(value: Any, indent: Any = None) -> str:
    if isinstance(value, Undefined):
        return ""
    if not indent:
        return compact_json(value)
    return pretty_json(value, indent[:_DEEPEST] if isinstance(indent, str) else min(int(indent), _DEEPEST))


_DEEPEST = 10
"""Blanks of an indent."""
_ABSENT = ChainableUndefined()
_FLOAT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)", re.IGNORECASE)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _parsed_int(value: Any, default: Any = _ABSENT, base: Any = 10) -> Any:
    base = int(number_of(base) or 10)
    if not 2 <= base <= len(_DIGITS):
        return default
    prefix = "(?:0x)?" if base == 16 else ""
    match = re.match(rf"\s*([+-]?){prefix}([{_DIGITS[:base]}]+)", template_text(value), re.IGNORECASE)
    return int(match[1] + match[2], base) if match else default


def _parsed_float(value: Any, default: Any = _ABSENT) -> Any:
    match = _FLOAT.match(template_text(value))
    return as_javascript(float(match[1])) if match else default


def _member(item: Any, key: str) -> Any:
    if item is None or isinstance(item, Undefined):
        raise TypeError(f"nothing has no {key!r}")
    return item.get(key, _ABSENT) if isinstance(item, dict) else _ABSENT


def _sum(value: Any, attribute: str | None = None, start: Any = 0) -> Any:
    if attribute:
        items = [_member(item, attribute) for item in _items(value)]
    elif isinstance(value, (list, tuple)):
        items = [*value]
    else:
        raise TypeError(f"sum: expected a list, found {_shown(value)}")
    return plus(start, reduce(plus, items, 0))


def _shown(value: Any) -> str:
    return "nothing" if isinstance(value, Undefined) else as_written(value)


def _number_of_parts(value: Any) -> int:
    number = number_of(value)
    if not 1 <= number <= MOST_ITEMS:
        raise ValueError(f"expected a number from 1 to {MOST_ITEMS:,}, found {_shown(value)}")
    return int(number)


def _in_groups(value: Any, size: Any, filling: Any = None) -> Any:
    items, size = list(_sequence(value)), _number_of_parts(size)
    groups = [List(items[i : i + size]) for i in range(0, len(items), size)]
    if filling is not None and groups:
        groups[-1] += [filling] * (size - len(groups[-1]))
    return List(groups)


def _in_columns(value: Any, number: Any, filling: Any = None) -> Any:
    """A text is cut into texts."""
    if not isinstance(value, (str, list, tuple)):
        raise TypeError(f"slice: expected a list, found {_shown(value)}")
    items, number = value if isinstance(value, str) else list(value), _number_of_parts(number)
    least, longer = divmod(len(items), number)
    columns, start = List(), 0
    for i in range(number):
        end = start + least + (i < longer)
        if isinstance(items, str):
            columns.append(items[start:end])
        else:
            filled = [filling] if filling is not None and i >= longer else []
            columns.append(List([*items[start:end], *filled]))
        start = end
    return columns


def _grouped(value: Any, key: str) -> Any:
    groups: dict[str, Any] = {}
    for item in _sequence(value):
        groups.setdefault(string_of(_at_path(item, key)), List()).append(item)
    return mapped(groups.items())


def _at_path(item: Any, path: str) -> Any:
    """What is at `a.b`."""
    for key in path.split("."):
        item = _member(item, key)
        if item is _ABSENT:
            break
    return item


def _with_key(wanted: bool) -> Callable[..., Any]:
    def chosen(value: Any, key: str) -> Any:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"expected a list, found {_shown(value)}")
        return List(item for item in value if bool(_member(item, key)) is wanted)

    return chosen


def _passing(wanted: bool) -> Callable[..., Any]:
    def chosen(value: Any, test: str = "truthy", *argument: Any) -> Any:
        if test not in TESTS:
            raise LookupError(f"there is no test {test!r}")
        return List(item for item in _sequence(value) if TESTS[test](item, *argument) is wanted)

    return chosen


def _joined(value: Any, sign: Any = "", attribute: str | None = None) -> str:
    if attribute:
        value = [_member(item, attribute) for item in _items(value)]
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"join: expected a list, found {_shown(value)}")
    return string_of(sign or "").join(map(template_text, value))


def _length(value: Any) -> int | None:
    """None for a number, which has no length: nothing is printed."""
    if isinstance(value, str):
        return len(code_units(value))
    if isinstance(value, (list, tuple, dict)):
        return len(value)
    return 0 if value is None or value is False or isinstance(value, Undefined) else None


def _first(value: Any) -> Any:
    items = _sequence(value)
    return items[0] if len(items) else _ABSENT


def _last(value: Any) -> Any:
    items = _sequence(value)
    return items[-1] if len(items) else _ABSENT


def _sequence(value: Any) -> Any:
    """What `[0]` and `length` of JavaScript see: numbers and mappings have no items. Raises TypeError for nothing."""
    if value is None or isinstance(value, Undefined):
        raise TypeError("nothing has no items")
    return value if isinstance(value, (str, list, tuple)) else ()


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return List(Mapped(key=key, value=item) for key, item in value.items())
    if not isinstance(value, (str, list, tuple)):
        raise TypeError("list: expected a text, a list or a mapping")
    return List(value)


def _rounded(value: Any, digits: Any = 0, method: str = "common") -> Any:
    factor = arithmetic("**", 10, digits or 0)
    rounding = {"ceil": math.ceil, "floor": math.floor}.get(method)
    scaled = arithmetic("*", value, factor)
    if not math.isfinite(scaled):
        return scaled
    whole: int = rounding(scaled) if rounding is not None else math.floor(scaled + 0.5)
    return as_javascript(float(whole / factor))


def _reversed(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else List(reversed(list(_items(value))))


def _sorted(value: Any, reverse: bool = False, keeps_case: bool = False, attribute: str | None = None) -> Any:
    """Texts by their letters, in any case unless `keeps_case`; everything else as numbers."""

    def order(left: Any, right: Any) -> int:
        if attribute is not None:
            left, right = _at_path(left, attribute), _at_path(right, attribute)
        if not keeps_case and isinstance(left, str) and isinstance(right, str):
            left, right = left.lower(), right.lower()
        sign = ordered_as(left, right, "gt") - ordered_as(left, right, "lt")
        return -sign if reverse else sign

    return List(sorted(_items(value), key=cmp_to_key(order)))


def _string(value: Any) -> str:
    if value is None or isinstance(value, Undefined):
        raise TypeError("string: expected a value, found nothing")
    return template_text(value)


def _pairs(value: Any, number: int = 2) -> list[tuple[Any, ...]]:
    """What a loop with so many names goes through."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, str):
        return list(enumerate(value))
    parts = [[*_sequence(item)] for item in _items(value)]
    return [(*part[:number], *[_ABSENT] * (number - len(part))) for part in parts]


def _items(value: Any) -> Any:
    """What a loop with a single name goes through: nothing unless it is a list or a text. What the loop adds to the
    list, it does not reach."""
    return [*value] if isinstance(value, (str, list, tuple)) else ()


def _is_in(item: Any, value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(loosely_equal(one, item, strictly=True) for one in value)
    if isinstance(value, (str, dict)):
        return string_of(item) in value
    raise TypeError(f"nothing can be searched for {item!r:.60}")


def _is_equal(left: Any, right: Any, strictly: bool, wanted: bool) -> bool:
    return loosely_equal(left, right, strictly) is wanted


def _sorted_pairs(value: Any, keeps_case: bool = False, by: Any = "key") -> Any:
    place = {"key": 0, "value": 1}.get(by, -1) if isinstance(by, str) else -1
    if not isinstance(value, dict) or place < 0:
        raise TypeError("dictsort: expected a mapping, to be sorted by 'key' or 'value'")

    def order(one: Any, other: Any) -> int:
        left, right = one[place], other[place]
        if not keeps_case:
            left, right = (item.upper() if isinstance(item, str) else item for item in (left, right))
        if ordered_as(left, right, "gt"):
            return 1
        return 0 if loosely_equal(left, right, strictly=True) else -1

    return List(List(pair) for pair in sorted(value.items(), key=cmp_to_key(order)))


def _default(value: Any, otherwise: Any = "", or_false: Any = False) -> Any:
    return otherwise if isinstance(value, Undefined) or (or_false and not value) else value


def _loaded(value: Any) -> Any:
    """promptfoo's own filter: the value of a JSON text."""
    try:
        return in_template(json_parse(template_text(value)))
    except ValueError:
        raise ValueError(f"load: expected JSON, found {_shown(value)}") from None


def _url_part(value: Any) -> str:
    return quote(string_of(value), safe="!~*'()")


def _urlencoded(value: Any) -> str:
    if isinstance(value, str):
        return _url_part(value)
    return "&".join(f"{_url_part(key)}={_url_part(item)}" for key, item in _pairs(value))


KEPT_FILTERS = frozenset({"random"})
"""Filters of Jinja2 that Nunjucks has, too; it has none of the others."""
FILTERS: dict[str, Callable[..., Any]] = {
    **TEXT_FILTERS,
    "abs": lambda value: arithmetic("*", value, -1 if number_of(value) < 0 else 1),
    "batch": _in_groups,
    "float": _parsed_float,
    "int": _parsed_int,
    "d": _default,
    "default": _default,
    "dictsort": _sorted_pairs,
    "dump": _dump,
    "first": _first,
    "last": _last,
    "list": _listed,
    "groupby": _grouped,
    "join": _joined,
    "length": _length,
    "load": _loaded,
    "reject": _passing(False),
    "rejectattr": _with_key(False),
    "reverse": _reversed,
    "round": _rounded,
    "select": _passing(True),
    "selectattr": _with_key(True),
    "slice": _in_columns,
    "sort": _sorted,
    "string": _string,
    "sum": _sum,
    "urlencode": _urlencoded,
    # what a template cannot name
    "as in data": in_template,
    "is equal": _is_equal,
    "is in": _is_in,
    "is ordered": ordered_as,
    "items of": _items,
    "pairs of": _pairs,
    "text of": string_of,
}
