"""Addresses of pages: of a server, and relative ones of a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from evalwright.viewer.filters import Filter
from evalwright.viewer.rendering import assets

__all__ = ["Links", "ServerLinks"]


class Links(Protocol):
    """The addresses of pages. `static`: without a server, so no filters, labelling, or comparison of arbitrary runs."""

    static: bool

    def has(self, run: str) -> bool: ...

    def has_cell(self, run: str, key: str) -> bool: ...

    def asset(self, name: str) -> str: ...

    def runs(self) -> str: ...

    def run(self, run: str, chosen: Filter | None = None, **changes: Any) -> str: ...

    def cell(self, run: str, key: str, chosen: Filter | None = None) -> str: ...

    def messages(self, run: str, key: str, chosen: Filter) -> str:
        """The page of a cell with all its messages."""

    def trials(self, run: str, case: str, variant: str) -> str:
        """Empty if trials have no page of their own."""


class ServerLinks:
    """Addresses of pages of the server, where every run and cell has pages."""

    static = False

    def has(self, run: str) -> bool:
        """Whether the run has pages."""
        return True

    def has_cell(self, run: str, key: str) -> bool:
        """Whether the cell has a page."""
        return True

    def asset(self, name: str) -> str:
        return f"/assets/{assets()[name].name}"

    def runs(self) -> str:
        return "/"

    def run(self, run: str, chosen: Filter | None = None, **changes: Any) -> str:
        return f"/runs/{_part(run)}{(chosen or Filter()).query(**changes)}"

    def cell(self, run: str, key: str, chosen: Filter | None = None) -> str:
        return f"/runs/{_part(run)}/cells/{key}{'' if chosen is None else chosen.query(after=chosen.after)}"

    def messages(self, run: str, key: str, chosen: Filter) -> str:
        query = urlencode([("messages", "all"), *chosen.pairs()])
        return f"/runs/{_part(run)}/cells/{key}?{query}"

    def records(self, run: str, key: str) -> str:
        return f"/runs/{_part(run)}/cells/{key}.json"

    def whole(self, run: str, key: str, part: str) -> str:
        """A text of a cell in full."""
        return f"/runs/{_part(run)}/cells/{key}/whole?{urlencode({'part': part})}"

    def table(self, run: str, chosen: Filter) -> str:
        """The chosen cells as CSV, which has the same columns always."""
        return f"/runs/{_part(run)}/cells.csv{chosen.query(columns=())}"

    def label(self, run: str, **pairs: str) -> str:
        query = urlencode({name: value for name, value in pairs.items() if value})
        return f"/runs/{_part(run)}/label{'?' if query else ''}{query}"

    def labels(self, run: str) -> str:
        """Where labels are posted to."""
        return f"/runs/{_part(run)}/labels"

    def events(self, run: str) -> str:
        """The progress of a run that is being written."""
        return f"/runs/{_part(run)}/events"

    def trials(self, run: str, case: str, variant: str) -> str:
        return f"/runs/{_part(run)}/trials?{urlencode({'case': case, 'variant': variant})}"

    def compare(self, **pairs: str | Sequence[str]) -> str:
        query = urlencode({name: value for name, value in pairs.items() if value}, doseq=True)
        return f"/compare?{query}"

    def compared_cell(self, key: str, **pairs: str | Sequence[str]) -> str:
        query = urlencode({name: value for name, value in pairs.items() if value}, doseq=True)
        return f"/compare/cells/{key}?{query}"


def _part(text: str) -> str:
    return quote(text, safe="")
