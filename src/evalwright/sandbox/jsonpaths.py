"""JSONPaths whose regular expressions are limited in time, like all others that come from users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jsonpath_ng.ext.filter import Expression
from jsonpath_ng.ext.parser import parse

from evalwright.sandbox.patterns import search

__all__ = ["parsed"]


def parsed(path: str) -> Any:
    """A path of jsonpath-ng; `find` raises EvaluatorError (timeout) at a filter `=~` that takes too long.

    Raises any kind of exception for an invalid path: the parser has no class of its own for them.
    """
    tree = parse(path)
    for node in _nodes(tree):
        if isinstance(node, Expression) and node.op == "=~":
            node.__class__ = _Search  # the parser has no way to be given another class for filters
    return tree


def _nodes(value: Any) -> Iterator[Any]:
    yield value
    for inner in value if isinstance(value, (list, tuple)) else getattr(value, "__dict__", {}).values():
        yield from _nodes(inner)


class _Search(Expression):
    def find(self, datum: Any) -> list[Any]:
        pattern = re.compile(self.value)
        return [
            match for match in self.target.find(datum) if isinstance(match.value, str) and search(pattern, match.value)
        ]
