"""The filters and tests of Nunjucks that Jinja2 lacks or defines differently."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cmp_to_key, reduce
from typing import Any
from urllib.parse import quote

from jinja2 import Undefined

from evalwright.files.key_paths import as_written
from evalwright.files.numbers import is_number
from evalwright.formats.promptfoo.javascript_operators import (
    loosely_equal,
    number_of,
    ordered_as,
    plus,
    string_of,
)
from evalwright.formats.promptfoo.nunjucks_texts import TEXT_FILTERS
from evalwright.formats.promptfoo.nunjucks_values import List, Mapped, in_template
from evalwright.formats.promptfoo.values import as_javascript, compact_json, pretty_json, template_text
from evalwright.formats.shared.javascript.characters import code_units

__all__ = ["FILTERS", "KEPT_FILTERS", "KEPT_TESTS", "TESTS"]


def _dump(value: Any, indent: int | None = None) -> str:
    if isinstance(value, Undefined):
        return ""
    value = list(value) if isinstance(value, Iterator) else value
    return pretty_json(value, int(indent)) if indent else compact_json(value)


_ABSENT = Undefined()
_INT, _FLOAT = re.compile(r"\s*([+-]?\d+)"), re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)", re.IGNORECASE)


def _parsed_int(value: Any, default: Any = "", base: int = 10) -> Any:
    if base != 10:
        try:
            return int(template_text(value), base)
        except ValueError:
            return default
    match = _INT.match(template_text(value))
    return int(match[1]) if match else default


def _parsed_float(value: Any, default: Any = "") -> Any:
    match = _FLOAT.match(template_text(value))
    return as_javascript(float(match[1])) if match else default


def _member(item: Any, key: str) -> Any:
    return item.get(key, _ABSENT) if isinstance(item, dict) else _ABSENT


def _sum(value: Any, attribute: str | None = None, start: Any = 0) -> Any:
    items = list(value)
    return reduce(plus, items if attribute is None else [_member(item, attribute) for item in items], start)


def _in_groups(value: Any, size: int, filling: Any = None) -> Any:
    items = list(_sequence(value))
    groups = [List(items[i : i + size]) for i in range(0, len(items), size)]
    if filling is not None and groups:
        groups[-1] += [filling] * (size - len(groups[-1]))
    return List(groups)


def _in_columns(value: Any, number: int, filling: Any = None) -> Any:
    """A text is cut into texts."""
    items = value if isinstance(value, str) else list(value)
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
    groups = Mapped()
    for item in value:
        groups.setdefault(string_of(_member(item, key)), List()).append(item)
    # JavaScript puts keys that are whole numbers first, in ascending order.
    return Mapped(sorted(groups.items(), key=lambda group: (0, int(group[0])) if group[0].isdecimal() else (1, 0)))


def _chosen(wanted: bool) -> Callable[..., Any]:
    return lambda value, key: List(item for item in value if bool(_member(item, key)) is wanted)


def _joined(value: Any, sign: str = "", attribute: str | None = None) -> str:
    if not isinstance(value, (list, tuple, Iterator)):
        raise TypeError(
            f"join: expected a list, found {'nothing' if isinstance(value, Undefined) else as_written(value)}"
        )
    items = list(value)
    if attribute is not None:
        items = [item.get(attribute) if isinstance(item, dict) else None for item in items]
    return sign.join(map(template_text, items))


def _length(value: Any) -> int | None:
    """None for a number, which has no length: nothing is printed."""
    if isinstance(value, Iterator):
        return len(list(value))
    if isinstance(value, str):
        return len(code_units(value))
    if isinstance(value, (list, tuple, dict)):
        return len(value)
    return 0 if value is None or value is False or isinstance(value, Undefined) else None


def _first(value: Any) -> Any:
    items = _sequence(value)
    return items[0] if len(items) else None


def _last(value: Any) -> Any:
    items = _sequence(value)
    return items[-1] if len(items) else None


def _sequence(value: Any) -> Any:
    """What `[0]` and `length` of JavaScript see: numbers and mappings have no items. Raises TypeError for nothing."""
    if value is None or isinstance(value, Undefined):
        raise TypeError("nothing has no items")
    items = list(value) if isinstance(value, Iterator) else value
    return items if isinstance(items, (str, list, tuple)) else ()


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return List(Mapped(key=key, value=item) for key, item in value.items())
    if not isinstance(value, (str, list, tuple, Iterator)):
        raise TypeError("list: expected a text, a list or a mapping")
    return List(value)


def _rounded(value: Any, digits: int = 0, method: str = "common") -> float:
    factor = 10**digits
    rounding = {"ceil": math.ceil, "floor": math.floor}.get(method)
    scaled = number_of(value) * factor
    if not math.isfinite(scaled):
        return float(scaled)
    whole: int = rounding(scaled) if rounding is not None else math.floor(scaled + 0.5)
    return float(whole / factor)


def _reversed(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else List(reversed(list(_items(value))))


def _sorted(value: Any, reverse: bool = False, keeps_case: bool = False, attribute: str | None = None) -> Any:
    """Texts by their letters, in any case unless `keeps_case`; everything else as numbers."""

    def order(left: Any, right: Any) -> int:
        if attribute is not None:
            left, right = (item.get(attribute) if isinstance(item, dict) else None for item in (left, right))
        if not keeps_case and isinstance(left, str) and isinstance(right, str):
            left, right = left.lower(), right.lower()
        sign = ordered_as(left, right, "gt") - ordered_as(left, right, "lt")
        return -sign if reverse else sign

    return List(sorted(_items(value), key=cmp_to_key(order)))


def _string(value: Any) -> str:
    if value is None or isinstance(value, Undefined):
        raise TypeError("string: expected a value, found nothing")
    return template_text(value)


def _pairs(value: Any) -> Any:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, str) else _items(value)


def _items(value: Any) -> Any:
    """What a loop with a single name goes through: nothing unless it is a list or a text."""
    return value if isinstance(value, (str, list, tuple, Iterator)) else ()


def _url_part(value: Any) -> str:
    return quote(template_text(value), safe="!~*'()")


def _urlencoded(value: Any) -> str:
    if isinstance(value, str):
        return _url_part(value)
    return "&".join(f"{_url_part(key)}={_url_part(item)}" for key, item in _pairs(value))


def _remainder(value: Any) -> float:
    """`value % 2` of JavaScript, negative for a negative number."""
    number = number_of(value)
    return math.fmod(number, 2) if math.isfinite(number) else math.nan


KEPT_FILTERS = frozenset(
    (
        "d", "default", "dictsort", "random", "reject", "select", "urlize",
    )
)  # fmt: skip
"""Filters of Jinja2 that Nunjucks has, too; it has none of the others."""
KEPT_TESTS = frozenset(
    (
        "callable", "defined", "divisibleby", "eq", "equalto", "escaped", "ge", "greaterthan", "gt", "in", "le",
        "lessthan", "lower", "lt", "mapping", "ne", "none", "sameas", "string", "undefined", "upper",
    )
)  # fmt: skip
TESTS: dict[str, Callable[[Any], bool]] = {
    "even": lambda value: _remainder(value) == 0,
    "falsy": lambda value: not value,
    "iterable": lambda value: isinstance(value, (str, list, tuple, Iterator)),
    "null": lambda value: value is None,
    "number": is_number,
    "odd": lambda value: _remainder(value) == 1,
    "truthy": bool,
}
FILTERS: dict[str, Callable[..., Any]] = {
    **TEXT_FILTERS,
    "abs": lambda value: abs(number_of(value)),
    "batch": _in_groups,
    "float": _parsed_float,
    "int": _parsed_int,
    "ordered": ordered_as,
    "sum": _sum,
    "text of": string_of,
    "wrapped": in_template,
    "dump": _dump,
    "first": _first,
    "last": _last,
    "list": _listed,
    "equals": loosely_equal,
    "groupby": _grouped,
    "join": _joined,
    "length": _length,
    "items of": _items,
    "pairs of": _pairs,
    "rejectattr": _chosen(False),
    "reverse": _reversed,
    "round": _rounded,
    "selectattr": _chosen(True),
    "slice": _in_columns,
    "sort": _sorted,
    "string": _string,
    "urlencode": _urlencoded,
}
