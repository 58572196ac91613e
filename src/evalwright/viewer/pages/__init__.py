"""One module per page: from an address and the records to plain data for its template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from evalwright.model.plan import Plan
from evalwright.viewer.records import StoredCell
from evalwright.viewer.rendering import page_text

if TYPE_CHECKING:
    from evalwright.viewer.table import CellRow, CellTable

__all__ = ["LARGEST", "Page", "PageNotFound", "ShownRun", "StillReading", "table_of_cells"]

LARGEST = 100_000
"""Bytes of a page without its pictures, which have a limit of their own; except one that was asked to show
everything."""
_PICTURE = re.compile(r'<img class="picture" src="[^"]*"')


class Page(NamedTuple):
    """A template, the title of the page, and what the template shows."""

    template: str
    title: str
    context: dict[str, Any]
    smaller: Callable[[], Page] | None = None
    """The same page with less on it."""

    def fitted(self, common: Mapping[str, Any]) -> tuple[Page, str]:
        """This page, or the first smaller one that is not too large, and its HTML; `common` is shown by all pages."""
        text = page_text(self.template, {**common, "title": self.title, **self.context})
        if self.smaller is None or len(_PICTURE.sub("", text).encode("utf-8", "replace")) <= LARGEST:
            return self, text
        return self.smaller().fitted(common)


class ShownRun(Protocol):
    """A run as the page of a cell needs it."""

    @property
    def id(self) -> str: ...

    @property
    def path(self) -> str:
        """The path of the run for commands."""

    @property
    def plan(self) -> Plan: ...

    @property
    def scored(self) -> bool:
        """Whether its suite has only scores: then nothing passed or failed."""

    @property
    def problem(self) -> str | None:
        """Why there is no table."""

    @property
    def table(self) -> CellTable | None:
        """None while the table is being made."""

    @property
    def artifacts(self) -> Path: ...

    @property
    def has_artifacts(self) -> bool: ...

    def records(self, row: CellRow) -> StoredCell: ...


class PageNotFound(Exception):
    """An address that leads to nothing; `back` is where to look instead."""

    def __init__(self, message: str, back: str) -> None:
        super().__init__(message)
        self.back = back


class StillReading(Exception):
    """The cells of a run are still being read: later, the same address leads to them."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"the cells of {run_id} are still being read")
        self.run_id = run_id


def table_of_cells(run: ShownRun) -> CellTable:
    """Raises StillReading while it is being made, and PageNotFound if it cannot be."""
    table = run.table
    if table is not None:
        return table
    if run.problem is not None:
        raise PageNotFound(run.problem, f"/runs/{run.id}")
    raise StillReading(run.id)
