"""Values as Nunjucks templates see them, with the behaviour of JavaScript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evalwright.formats.promptfoo.values import template_text

__all__ = ["MOST_ITEMS", "List", "Mapped", "in_template", "mapped"]

MOST_ITEMS = 1_000_000
"""Items of a list that a template makes from a number; without a limit, it could take all memory."""


class List(list[Any]):
    """A list that is true even if it is empty, and printed as its items separated by commas."""

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


def mapped(items: Iterable[tuple[str, Any]]) -> Mapped:
    """A mapping with these keys, of which those that are whole numbers come first, in ascending order."""
    found = Mapped(items)
    if not any(map(str.isdecimal, found)):
        return found
    return Mapped(sorted(found.items(), key=lambda item: (0, int(item[0])) if item[0].isdecimal() else (1, 0)))


def in_template(value: Any) -> Any:
    """The equivalent of plain data."""
    if isinstance(value, Mapping):
        return mapped((key, in_template(item)) for key, item in value.items())
    return List(map(in_template, value)) if isinstance(value, (list, tuple)) else value
