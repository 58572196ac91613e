"""The engine for templates: Jinja2, made to behave like Nunjucks where the two differ.

Values reach a template as subclasses that behave as in JavaScript: an empty list is true, a list is printed as `a,b`.
Python itself is out of reach: attributes are keys of mappings, or one of the few members that are listed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from itertools import chain, repeat
from typing import Any

from jinja2 import ChainableUndefined, Undefined, nodes
from jinja2 import TemplateError as JinjaError
from jinja2.lexer import TokenStream
from jinja2.runtime import LoopContext, Macro
from jinja2.sandbox import SandboxedEnvironment

from evalwright.formats.promptfoo.faults import TemplateError
from evalwright.formats.promptfoo.javascript_members import OF_LISTS, OF_MAPPINGS, OF_NUMBERS, OF_TEXTS
from evalwright.formats.promptfoo.javascript_operators import arithmetic, plus, string_of
from evalwright.formats.promptfoo.nunjucks_filters import FILTERS, KEPT_FILTERS
from evalwright.formats.promptfoo.nunjucks_frames import Frames
from evalwright.formats.promptfoo.nunjucks_parser import NO_PATTERNS, NunjucksParser, without_patterns
from evalwright.formats.promptfoo.nunjucks_tests import TESTS
from evalwright.formats.promptfoo.nunjucks_tree import FRAMES, as_nunjucks
from evalwright.formats.promptfoo.nunjucks_values import MOST_ITEMS, List, in_template
from evalwright.formats.promptfoo.values import template_text

__all__ = ["grammar_mistake", "rendered"]

_VERBATIM = re.compile(r"(\{%-?\s*)(end)?verbatim(\s*-?%\})")
_KEPT = 512
"""Compiled templates that are kept: a run has a few, unless each case has its own."""
_OF_LOOPS = frozenset({"first", "index", "index0", "last", "length", "revindex", "revindex0"})
_WITH_PATTERNS = ("match", "matchAll", "search")
_ARITHMETIC = frozenset({"-", "*", "/", "//", "%", "**"})


def rendered(text: str, names: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]]) -> str:
    """The text of a template. Raises TemplateError."""
    try:
        engine = _engine() if not filters else _Engine(filters)
        template = _compiled_template(text) if not filters else engine.from_string(_prepared_template(text))
        return str(template.render({name: in_template(value) for name, value in names.items()} | {FRAMES: Frames()}))
    except JinjaError as error:
        raise TemplateError(f"template: {error.message}{_line(error)}") from None
    except MemoryError:
        raise TemplateError("template: the text is too long for the memory") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError, AttributeError) as error:
        raise TemplateError(f"template: {error}") from None


def grammar_mistake(text: str, filters: Iterable[str]) -> str:
    """Why a text is no template; empty if it is one. `filters` are the names of the configuration's own."""
    try:
        _Engine(dict.fromkeys(filters, str)).from_string(_prepared_template(text))
    except JinjaError as error:
        return f"{error.message}{_line(error)}"
    except RecursionError:
        return "it is nested too deeply"
    return ""


def _line(error: JinjaError) -> str:
    line = getattr(error, "lineno", None)
    return f" (line {line})" if line and line > 1 else ""


def _prepared_template(text: str) -> str:
    return _VERBATIM.sub(r"\1\2raw\3", text) if "verbatim" in text else text


@cache
def _engine() -> _Engine:
    return _Engine({})


@lru_cache(_KEPT)
def _compiled_template(text: str) -> Any:
    return _engine().from_string(_prepared_template(text))


class _Engine(SandboxedEnvironment):
    """Jinja2 with the grammar, members, operators and filters of Nunjucks."""

    intercepted_binops = frozenset({"+", *_ARITHMETIC})
    intercepted_unops = frozenset({"+", "-"})

    def __init__(self, filters: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(
            undefined=ChainableUndefined, finalize=_final, keep_trailing_newline=True, cache_size=0, optimized=False
        )
        nothing = self.undefined(name="undefined")
        self.globals = {"null": None, "undefined": nothing, "range": _range, "cycler": _Cycler, "joiner": _joiner}
        self.filters = {name: test for name, test in self.filters.items() if name in KEPT_FILTERS} | FILTERS
        self.tests = {**TESTS}
        for name, own in filters.items():
            self.filters[name] = own

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext):
            return super().getattr(obj, attribute) if attribute in _OF_LOOPS else self._missing("loop", attribute)
        if isinstance(obj, (Macro, Frames, _Cycler)):
            return super().getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, dict):
            key = argument if isinstance(argument, str) else string_of(argument)
            if key in obj:
                return obj[key]
            if key in OF_MAPPINGS:
                return partial(OF_MAPPINGS[key], obj)
        elif isinstance(obj, (str, list, tuple)):
            if argument == "length":
                return FILTERS["length"](obj)
            members: Any = OF_TEXTS if isinstance(obj, str) else OF_LISTS
            if isinstance(argument, str) and argument in members:
                return partial(members[argument], obj)
            position = int(argument) if str(argument).isdecimal() else -1
            if 0 <= position < len(obj):
                return obj[position]
        elif isinstance(obj, (int, float)) and argument in OF_NUMBERS:
            return partial(OF_NUMBERS[argument], obj)
        return self._missing(_kind_of(obj), argument)

    def _missing(self, owner: str, member: Any) -> Undefined:
        if owner == "a text" and member in _WITH_PATTERNS:
            return self.undefined(NO_PATTERNS.format(member), name=member)
        return self.undefined(f"{owner} has no {string_of(member)!r:.60}", name=string_of(member))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        return plus(left, right) if operator == "+" else arithmetic(operator, left, right)

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        return arithmetic("*", arg, -1 if operator == "-" else 1)

    def is_safe_callable(self, obj: Any) -> bool:
        return True  # everything that can be named is a listed member of a value, a macro or a global

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        tokens = without_patterns(self.lexer.tokeniter(source, name, filename, state))
        return TokenStream(self.lexer.wrap(tokens, name, filename), name, filename)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return as_nunjucks(NunjucksParser(self, source, name, filename).parse())


def _kind_of(value: Any) -> str:
    kinds = {str: "a text", list: "a list", dict: "a mapping", bool: "a boolean", int: "a number", float: "a number"}
    return next((kind for type_, kind in kinds.items() if isinstance(value, type_)), "nothing")


class _Cycler:
    """Goes round its items."""

    def __init__(self, *items: Any) -> None:
        self._items = items
        self.reset()

    def reset(self) -> None:
        self.current: Any = None
        self._place = -1

    def next(self) -> Any:
        self._place = (self._place + 1) % max(len(self._items), 1)
        self.current = self._items[self._place] if self._items else None
        return self.current


def _joiner(sign: Any = ",") -> Callable[[], Any]:
    """A function that gives nothing when it is called first, and then the sign."""
    signs = chain([""], repeat(sign))
    return lambda: next(signs)


def _final(value: Any) -> Any:
    return value if isinstance(value, Undefined) else template_text(value)


def _range(*numbers: float) -> Any:
    counted = range(*map(int, numbers))
    if len(counted) > MOST_ITEMS:
        raise ValueError(f"range: expected at most {MOST_ITEMS:,} numbers, found {len(counted):,}")
    return List(counted)
