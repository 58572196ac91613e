"""Keys of an original that reading it passes over: nothing holds them, so nothing can write them."""

from __future__ import annotations

from collections.abc import Iterator

from evalwright.errors import Problem
from evalwright.model.suite import Suite
from evalwright.registry import format_of, resolve

__all__ = ["unread_keys"]

_PASSED_OVER = ("nothing reads", "unknown key")
"""How warnings of the formats name keys that nobody reads."""


def unread_keys(suite: Suite) -> Iterator[Problem]:
    """One problem for each such key, with its path."""
    told = set()
    for problem in (*suite.warnings, *getattr(suite.cases, "unknown_keys", tuple)()):
        if any(words in problem.message for words in _PASSED_OVER):
            told.add(problem.key)
            yield Problem("suite", problem.message, key=problem.key)
    finder = format_of(suite.dialect).unread
    for key in resolve(finder)(suite.document) if finder is not None else ():
        if key not in told:
            yield Problem("suite", "has no effect here", key=key)
