"""The same pages as files: for CI artifacts, GitHub Pages or mail. No server, no network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from evalwright.errors import InputError, counted
from evalwright.model.result import NOT_PASSED
from evalwright.viewer.bundle_links import BundleLinks
from evalwright.viewer.filters import Filter
from evalwright.viewer.labels import StoredLabel
from evalwright.viewer.pages import Page, PageNotFound
from evalwright.viewer.pages.cell import page_of_cell, stored_records, whole_text
from evalwright.viewer.pages.compare import ListedPairs, Sides, compare_context
from evalwright.viewer.pages.compared_cell import page_of_pair
from evalwright.viewer.pages.run import PAGE, run_context
from evalwright.viewer.pages.runs import run_row
from evalwright.viewer.pairing import CHANGES, PairedRuns
from evalwright.viewer.rendering import assets
from evalwright.viewer.shelf import OpenRun
from evalwright.viewer.table import CellPlace, CellRow
from evalwright.viewer.texts import first_part, visible

__all__ = ["Bundle"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; form-action 'none'; base-uri 'none'"
)
Comparison = tuple[Sides, PairedRuns]
_BYTES_OF_A_CELL = 11_000
_LARGEST_ROW = 250
"""Bytes of a cell in the data that the filter in the browser reads."""


class Bundle:
    """The content of a bundle: runs, which of their cells, and a comparison for each variant that two runs share."""

    def __init__(
        self,
        runs: list[OpenRun],
        only: str = "all",
        compared: Sequence[Comparison] = (),
        *,
        with_labels: bool = False,
    ) -> None:
        self._runs, self._only, self._compared, self._with_labels = runs, only, compared, with_labels
        base = Filter(status=NOT_PASSED) if only == "not-passed" else Filter()
        variants = [sides.variant_b for sides, _ in compared]
        self._links = BundleLinks([run.id for run in runs], base, self._cell_keys, variants)
        self._shown_rows: dict[str, list[CellRow]] = {}
        self._shown_keys: dict[str, set[str]] = {}
        self.unread: list[str] = []
        """The records that cannot be read; known once the runs have been checked."""

    def check(self, limit: int) -> None:
        """Raises InputError for more cells and changed cases than `limit`, and for runs that cannot be shown."""
        for run in self._runs:
            run.whole_table()
            self.unread += run.unread
        cells = sum(len(self._rows(run)) for run in self._runs)
        changed = sum(paired.count(CHANGES[:-1]) for _, paired in self._compared)
        if (number := cells + changed) > limit:
            size = number * _BYTES_OF_A_CELL / 1e6
            what = counted(cells, "cell") + (f" and {counted(changed, 'changed case')}" if changed else "")
            fewer = "--only not-passed leaves passed cells out, " if self._only == "all" else ""
            raise InputError(
                f"{what} would be {number:,} pages, about {size:,.0f} MB; the limit is {limit:,}: "
                f"{fewer}--limit-cells raises it"
            )

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Every file with its path in the bundle."""
        for asset in assets().values():
            yield f"assets/{asset.name}", asset.content
        yield self._page("index.html", "runs.html", "Runs · evalwright", self._list())
        for run in self._runs:
            yield f"assets/cells-{run.id}.js", _cells_script(run, self._rows(run))
            yield from self._cells(run)
        yield from self._lists()
        for sides, paired in self._compared:
            yield from self._comparison(sides, paired)
        yield from self._texts()

    def _page(self, path: str, template: str, title: str, context: dict[str, Any]) -> tuple[str, bytes]:
        _, text = self._page_within_limit(path, Page(template, title, context))
        return path, text

    def _page_within_limit(self, path: str, page: Page) -> tuple[Page, bytes]:
        self._links.here = path
        common = {"links": self._links, "labels": False, "policy": POLICY, "left_out": self._left_out()}
        shown, text = page.fitted(common)
        return shown, "\n".join(filter(None, _outside_of_texts(text))).encode("utf-8", "replace")

    def _left_out(self) -> str:
        if self._only == "all":
            return ""
        left = sum(run.whole_table().total - len(self._rows(run)) for run in self._runs)
        which = "passed cells are" if self._only == "not-passed" else "cells that did not change are"
        return f"{which} left out: {left:,}"

    def _list(self) -> dict[str, Any]:
        newest_first = sorted(self._runs, key=lambda run: (run.plan.started_at.astimezone(UTC), run.id), reverse=True)
        return {
            "rows": [run_row(run.summary, run.source) for run in newest_first],
            "total": len(self._runs),
            "count": len(self._runs),
            "q": "",
            "eval": "",
            "evals": [],
            "next": "",
            "previous": "",
            "trend": None,
            "trend_of": None,
            "compared": bool(self._compared),
        }

    def _rows(self, run: OpenRun) -> list[CellRow]:
        if run.id not in self._shown_rows:
            self._shown_rows[run.id] = self._chosen_rows(run)
        return self._shown_rows[run.id]

    def _cell_keys(self, run_id: str) -> set[str]:
        if run_id not in self._shown_keys:
            run = next(shown_run for shown_run in self._runs if shown_run.id == run_id)
            self._shown_keys[run_id] = {row.key for row in self._rows(run)}
        return self._shown_keys[run_id]

    def _chosen_rows(self, run: OpenRun) -> list[CellRow]:
        """With `changed`, every trial of the cases that changed, and of variants that the earlier run does not have."""
        rows = list(run.whole_table().every(self._links.base))
        if self._only != "changed":
            return rows
        compared = {sides.variant_b for sides, _ in self._compared}
        changed = {
            (pair.case_key, sides.variant_b)
            for sides, paired in self._compared
            for pair in paired.pairs(CHANGES[:-1], limit=-1)
        }
        return [row for row in rows if row.variant not in compared or (row.case_key, row.variant) in changed]

    def _cells(self, run: OpenRun) -> Iterator[tuple[str, bytes]]:
        rows = self._rows(run)
        labels = run.labels.by_answer() if self._with_labels else {}
        for number, row in enumerate(rows):
            before = rows[number - 1] if number else None
            after = rows[number + 1] if number + 1 < len(rows) else None
            labelled = labels.get((row.case_key, row.variant, row.trial, row.attempt), [])
            yield from self._cell(run, row, (number + 1, len(rows), before, after), labelled)

    def _cell(
        self, run: OpenRun, row: CellRow, place: CellPlace, labels: Sequence[StoredLabel]
    ) -> Iterator[tuple[str, bytes]]:
        """Its page and, if that leaves out messages, one with all of them."""
        path = f"runs/{run.id}/cells/{row.key}"
        for whole, name in ((False, f"{path}.html"), (True, f"{path}-messages.html")):
            self._links.here = name
            try:
                page = page_of_cell(run, row, self._links.base, self._links, labels, place, whole=whole)
                page, text = self._page_within_limit(name, page)
            except PageNotFound as error:
                back = self._links.run(run.id)
                context = {"heading": "Cannot be read", "text": f"{row.case_key}: {error}", "back": back, "runs": []}
                yield self._page(name, "problem.html", f"{row.case_key} · evalwright", context)
                return
            yield name, text
            if not (
                page.context["messages_hidden"] or page.context["tool_calls"].hidden or page.context["spans"].left_out
            ):
                return

    def _lists(self) -> Iterator[tuple[str, bytes]]:
        """Pages of cells, and the pages they link to, until all are written."""
        written: set[str] = set()
        changed = {run.id: self._rows(run) for run in self._runs} if self._only == "changed" else {}
        for run in self._runs:
            self._links.run(run.id)
            for status in ("fail", "error", "borderline", "skip", "pass"):
                if (
                    self._only != "changed"
                    and run.whole_table().count(Filter(status=(status,)))
                    and self._is_shown(status)
                ):
                    self._links.run(run.id, None, status=(status,))
        while waiting := self._links.lists.keys() - written:
            for path in sorted(waiting):
                written.add(path)
                run_id, chosen = self._links.lists[path]
                run = next(shown_run for shown_run in self._runs if shown_run.id == run_id)
                self._links.here = path
                context = run_context(run, chosen, self._links)
                if run_id in changed:
                    context = _only_these(context, changed[run_id], chosen)
                yield self._page(path, "run.html", f"{run.plan.name} · {run.id} · evalwright", context)

    def _is_shown(self, status: str) -> bool:
        return not self._links.base.status or status in self._links.base.status

    def _comparison(self, sides: Sides, paired: PairedRuns) -> Iterator[tuple[str, bytes]]:
        lists: list[tuple[str, list[str]]] = [("", list(CHANGES[:-1]))]
        counts = paired.counts()
        lists += [(name, [name]) for name in CHANGES[:-1] if counts.get(name) or name in ("worse", "better")]
        for name, shown in lists:
            for after in range(0, max(1, paired.count(shown)), PAGE):
                path = self._links.comparison(name, after, sides.variant_b)
                context = compare_context(sides, paired, ListedPairs((name,) if name else (), after=after))
                yield self._page(path, "compare.html", "Compare · evalwright", context)
        for pair in paired.pairs(CHANGES[:-1], limit=-1):
            path = f"compare/cells/{pair.key}.html"
            self._links.here = path
            _, text = self._page_within_limit(path, page_of_pair(sides, paired, pair, self._links))
            yield path, text

    def _texts(self) -> Iterator[tuple[str, bytes]]:
        """Cell by cell, as reading the records of one takes longer than writing a text of them."""
        known = [*self._runs, *(run for sides, _ in self._compared for run in (sides.a, sides.b))]
        files = sorted(self._links.further.items(), key=itemgetter(1))
        for (run_id, key), of_cell in groupby(files, key=lambda file: file[1][:2]):
            records = stored_records(next(run for run in known if run.id == run_id), key)
            for path, (_, _, part) in of_cell:
                if part:
                    yield path, whole_text(records, part).encode("utf-8", "replace")
                else:
                    yield path, msgspec.json.format(msgspec.json.encode(records), indent=2)


def _only_these(context: dict[str, Any], rows: list[CellRow], chosen: Filter) -> dict[str, Any]:
    """A page of cells for a bundle that contains only some of them."""
    following = Filter(after=chosen.after + PAGE) if chosen.after + PAGE < len(rows) else None
    before = Filter(after=max(0, chosen.after - PAGE)) if chosen.after else None
    shown = {
        "rows": rows[chosen.after : chosen.after + PAGE],
        "count": len(rows),
        "next": following,
        "previous": before,
    }
    return {**context, **shown, "reasons": [], "more_reasons": 0}


def _outside_of_texts(page: str) -> Iterator[str]:
    """The lines of a page, without what indents them; a `pre` is one of them, as its lines are an author's."""
    for place, part in enumerate(re.split(r"(<pre\b.*?</pre>)", page, flags=re.DOTALL)):
        if place % 2:
            yield part
        else:
            yield from part.split("\n")


def _cells_script(run: OpenRun, rows: list[CellRow]) -> bytes:
    """The cells as the filter in the browser reads them: a function call with data, nothing else."""
    table = run.whole_table()
    texts = table.texts([row.number for row in rows])
    lines = []
    for row in rows:
        names = visible(row.case_key), visible(row.variant), visible("\n".join(row.failed_evaluators))
        known = [row.key, *names[:2], row.trial, row.status or "", names[2]]
        known += [first_part(row.answer, 60), row.latency, row.cost, row.score]
        fixed = msgspec.json.encode(known)
        room = max(0, _LARGEST_ROW - len(fixed) - 8)
        text = " ".join(texts.get(row.number, "").split())[:200]
        while len(text.encode("utf-8", "replace")) > room:
            text = text[: len(text) * 3 // 4]
        lines.append(msgspec.json.encode([*known, text]).decode())
    joined = ",\n".join(lines).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f"evalwrightCells([\n{joined}\n])\n".encode("utf-8", "replace")
