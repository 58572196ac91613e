"""The list of runs, newest first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from evalwright.errors import did_you_mean
from evalwright.model.summary import RunSummary
from evalwright.viewer.filters import BadQuery
from evalwright.viewer.pages import Page
from evalwright.viewer.shelf import RunSource, Shelf
from evalwright.viewer.trends import trend_of

__all__ = ["RunRow", "run_row", "runs_before", "runs_page", "state_of"]

_PAGE = 100
_KEYS = ("q", "eval", "after")


class RunRow(NamedTuple):
    """One run; `problem` says why it cannot be read, and then there are no numbers."""

    id: str
    name: str
    problem: str
    started: datetime | None
    cells: int
    rate: float | None
    interval: tuple[float, float] | None
    errors: int
    cost: float | None
    duration: float | None
    state: str
    change: str
    is_baseline: bool = False


def runs_page(shelf: Shelf, pairs: Iterable[tuple[str, str]]) -> Page:
    """Raises BadQuery."""
    given = dict(pairs)
    if unknown := [name for name in given if name not in _KEYS]:
        raise BadQuery(f"unknown key {unknown[0]!r}{did_you_mean(unknown[0], _KEYS)} (there are: {', '.join(_KEYS)})")
    after = given.get("after", "0") or "0"
    if not (after.isascii() and after.isdigit() and len(after) < 10):
        raise BadQuery(f"'after' is {after!r}, expected a whole number from 0")
    words, first = given.get("q", "").lower().split(), int(after)
    sources = shelf.sources()
    matching = [one for one in sources.values() if all(word in f"{one.id} {one.path}".lower() for word in words)]
    if wanted := given.get("eval"):
        matching = [one for one in matching if _name(one, sources) == wanted]
    shown = matching[first : first + _PAGE]
    before = runs_before(sources)
    rows = [_compared_row(shelf, one, before.get(one.id), sources) for one in shown]
    names = sorted({row.name for row in rows})
    context: dict[str, Any] = {
        "rows": rows,
        "total": len(sources),
        "count": len(matching),
        "q": given.get("q", ""),
        "eval": wanted or "",
        "evals": sorted({*names, *([wanted] if wanted else [])}),
        "next": _query(given, first + _PAGE) if first + _PAGE < len(matching) else "",
        "previous": _query(given, max(0, first - _PAGE)) if first else "",
        "trend": trend_of([row for row in rows if row.name == (wanted or (names[0] if len(names) == 1 else None))]),
    }
    return Page("runs.html", "Runs · evalwright", context)


def runs_before(sources: Mapping[str, RunSource]) -> dict[str, RunSource]:
    """By id the run of the same eval before; `sources` are the newest first."""
    found: dict[str, RunSource] = {}
    newest: dict[str, RunSource] = {}
    for one in reversed(list(sources.values())):
        name = _name(one, sources)
        if name in newest:
            found[one.id] = newest[name]
        newest[name] = one
    return found


def _query(given: dict[str, str], after: int) -> str:
    return f"/?{urlencode({**given, 'after': str(after)})}"


def _compared_row(shelf: Shelf, source: RunSource, older: RunSource | None, ids: Collection[str]) -> RunRow:
    summary = shelf.summary(source)
    if isinstance(summary, str):
        return RunRow(source.id, source.id, summary, None, 0, None, None, 0, None, None, "cannot be read", "")
    return run_row(summary, source, ids)._replace(
        change=_change(shelf, summary, older), is_baseline=source.is_baseline()
    )


def run_row(summary: RunSummary, source: RunSource, ids: Collection[str] = ()) -> RunRow:
    """A run as the list shows it; `ids` are those of all runs."""
    counts: dict[str, int] = {}
    for variant in summary.variants:
        for status, number in variant.cells.items():
            counts[status] = counts.get(status, 0) + number
    judged = [v for v in summary.variants if v.pass_rate is not None and v.pass_rate_n]
    # of several variants the best: their mean would be the rate of nothing
    best = max(judged, key=lambda v: v.pass_rate or 0.0, default=None)
    costs = [v.cost_total_usd for v in summary.variants if v.cost_total_usd is not None]
    return RunRow(
        source.id,
        _name(source, ids),
        "",
        summary.started_at,
        summary.cells_total,
        best.pass_rate if best else None,
        best.pass_rate_ci95 if best else None,
        counts.get("error", 0),
        sum(costs) if costs else None,
        (summary.finished_at - summary.started_at).total_seconds() * 1000,
        state_of(source, summary),
        "",
    )


def _name(source: RunSource, ids: Collection[str]) -> str:
    """The eval's name, which the id ends with; `-2` behind it tells runs of one second apart."""
    first, _, number = source.id.rpartition("-")
    head, _, name = (first if number.isdecimal() and first in ids else source.id).partition("_")
    return name or head


def state_of(source: RunSource, summary: RunSummary) -> str:
    if not summary.cells_missing and summary.status == "complete":
        return "finished"
    return "running" if source.is_written() else "interrupted"


def _change(shelf: Shelf, summary: RunSummary, older: RunSource | None) -> str:
    """Against the run of the same eval before."""
    if older is None:
        return ""
    before = shelf.summary(older)
    if isinstance(before, str):
        return ""
    known = {v.name: v.pass_rate for v in before.variants if v.pass_rate_n}
    changes = [
        (v.pass_rate or 0.0) - (known[v.name] or 0.0) for v in summary.variants if v.pass_rate_n and v.name in known
    ]
    return f"{100 * max(changes, key=abs):+.1f} pp".replace("-", "−") if changes else ""
