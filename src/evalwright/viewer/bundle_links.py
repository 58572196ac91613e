"""Addresses of pages as files, each relative to the page that it is on."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from evalwright.viewer.filters import Filter
from evalwright.viewer.rendering import assets

__all__ = ["BundleLinks"]

_PAGE = 100


class BundleLinks:
    """Where pages are in a bundle, seen from the page `here`. Linked pages are noted, to be written as well."""

    static = True

    def __init__(
        self,
        runs: Collection[str],
        base: Filter,
        cells_of: Callable[[str], Collection[str]],
        variants: Sequence[str] = (),
    ) -> None:
        """`cells_of` gives the keys of the cells of a run that have pages. `variants` are the compared ones;
        addresses do not name the first."""
        self.here = "index.html"
        self.base = base
        self.lists: dict[str, tuple[str, Filter]] = {}
        """Pages of cells, by file."""
        self.further: dict[str, tuple[str, str, str]] = {}
        """Files of single texts: of which run, of which cell, and where it is in the cell's records."""
        self._runs = set(runs)
        self._cells_of = cells_of
        self._variants = list(variants)

    def has(self, run: str) -> bool:
        return run in self._runs

    def has_cell(self, run: str, key: str) -> bool:
        return self.has(run) and key in self._cells_of(run)

    def _to(self, target: str) -> str:
        return quote(posixpath.relpath(target, posixpath.dirname(self.here) or "."))

    def asset(self, name: str) -> str:
        return self._to(f"assets/{assets()[name].name}")

    def cells_script(self, run: str) -> str:
        """The script that the filter in the browser reads."""
        return self._to(f"assets/cells-{run}.js")

    def runs(self) -> str:
        return self._to("index.html")

    def run(self, run: str, chosen: Filter | None = None, **changes: Any) -> str:
        wanted = replace(chosen or self.base, **{"after": 0, **changes})
        name = "index"
        if wanted.reason:
            name = f"reason-{wanted.reason[0]}"
            wanted = Filter(reason=wanted.reason[:1], after=wanted.after)
        elif wanted.status and wanted.status != self.base.status:
            name = f"status-{wanted.status[0]}"
            wanted = Filter(status=wanted.status[:1], after=wanted.after)
        else:
            wanted = replace(self.base, after=wanted.after)
        if wanted.after:
            name = f"{'page' if name == 'index' else name}-{wanted.after // _PAGE + 1}"
        path = f"runs/{run}/{name}.html"
        if self.has(run):
            self.lists.setdefault(path, (run, wanted))
        return self._to(path)

    def cell(self, run: str, key: str, chosen: Filter | None = None) -> str:
        return self._to(f"runs/{run}/cells/{key}.html")

    def messages(self, run: str, key: str, chosen: Filter) -> str:
        return self._to(f"runs/{run}/cells/{key}-messages.html")

    def records(self, run: str, key: str) -> str:
        return self.whole(run, key, "")

    def whole(self, run: str, key: str, part: str) -> str:
        ending = f"{hashlib.sha256(part.encode('utf-8', 'replace')).hexdigest()[:8]}.txt" if part else "records.json"
        path = f"runs/{run}/cells/{key}-{ending}"
        self.further[path] = run, key, part
        return self._to(path)

    def trials(self, run: str, case: str, variant: str) -> str:
        return ""

    def compare(
        self, change: str | Sequence[str] = "", after: int | str = 0, vb: str = "", **_: str | Sequence[str]
    ) -> str:
        return self._to(self.comparison(change, after, vb))

    def comparison(self, change: str | Sequence[str], after: int | str, variant: str) -> str:
        """The file of a page of the comparison of a variant; a number stands for its name, which can be anything."""
        place = self._variants.index(variant) if variant in self._variants else 0
        folder = f"compare/variant-{place + 1}" if place else "compare"
        chosen = change if isinstance(change, str) else "".join(change[:1])
        name = chosen.replace(" ", "-").lower() or "index"
        number = int(after or 0) // _PAGE + 1
        if name == "unchanged":
            name = "index"
        return f"{folder}/{name}{f'-{number}' if number > 1 else ''}.html"

    def compared_cell(self, key: str, **_: str | Sequence[str]) -> str:
        return self._to(f"compare/cells/{key}.html")
