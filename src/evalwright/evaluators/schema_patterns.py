"""JSON Schema whose patterns are bounded in time like all others that users give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from evalwright.evaluators.patterns import search

__all__ = ["bounded"]


@cache
def bounded(validator_class: Any) -> Any:
    """The class of validators, but validating raises EvaluatorError (timeout) at a pattern that takes too long."""
    from jsonschema.validators import extend

    keywords = {"pattern": _pattern, "patternProperties": _pattern_properties}
    return extend(validator_class, keywords)  # type: ignore[no-untyped-call]


def _pattern(validator: Any, pattern: str, found: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(found, "string") and not search(re.compile(pattern), found):
        yield ValidationError(f"{found!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], found: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(found, "object"):
        for pattern, inner in patterns.items():
            for key, value in found.items():
                if search(re.compile(pattern), key):
                    yield from validator.descend(value, inner, path=key, schema_path=pattern)
