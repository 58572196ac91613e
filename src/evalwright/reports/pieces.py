"""The text of a report, in pieces if it need not be held as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["pieces_of"]


def pieces_of(report: Any, *arguments: Any) -> Iterator[str]:
    """The text of a report about what it is given: a reader, a summary and, if it takes one, a context."""
    if hasattr(report, "pieces"):
        yield from report.pieces(*arguments)
    else:
        yield report.render(*arguments)
