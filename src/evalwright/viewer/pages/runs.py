"""The list of runs, newest first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from evalwright.errors import EvalwrightError
from evalwright.model.summary import RunSummary
from evalwright.reports import numbers
from evalwright.viewer.changes import ChangeCounts, ChangeTally
from evalwright.viewer.pages import Page
from evalwright.viewer.query import page_start, single_values, unknown_value, whole_number
from evalwright.viewer.shelf import RunSource, Shelf
from evalwright.viewer.trends import VariantRate, trend_of

__all__ = ["RunRow", "run_before", "run_row", "runs_before", "runs_page", "state_of"]

_PAGE = 100
_KEYS = ("q", "eval", "sort", "after")


class RunRow(NamedTuple):
    """One run; `problem` says why it cannot be read, and then there are no numbers."""

    id: str
    name: str
    problem: str
    started: datetime | None
    cells: int
    rates: list[VariantRate]
    """The rates of variants that have verdicts, the highest first."""
    variants: int
    errors: int
    cost: float | None
    duration: float | None
    state: str
    change: RunChange | None = None
    is_baseline: bool = False
    scored: bool = False
    """Whether its suite has only scores, and so no pass rate."""

    @property
    def highest(self) -> VariantRate | None:
        """The highest rate of a variant: a mean over variants would be meaningless. Of several, it has no interval, as
        being the highest is partly luck: of 10 equal variants of 60 cases, its own would miss the rate in 12 %."""
        return self.rates[0] if self.rates else None


class RunChange(NamedTuple):
    """Its variant with the highest rate against the run of the same eval before."""

    before: str
    variant: str
    counts: ChangeCounts | None

    @property
    def points(self) -> str:
        """The change over the cases of both: their rates may be of different ones. Empty until it is counted."""
        return "" if self.counts is None or self.counts.difference is None else numbers.points(self.counts.difference)


def runs_page(shelf: Shelf, changes: ChangeTally, pairs: Iterable[tuple[str, str]]) -> Page:
    """Raises BadQuery."""
    values = single_values(pairs, _KEYS)
    words, sources = values.get("q", "").lower().split(), shelf.sources()
    evals = sorted({_name(source, sources) for source in sources.values()})
    matching = [
        source for source in sources.values() if all(word in f"{source.id} {source.path}".lower() for word in words)
    ]
    if wanted := values.get("eval"):
        if wanted not in evals:
            raise unknown_value("eval", wanted, evals)
        matching = [source for source in matching if _name(source, sources) == wanted]
    sort = values.get("sort", _NEWEST_FIRST)
    matching = _sorted(shelf, matching, sort, sources)
    first = page_start(whole_number("after", values.get("after", "0")), len(matching))
    shown = matching[first : first + _PAGE]
    before = runs_before(sources)
    rows = [_compared_row(shelf, changes, source, before.get(source.id), sources) for source in shown]
    drawn = [row.name for row in rows if row.rates]
    of_eval = wanted or next((name for name in drawn if drawn.count(name) > 1), None)
    context: dict[str, Any] = {
        "rows": rows,
        "total": len(sources),
        "count": len(matching),
        "q": values.get("q", ""),
        "eval": wanted or "",
        "sort": sort,
        "sorts": _SORTS,
        "evals": evals,
        "next": _query(values, first + _PAGE) if first + _PAGE < len(matching) else "",
        "previous": _query(values, max(0, first - _PAGE)) if first else "",
        "trend": trend_of([row for row in _newest_first(rows, sources) if row.name == of_eval]),
        "trend_of": of_eval,
    }
    return Page("runs.html", "Runs · evalwright", context)


def _sorted(shelf: Shelf, runs: list[RunSource], sort: str, ids: Collection[str]) -> list[RunSource]:
    """Runs, which are the newest first, in another order; those without such a value are the last. Raises BadQuery."""
    if sort == _NEWEST_FIRST:
        return runs
    if sort not in _SORTS:
        raise unknown_value("sort", sort, list(_SORTS))
    if sort == "started":
        return runs[::-1]
    value = _VALUES[sort.removeprefix("-")]
    summaries = {run.id: shelf.summary(run) for run in runs}
    values = {
        run.id: value(run_row(summary, run, ids)) for run in runs if not isinstance(summary := summaries[run.id], str)
    }
    valued = [run for run in runs if values.get(run.id) is not None]
    in_order = sorted(valued, key=lambda run: values[run.id], reverse=sort.startswith("-"))
    return [*in_order, *(run for run in runs if values.get(run.id) is None)]


def _newest_first(rows: Iterable[RunRow], ids: Iterable[str]) -> list[RunRow]:
    """Rows in the order of the ids, which is that of time."""
    known = {row.id: row for row in rows}
    return [known[run] for run in ids if run in known]


def runs_before(sources: Mapping[str, RunSource]) -> dict[str, RunSource]:
    """The previous run of the same eval by its id; `sources` are sorted newest first."""
    runs: dict[str, RunSource] = {}
    newest: dict[str, RunSource] = {}
    for source in reversed(list(sources.values())):
        name = _name(source, sources)
        if name in newest:
            runs[source.id] = newest[name]
        newest[name] = source
    return runs


def run_before(shelf: Shelf, run: str, variant: str) -> str:
    """The id of the previous run of the same eval; empty without one, or if it has no such variant."""
    source = runs_before(shelf.sources()).get(run)
    if source is None:
        return ""
    try:  # its plan tells: counting a run that is being written would take as long for each cell that is shown
        reader, plan = source.open()
    except (EvalwrightError, OSError):
        return ""
    reader.close()
    return source.id if any(one.name == variant for one in plan.variants) else ""


def _query(query: dict[str, str], after: int) -> str:
    return f"/?{urlencode({**query, 'after': str(after)})}"


def _compared_row(
    shelf: Shelf, changes: ChangeTally, source: RunSource, older: RunSource | None, ids: Collection[str]
) -> RunRow:
    summary = shelf.summary(source)
    if isinstance(summary, str):
        return RunRow(source.id, source.id, summary, None, 0, [], 0, 0, None, None, "cannot be read")
    row = run_row(summary, source, ids)._replace(is_baseline=source.is_baseline())
    before = None if older is None else shelf.summary(older)
    if older is None or before is None or isinstance(before, str) or row.highest is None:
        return row
    variant = row.highest.variant
    if all(variant_rate.variant != variant for variant_rate in _rates(before)):
        return row
    state = before.finished_at, before.cells_total, summary.finished_at, summary.cells_total
    cells = before.cells_total + summary.cells_total
    counts = changes.of(older, source, variant, state, cells) if row.state == "finished" else None
    return row._replace(change=RunChange(older.id, variant, counts))


def _rates(summary: RunSummary) -> list[VariantRate]:
    """The highest first; none of a run that has only scores."""
    if summary.scored is True:
        return []
    rated = [
        VariantRate(v.name, v.pass_rate, v.pass_rate_ci95)
        for v in summary.variants
        if v.pass_rate_n and v.pass_rate is not None
    ]
    return sorted(rated, key=lambda rate: -rate.rate)


def run_row(summary: RunSummary, source: RunSource, ids: Collection[str] = ()) -> RunRow:
    """A run as the list shows it; `ids` are those of all runs."""
    counts: dict[str, int] = {}
    for variant in summary.variants:
        for status, number in variant.cells.items():
            counts[status] = counts.get(status, 0) + number
    costs = [v.cost_total_usd for v in summary.variants if v.cost_total_usd is not None]
    return RunRow(
        source.id,
        _name(source, ids),
        "",
        summary.started_at,
        summary.cells_total,
        _rates(summary),
        len(summary.variants),
        counts.get("error", 0),
        sum(costs) if costs else None,
        (summary.finished_at - summary.started_at).total_seconds() * 1000,
        state_of(source, summary),
        scored=summary.scored is True,
    )


def _name(source: RunSource, ids: Collection[str]) -> str:
    """The eval's name, which ends the id; a suffix `-2` distinguishes runs of the same second."""
    first, _, number = source.id.rpartition("-")
    head, _, name = (first if number.isdecimal() and first in ids else source.id).partition("_")
    return name or head


_NEWEST_FIRST = "-started"
_SORTS = {
    _NEWEST_FIRST: "newest first",
    "started": "oldest first",
    "name": "eval",
    "pass_rate": "pass rate, lowest first",
    "-pass_rate": "pass rate, highest first",
    "-errors": "errors, most first",
    "-cells": "cells, most first",
    "-cost": "cost, highest first",
    "-duration": "duration, longest first",
}
_VALUES: Mapping[str, Callable[[RunRow], Any]] = {
    "name": lambda row: row.name,
    "pass_rate": lambda row: row.highest and row.highest.rate,
    "errors": lambda row: row.errors,
    "cells": lambda row: row.cells,
    "cost": lambda row: row.cost,
    "duration": lambda row: row.duration,
}


def state_of(source: RunSource, summary: RunSummary) -> str:
    if source.is_written():  # also by a retry or a re-evaluation, when it was finished before
        return "running"
    return "interrupted" if summary.cells_missing or summary.status != "complete" else "finished"
