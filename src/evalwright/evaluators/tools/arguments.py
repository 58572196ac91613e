"""Expected arguments compared with those of a call (evalh 2.0, `args_match`)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.sandbox.patterns import compiled_pattern, search

__all__ = ["matches_subset"]

_REGEX = "~="


def matches_subset(expected: Any, actual: Any) -> bool:
    """Whether everything that is expected is there.

    Mappings are compared as subsets at every depth, lists element by element; a string `~=pattern` is searched for in a
    string; everything else is compared by Python equality. Raises EvaluatorError for an invalid pattern once it is
    reached, and for one that takes too long.
    """
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            key in actual and matches_subset(value, actual[key]) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and len(expected) == len(actual) and all(map(matches_subset, expected, actual))
    if isinstance(expected, str) and expected.startswith(_REGEX):
        return isinstance(actual, str) and search(_pattern(expected[len(_REGEX) :]), actual) is not None
    return bool(expected == actual)


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    try:
        return compiled_pattern(text)
    except ValueError as error:
        raise EvaluatorError(f"invalid pattern {text!r}: {error}", "error") from error
