"""One module a page: from an address and the records to plain data for its template."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["NotThere", "Page"]


class Page(NamedTuple):
    """A template, the title of the page, and what the template shows."""

    template: str
    title: str
    context: dict[str, Any]


class NotThere(Exception):
    """An address that leads to nothing; `back` is where to look instead."""

    def __init__(self, message: str, back: str) -> None:
        super().__init__(message)
        self.back = back
