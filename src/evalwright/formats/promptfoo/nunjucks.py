"""The engine for templates: Jinja2, with the ways of Nunjucks where the two differ.

Values reach a template as subclasses that behave as in JavaScript: an empty list is true, a list is printed as `a,b`.
Nothing of Python can be reached: attributes are keys of mappings, or one of the few members that are listed here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache, reduce
from typing import Any

from jinja2 import ChainableUndefined, Undefined, nodes
from jinja2 import TemplateError as JinjaError
from jinja2.runtime import LoopContext, Macro
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Namespace

from evalwright.formats.promptfoo.faults import TemplateError
from evalwright.formats.promptfoo.javascript_operators import (
    ARITHMETIC,
    loosely_equal,
    number_of,
    ordered_as,
    plus,
    string_of,
)
from evalwright.formats.promptfoo.nunjucks_tree import OUTER, STRICTLY, as_nunjucks
from evalwright.formats.promptfoo.values import as_javascript, pretty_json, template_text

__all__ = ["rendered"]

_STRICT_EQUALITY = re.compile(r"([=!])==")
_VERBATIM = re.compile(r"(\{%-?\s*)(end)?verbatim(\s*-?%\})")
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_KEPT = 512
"""Compiled templates that are kept: a run has a few, unless each case brings its own."""
_MEMBERS_OF_TEXT: dict[str, Callable[[str], Any]] = {
    "toUpperCase": lambda text: text.upper,
    "toLowerCase": lambda text: text.lower,
    "trim": lambda text: text.strip,
    "includes": lambda text: lambda part: template_text(part) in text,
    "startsWith": lambda text: text.startswith,
    "endsWith": lambda text: text.endswith,
    "indexOf": lambda text: text.find,
    "split": lambda text: lambda sign: List(list(text) if sign == "" else text.split(sign)),
    "slice": lambda text: lambda start=0, end=None: text[int(start) : None if end is None else int(end)],
    "substring": lambda text: lambda start=0, end=None: text[max(0, start) : None if end is None else max(0, end)],
    "replace": lambda text: lambda old, new: text.replace(old, new, 1),
    "repeat": lambda text: lambda times: text * times,
}
_MEMBERS_OF_LIST: dict[str, Callable[[list[Any]], Any]] = {
    "slice": lambda items: lambda start=0, end=None: List(items[int(start) : None if end is None else int(end)]),
    "join": lambda items: lambda sign=",": sign.join(map(template_text, items)),
    "includes": lambda items: lambda item: item in items,
    "indexOf": lambda items: lambda item: items.index(item) if item in items else -1,
    "concat": lambda items: lambda other: List([*items, *other]),
}


class List(list[Any]):
    """A list that is true even if it is empty, and printed as its items between commas."""

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return template_text(self)


class Mapped(dict[str, Any]):
    """The same for a mapping."""

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return template_text(self)


def rendered(text: str, names: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]]) -> str:
    """The text of a template. Raises TemplateError."""
    try:
        engine = _engine() if not filters else _Engine(filters)
        template = _compiled(text) if not filters else engine.from_string(_prepared(text))
        return str(template.render({name: _wrapped(value) for name, value in names.items()} | {OUTER: Namespace()}))
    except JinjaError as error:
        raise TemplateError(f"template: {error.message}{_line(error)}") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError, AttributeError) as error:
        raise TemplateError(f"template: {error}") from None


def _line(error: JinjaError) -> str:
    line = getattr(error, "lineno", None)
    return f" (line {line})" if line and line > 1 else ""


def _prepared(text: str) -> str:
    if "verbatim" in text:
        text = _VERBATIM.sub(r"\1\2raw\3", text)
    return _TAG.sub(lambda tag: _STRICT_EQUALITY.sub(rf"== {STRICTLY} \1=", tag[0]), text) if "==" in text else text


@cache
def _engine() -> _Engine:
    return _Engine({})


@lru_cache(_KEPT)
def _compiled(text: str) -> Any:
    return _engine().from_string(_prepared(text))


class _Engine(SandboxedEnvironment):
    """Jinja2 with the members, operators and filters of Nunjucks."""

    intercepted_binops = frozenset({"+", *ARITHMETIC})

    def __init__(self, filters: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(undefined=ChainableUndefined, finalize=_final, keep_trailing_newline=True, cache_size=0)
        self.globals.update({"null": None, "undefined": self.undefined(name="undefined"), "range": _range})
        self.filters = {name: one for name, one in self.filters.items() if name in _OF_NUNJUCKS} | _FILTERS
        self.tests = {name: one for name, one in self.tests.items() if name in _TESTS_OF_NUNJUCKS} | _TESTS
        for name, own in filters.items():
            self.filters[name] = own

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, (LoopContext, Macro, Namespace)):
            return super().getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, dict):
            if argument in obj:
                return obj[argument]
        elif isinstance(obj, (str, list, tuple)):
            if argument == "length":
                return len(obj)
            members: Any = _MEMBERS_OF_TEXT if isinstance(obj, str) else _MEMBERS_OF_LIST
            if argument in members:
                return members[argument](obj)
            if isinstance(argument, slice):
                return obj[argument]
            position = int(argument) if str(argument).isdigit() else -1
            if 0 <= position < len(obj):
                return obj[position]
        elif argument == "toFixed" and isinstance(obj, (int, float)):
            return lambda digits=0: f"{obj:.{int(digits)}f}"
        return self.undefined(obj=None, name=str(argument))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+":
            return plus(left, right)
        return ARITHMETIC[operator](number_of(left), number_of(right))

    def is_safe_callable(self, obj: Any) -> bool:
        return True  # whatever can be named is a member of a value that is listed above, a macro or a global

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return as_nunjucks(super()._parse(source, name, filename))


def _wrapped(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Mapped({key: _wrapped(one) for key, one in value.items()})
    return List(map(_wrapped, value)) if isinstance(value, (list, tuple)) else value


def _final(value: Any) -> Any:
    if isinstance(value, Iterator):
        value = list(value)
    return value if isinstance(value, Undefined) else template_text(value)


def _dump(value: Any, indent: int | None = None) -> str:
    if isinstance(value, Undefined):
        return ""
    value = list(value) if isinstance(value, Iterator) else value
    if indent:
        return pretty_json(value, int(indent))
    return json.dumps(as_javascript(value), ensure_ascii=False, separators=(",", ":"), default=str)


_INT, _FLOAT = re.compile(r"\s*([+-]?\d+)"), re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)", re.IGNORECASE)


def _parsed_int(value: Any, default: Any = "", base: int = 10) -> Any:
    if base != 10:
        try:
            return int(template_text(value), base)
        except ValueError:
            return default
    found = _INT.match(template_text(value))
    return int(found[1]) if found else default


def _parsed_float(value: Any, default: Any = "") -> Any:
    found = _FLOAT.match(template_text(value))
    return as_javascript(float(found[1])) if found else default


def _capitalized(value: Any) -> str:
    text = template_text(value).lower()
    return text[:1].upper() + text[1:]


def _titled(value: Any) -> str:
    """Words are what blanks part, and nothing else."""
    return " ".join(map(_capitalized, template_text(value).split(" ")))


def _sum(value: Any, attribute: str | None = None, start: Any = 0) -> Any:
    items = list(value)
    return reduce(plus, items if attribute is None else [one.get(attribute) for one in items], start)


def _range(*numbers: float) -> Any:
    return List(range(*map(int, numbers)))


def _in_groups(value: Any, size: int, filling: Any = None) -> Any:
    items = list(value)
    groups = [List(items[i : i + size]) for i in range(0, len(items), size)]
    if filling is not None and groups:
        groups[-1] += [filling] * (size - len(groups[-1]))
    return List(groups)


def _in_columns(value: Any, number: int, filling: Any = None) -> Any:
    items = list(value)
    least, longer = divmod(len(items), number)
    columns, start = List(), 0
    for i in range(number):
        end = start + least + (i < longer)
        filled = [filling] if filling is not None and i >= longer else []
        columns.append(List([*items[start:end], *filled]))
        start = end
    return columns


def _grouped(value: Any, key: str) -> Any:
    groups = Mapped()
    for one in value:
        groups.setdefault(template_text(one.get(key)), List()).append(one)
    # JavaScript has keys that are whole numbers first, in their order.
    return Mapped(sorted(groups.items(), key=lambda group: (0, int(group[0])) if group[0].isdecimal() else (1, 0)))


def _chosen(wanted: bool) -> Callable[..., Any]:
    return lambda value, key: List(one for one in value if bool(one.get(key)) is wanted)


def _truncated(value: Any, length: int = 255, cuts_words: bool = False, end: str = "...") -> str:
    text = template_text(value)
    if len(text) <= length:
        return text
    blank = -1 if cuts_words else text.rfind(" ", 0, length + 1)
    return text[: blank if blank > 0 else length] + end


def _joined(value: Any, sign: str = "", attribute: str | None = None) -> str:
    if not isinstance(value, (list, tuple, Iterator)):
        raise TypeError(f"join: expected a list, found {type(value).__name__.lower()}")
    items = list(value)
    if attribute is not None:
        items = [one.get(attribute) if isinstance(one, dict) else None for one in items]
    return sign.join(map(template_text, items))


def _length(value: Any) -> int:
    if isinstance(value, Iterator):
        return len(list(value))
    return len(value) if isinstance(value, (str, list, tuple, dict)) else 0


def _replaced(value: Any, old: str, new: str, count: int = -1) -> Any:
    return template_text(value).replace(template_text(old), template_text(new), count)


def _rounded(value: float, digits: int = 0, method: str = "common") -> float:
    factor = 10**digits
    rounding = {"ceil": math.ceil, "floor": math.floor}.get(method)
    scaled = value * factor
    whole: int = rounding(scaled) if rounding is not None else math.floor(scaled + 0.5)
    return float(whole / factor)


def _reversed(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else List(reversed(list(value)))


def _pairs(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


_OF_NUNJUCKS = frozenset(
    (
        "abs", "center", "d", "default", "dictsort", "e", "escape", "first", "forceescape", "indent", "last", "list",
        "random", "reject", "safe", "select", "sort", "striptags", "urlencode", "urlize", "wordcount",
    )
)  # fmt: skip
"""Filters of Jinja2 that Nunjucks has, too; it has none of the others."""
_TESTS_OF_NUNJUCKS = frozenset(
    (
        "callable", "defined", "divisibleby", "eq", "equalto", "escaped", "even", "ge", "greaterthan", "gt", "in",
        "iterable", "le", "lessthan", "lower", "lt", "mapping", "ne", "none", "number", "odd", "sameas", "string",
        "undefined", "upper",
    )
)  # fmt: skip
_TESTS: dict[str, Callable[[Any], bool]] = {
    "falsy": lambda value: not value,
    "null": lambda value: value is None,
    "truthy": bool,
}
_FILTERS: dict[str, Callable[..., Any]] = {
    "batch": _in_groups,
    "capitalize": _capitalized,
    "float": _parsed_float,
    "int": _parsed_int,
    "ordered": ordered_as,
    "sum": _sum,
    "text of": string_of,
    "title": _titled,
    "wrapped": _wrapped,
    "dump": _dump,
    "equals": loosely_equal,
    "groupby": _grouped,
    "join": _joined,
    "length": _length,
    "nl2br": lambda text: template_text(text).replace("\n", "<br />\n"),
    "pairs of": _pairs,
    "replace": _replaced,
    "rejectattr": _chosen(False),
    "reverse": _reversed,
    "round": _rounded,
    "selectattr": _chosen(True),
    "slice": _in_columns,
    "string": template_text,
    "lower": lambda text: template_text(text).lower(),
    "upper": lambda text: template_text(text).upper(),
    "truncate": _truncated,
    "trim": lambda text: template_text(text).strip(),
}
