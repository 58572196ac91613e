"""JSON Schemas whose patterns are limited in time, like all patterns that users write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from evalwright.sandbox.patterns import search

__all__ = ["with_bounded_patterns"]

_Keyword = Callable[[Any, Any, Any, Any], Iterable[Any] | None]

_SEARCHING_AGAIN = ("additionalProperties", "unevaluatedProperties")
"""Keywords that search again for the patterns of `patternProperties`, their own or those of neighbouring schemas."""


def with_bounded_patterns(validator_class: Any, schema: Any) -> Any:
    """The validator class, except that validating raises EvaluatorError (timeout) for a pattern that takes too long."""
    from jsonschema.validators import extend

    patterns = tuple(dict.fromkeys(_patterns(schema)))
    known = validator_class.VALIDATORS
    keywords = {name: _trying(patterns, known[name]) for name in _SEARCHING_AGAIN if patterns and name in known}
    return extend(_own_validator(validator_class), keywords) if keywords else _own_validator(validator_class)  # type: ignore[no-untyped-call]


@cache
def _own_validator(validator_class: Any) -> Any:
    from jsonschema.validators import extend

    keywords = {"pattern": _pattern, "patternProperties": _pattern_properties}
    return extend(validator_class, keywords)  # type: ignore[no-untyped-call]


def _patterns(schema: Any) -> Iterator[str]:
    """Every pattern of a schema that may be searched for in property names."""
    if isinstance(schema, Mapping):
        stated = schema.get("patternProperties")
        yield from stated if isinstance(stated, Mapping) else ()
    for inner in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ():
        yield from _patterns(inner)


def _trying(patterns: tuple[str, ...], keyword: _Keyword) -> _Keyword:
    """The keyword, judged by jsonschema alone once every pattern that it may search for has finished in time."""

    def judge(validator: Any, value: Any, value_found: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(value_found, "object"):
            for name in value_found:
                for pattern in patterns:
                    search(re.compile(pattern), name)
        yield from keyword(validator, value, value_found, schema) or ()

    return judge


def _pattern(validator: Any, pattern: str, value_found: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(value_found, "string") and not search(re.compile(pattern), value_found):
        yield ValidationError(f"{value_found!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], value_found: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(value_found, "object"):
        for pattern, inner in patterns.items():
            for key, value in value_found.items():
                if search(re.compile(pattern), key):
                    yield from validator.descend(value, inner, path=key, schema_path=pattern)
