"""A quick yes of a JSON Schema: a few comparisons instead of a walk through `jsonschema`, for most values of most runs.

It only ever says that a value satisfies the schema. Of all others, and of schemas with other keywords than those here,
`jsonschema` says whether and why not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Accepts", "acceptance"]

Accepts = Callable[[Any], bool]
"""Whether a value surely satisfies the schema."""

_SILENT: Mapping[str, type] = {
    "$comment": str,
    "default": object,
    "description": str,
    "examples": list,
    "title": str,
}
"""Keywords that ask for nothing."""
_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),  # of floats like 1.0, which are integers too, `jsonschema` says so
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
_SIZES: Mapping[str, type[list[Any] | str | dict[str, Any]]] = {
    "minItems": list,
    "maxItems": list,
    "minLength": str,
    "maxLength": str,
    "minProperties": dict,
    "maxProperties": dict,
}
_NO_NUMBERS = frozenset((bool, dict, list, str, type(None)))
_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}


def acceptance(schema: Any) -> Accepts | None:
    """The quick yes of a schema of any draft; None where it has a keyword that only `jsonschema` knows.

    A schema that has one is well formed.
    """
    if not isinstance(schema, Mapping):
        return None
    checks: list[Accepts] = []
    for keyword, asked in schema.items():
        if keyword in _SILENT and isinstance(asked, _SILENT[keyword]):
            continue
        check = _check(keyword, asked)
        if check is None:
            return None
        checks.append(check)
    if len(checks) == 1:
        return checks[0]

    def accepts(value: Any) -> bool:
        for check in checks:  # noqa: SIM110 - half the cost of all()
            if not check(value):
                return False
        return True

    return accepts


def _check(keyword: str, asked: Any) -> Accepts | None:
    if keyword == "type":
        return _of_type(asked)
    if keyword in _SIZES:
        return _sized(_SIZES[keyword], asked, at_least=keyword.startswith("min"))
    if keyword in _BOUNDS:
        return _bounded(_BOUNDS[keyword], asked)
    if keyword == "required":
        return _requiring(asked)
    if keyword == "properties":
        return _with_properties(asked)
    if keyword == "items":
        return _of_items(asked)
    return None


def _are_names(asked: Any) -> bool:
    """Whether these are texts, each of them once."""
    return isinstance(asked, list) and all(isinstance(name, str) for name in asked) and len(set(asked)) == len(asked)


def _of_type(asked: Any) -> Accepts | None:
    names = [asked] if isinstance(asked, str) else asked
    if not _are_names(names) or not names or not all(name in _TYPES for name in names):
        return None
    kinds = frozenset(kind for name in names for kind in _TYPES[name])
    return lambda value: value.__class__ in kinds


def _sized(kind: type[list[Any] | str | dict[str, Any]], asked: Any, *, at_least: bool) -> Accepts | None:
    if asked.__class__ is not int or asked < 0:
        return None
    if at_least:
        return lambda value: not isinstance(value, kind) or len(value) >= asked
    return lambda value: not isinstance(value, kind) or len(value) <= asked


def _bounded(holds: Callable[[Any, Any], bool], asked: Any) -> Accepts | None:
    if asked.__class__ not in (int, float):
        return None

    def within(value: Any) -> bool:
        if value.__class__ is int or value.__class__ is float:
            return holds(value, asked)
        return value.__class__ in _NO_NUMBERS

    return within


def _requiring(asked: Any) -> Accepts | None:
    if not _are_names(asked):
        return None
    names = frozenset(asked)
    return lambda value: not isinstance(value, dict) or names <= value.keys()


def _with_properties(asked: Any) -> Accepts | None:
    if not isinstance(asked, Mapping):
        return None
    inner = {name: acceptance(schema) for name, schema in asked.items()}
    known = [(name, accepts) for name, accepts in inner.items() if accepts is not None]
    if len(known) < len(inner):
        return None
    return lambda value: (
        not isinstance(value, dict) or all(accepts(value[name]) for name, accepts in known if name in value)
    )


def _of_items(asked: Any) -> Accepts | None:
    accepts = acceptance(asked)
    if accepts is None:
        return None
    return lambda value: not isinstance(value, list) or all(map(accepts, value))
