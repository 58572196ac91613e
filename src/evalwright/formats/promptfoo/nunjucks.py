"""The engine for templates: Jinja2, made to behave like Nunjucks where the two differ.

Values reach a template as subclasses that behave as in JavaScript: an empty list is true, a list is printed as `a,b`.
Python itself is out of reach: attributes are keys of mappings, or one of the few members that are listed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache, partial
from typing import Any

from jinja2 import ChainableUndefined, Undefined, nodes
from jinja2 import TemplateError as JinjaError
from jinja2.runtime import LoopContext, Macro
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Namespace

from evalwright.formats.promptfoo.faults import TemplateError
from evalwright.formats.promptfoo.javascript_members import OF_LISTS, OF_NUMBERS, OF_TEXTS
from evalwright.formats.promptfoo.javascript_operators import (
    ARITHMETIC,
    number_of,
    plus,
)
from evalwright.formats.promptfoo.nunjucks_filters import FILTERS, KEPT_FILTERS, KEPT_TESTS, TESTS
from evalwright.formats.promptfoo.nunjucks_tree import OUTER, STRICTLY, as_nunjucks
from evalwright.formats.promptfoo.nunjucks_values import List, in_template
from evalwright.formats.promptfoo.values import template_text

__all__ = ["rendered"]

_STRICT_EQUALITY = re.compile(r"([=!])==")
_VERBATIM = re.compile(r"(\{%-?\s*)(end)?verbatim(\s*-?%\})")
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_KEPT = 512
"""Compiled templates that are kept: a run has a few, unless each case has its own."""


def rendered(text: str, names: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]]) -> str:
    """The text of a template. Raises TemplateError."""
    try:
        engine = _engine() if not filters else _Engine(filters)
        template = _compiled_template(text) if not filters else engine.from_string(_prepared_template(text))
        return str(template.render({name: in_template(value) for name, value in names.items()} | {OUTER: Namespace()}))
    except JinjaError as error:
        raise TemplateError(f"template: {error.message}{_line(error)}") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError, AttributeError) as error:
        raise TemplateError(f"template: {error}") from None


def _line(error: JinjaError) -> str:
    line = getattr(error, "lineno", None)
    return f" (line {line})" if line and line > 1 else ""


def _prepared_template(text: str) -> str:
    if "verbatim" in text:
        text = _VERBATIM.sub(r"\1\2raw\3", text)
    return _TAG.sub(lambda tag: _STRICT_EQUALITY.sub(rf"== {STRICTLY} \1=", tag[0]), text) if "==" in text else text


@cache
def _engine() -> _Engine:
    return _Engine({})


@lru_cache(_KEPT)
def _compiled_template(text: str) -> Any:
    return _engine().from_string(_prepared_template(text))


class _Missing(ChainableUndefined):
    """A name that does not exist: empty, except that nothing can be looked for in it."""

    def __contains__(self, item: object) -> bool:
        raise TypeError(f"nothing can be searched for {item!r}")


class _Engine(SandboxedEnvironment):
    """Jinja2 with the members, operators and filters of Nunjucks."""

    intercepted_binops = frozenset({"+", *ARITHMETIC})
    intercepted_unops = frozenset({"+", "-"})

    def __init__(self, filters: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(undefined=_Missing, finalize=_final, keep_trailing_newline=True, cache_size=0)
        self.globals.update({"null": None, "undefined": self.undefined(name="undefined"), "range": _range})
        self.filters = {name: test for name, test in self.filters.items() if name in KEPT_FILTERS} | FILTERS
        self.tests = {name: test for name, test in self.tests.items() if name in KEPT_TESTS} | TESTS
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
                return FILTERS["length"](obj)
            members: Any = OF_TEXTS if isinstance(obj, str) else OF_LISTS
            if argument in members:
                return partial(members[argument], obj)
            if isinstance(argument, slice):
                return obj[argument]
            position = int(argument) if str(argument).isdigit() else -1
            if 0 <= position < len(obj):
                return obj[position]
        elif isinstance(obj, (int, float)) and argument in OF_NUMBERS:
            return partial(OF_NUMBERS[argument], obj)
        return self.undefined(obj=None, name=str(argument))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+":
            return plus(left, right)
        return ARITHMETIC[operator](number_of(left), number_of(right))

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        return -number_of(arg) if operator == "-" else number_of(arg)

    def is_safe_callable(self, obj: Any) -> bool:
        return True  # everything that can be named is a listed member of a value, a macro or a global

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return as_nunjucks(super()._parse(source, name, filename))


def _final(value: Any) -> Any:
    if isinstance(value, Iterator):
        value = list(value)
    return value if isinstance(value, Undefined) else template_text(value)


def _range(*numbers: float) -> Any:
    return List(range(*map(int, numbers)))
