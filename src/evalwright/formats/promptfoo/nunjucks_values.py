"""Values as Nunjucks templates see them, with the behaviour of JavaScript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.formats.promptfoo.values import template_text

__all__ = ["List", "Mapped", "in_template"]


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


def in_template(value: Any) -> Any:
    """The equivalent of plain data."""
    if isinstance(value, Mapping):
        return Mapped({key: in_template(item) for key, item in value.items()})
    return List(map(in_template, value)) if isinstance(value, (list, tuple)) else value
