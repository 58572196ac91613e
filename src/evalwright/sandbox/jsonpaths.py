"""JSONPaths whose regular expressions are bounded in time like all others that users give."""

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

    The parser has no exception class of its own for all of its refusals: any may be raised.
    """
    tree = parse(path)
    for node in _nodes(tree):
        if isinstance(node, Expression) and node.op == "=~":
            node.__class__ = _Search
    return tree


def _nodes(value: Any) -> Iterator[Any]:
    yield value
    for inner in value if isinstance(value, (list, tuple)) else getattr(value, "__dict__", {}).values():
        yield from _nodes(inner)


class _Search(Expression):
    def find(self, datum: Any) -> list[Any]:
        pattern = re.compile(self.value)
        return [
            found for found in self.target.find(datum) if isinstance(found.value, str) and search(pattern, found.value)
        ]
