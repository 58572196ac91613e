"""A run as one self-contained HTML page: no script, no network, readable in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from evalwright.errors import counted
from evalwright.model.protocols import RunReader
from evalwright.model.summary import ComparisonReport, GateOutcome, RunSummary
from evalwright.reports import numbers
from evalwright.reports.columns import (
    COMPARISON_COLUMNS,
    TRIAL_COLUMNS,
    Column,
    Unit,
    evaluator_columns,
    evaluator_rows,
    trial_rows,
    used,
    variant_columns,
)
from evalwright.reports.gates import gate_decisions
from evalwright.reports.html.cells import cells_shown
from evalwright.reports.html.elements import Child, Html, element, side_by_side
from evalwright.reports.intervals import forest_of_deltas
from evalwright.reports.text import Paint

__all__ = ["HtmlPage"]

Row = TypeVar("Row")

_LEFT = (Unit.NAME, Unit.TEXT, Unit.CASES)
_MOST_IDS = 50
_STYLE = Html(
    ":root{color-scheme:light dark;--ink:#1c2024;--soft:#5b636b;--line:#d9dde2;--card:#f6f7f9;--pass:#0b6b35;"
    "--fail:#b3261e;--error:#8a3fb0;--mark:#2f6fd6}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e8ea;--soft:#a5abb2;--line:#3a3f45;--card:#1f2327;"
    "--pass:#5fd08f;--fail:#ff8a80;--error:#d7a6f0;--mark:#7eb0ff}}"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);margin:2rem auto;max-width:72rem;padding:0 1rem}"
    "h1{font-size:1.5rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2rem 0 .5rem}"
    "header p,.note{color:var(--soft);margin:.2rem 0;overflow-wrap:anywhere}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;width:100%}th,td{padding:.3rem .9rem .3rem 0;text-align:right;vertical-align:top;"
    "border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums;white-space:nowrap}"
    "th{color:var(--soft);font-weight:500}th.text,td.text{text-align:left;white-space:normal;"
    "min-width:7rem;overflow-wrap:anywhere}"
    ".interval{fill:var(--mark);opacity:.35}.rate{fill:var(--mark)}.track{fill:var(--line)}svg{vertical-align:middle}"
    ".pass{color:var(--pass)}.fail,.borderline{color:var(--fail)}.error{color:var(--error)}.skip{color:var(--soft)}"
    "details{border:1px solid var(--line);border-radius:6px;margin:.35rem 0}"
    "summary{cursor:pointer;padding:.35rem .7rem;overflow-wrap:anywhere}"
    "details[open]>summary{border-bottom:1px solid var(--line)}"
    "dl{display:grid;grid-template-columns:7rem minmax(0,1fr);gap:.4rem .8rem;margin:.7rem}"
    "dt{color:var(--soft)}dd{margin:0}pre{background:var(--card);border-radius:6px;font-size:13px;margin:0 0 .3rem;"
    "max-height:30rem;overflow:auto;padding:.5rem .7rem;white-space:pre-wrap;overflow-wrap:anywhere}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class HtmlPage:
    """Summary, comparison and gate, then up to 500 cells in full, errors and failures first."""

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        head = element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", f"Run {summary.run_id}"),
            element("style", _STYLE),
        )
        parts = [
            _header(summary),
            _table_of("Variants", variant_columns(summary), summary.variants),
            _table_of("Evaluators", evaluator_columns(summary), evaluator_rows(summary.by_evaluator)),
            _table_of("Trials", TRIAL_COLUMNS, trial_rows(summary.variants)),
            _comparison(summary.comparison) if summary.comparison else "",
            *([_gate(summary.gate)] if summary.gate else []),
            _warnings(summary.warnings),
            element("p", shows) if (shows := numbers.could_show(summary)) else "",
            cells_shown(reader, summary),
        ]
        return f"<!doctype html>\n{element('html', head, element('body', *parts), lang='en')}\n"


def _header(summary: RunSummary) -> Html:
    cells = counted(summary.cells_total + summary.cells_missing, "cell")
    shard = f" ({summary.shard})" if summary.shard else ""
    size = f"{counted(summary.cases_total, 'case')}, {cells}{shard}"
    partial = f"Partial: {summary.cells_missing:,} of {cells} have not been run."
    return element(
        "header",
        element("h1", f"Run {summary.run_id}"),
        element("p", f"{size}; suite ", element("code", summary.config_path)),
        element("p", f"started {summary.started_at:%Y-%m-%d %H:%M:%S} UTC; rates with 95% Wilson intervals"),
        element("p", element("strong", partial, class_="error")) if summary.cells_missing else "",
    )


def _warnings(warnings: Sequence[str]) -> Html | str:
    rows = [element("li", warning) for warning in warnings]
    return _section("Warnings", element("ul", rows)) if rows else ""


def _section(title: Child, *content: Child) -> Html:
    return element("section", element("h2", title), *content)


def _table_of(title: Child, columns: Sequence[Column[Row]], rows: Sequence[Row]) -> Html | str:
    return _section(title, _table(columns, rows)) if rows else ""


def _comparison(comparison: ComparisonReport) -> Html | str:
    if not comparison.deltas:
        return ""
    title = side_by_side("Against ", element("code", comparison.baseline))
    rows, picture = forest_of_deltas(comparison.deltas), Html("")
    if rows:
        from evalwright.reports.html.plots import forest_svg

        picture = element(
            "div", forest_svg(f"Change of the pass rate against {comparison.baseline}", rows), class_="wide"
        )
    return _section(title, _table(COMPARISON_COLUMNS, comparison.deltas), picture)


def _table(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> Html:
    """A table of the columns that these rows need."""
    shown = used(columns, rows)
    sides = ["text" if column.unit in _LEFT else "number" for column in shown]
    head = element("tr", *(element("th", c.title, class_=side) for c, side in zip(shown, sides, strict=True)))
    body = [
        element("tr", *(element("td", _cell(c, row), class_=side) for c, side in zip(shown, sides, strict=True)))
        for row in rows
    ]
    return element("div", element("table", element("thead", head), element("tbody", body)), class_="wide")


def _cell(column: Column[Row], row: Row) -> Html | str:
    text, style = column.show(row), column.style(row)
    if style == "bold":
        return element("strong", text)
    if column.unit is Unit.CASES:
        return _ids(text, column.value(row) or (), style)
    if column.unit is Unit.RATE and column.interval is not None:
        return side_by_side(text, " ", _bar(column.value(row), column.interval(row)))
    return element("span", text, class_=style) if style else text


def _bar(rate: float | None, ends: tuple[float, float] | None) -> Html:
    """A rate as a point on its interval; the numbers stand beside it."""
    if rate is None or ends is None:
        return Html("")
    low, high = (round(100 * end, 1) for end in ends)
    bar = [
        element("rect", class_="track", y="6", width="100", height="2"),
        element("rect", class_="interval", x=f"{low}", y="3", width=f"{max(high - low, 0.5):.1f}", height="8"),
        element("circle", class_="rate", cx=f"{100 * rate:.1f}", cy="7", r="3"),
    ]
    return element("svg", *bar, width="108", height="14", viewBox="-4 0 108 14", aria_hidden="true")


def _ids(number: str, ids: Sequence[str], style: str) -> Html:
    more = [f" and {len(ids) - _MOST_IDS:,} more"] if len(ids) > _MOST_IDS else []
    named = [side_by_side(" ", element("code", name)) for name in ids[:_MOST_IDS]]
    return side_by_side(element("span", number, class_=style), named, more)


def _gate(gate: GateOutcome) -> Html:
    outcome = _word(*numbers.outcome(gate))
    runs = [
        element("li", f"run {i} ", _word(*numbers.outcome(run)), f" {run.reason}", _conditions(run))
        for i, run in enumerate(gate.runs, 1)
    ]
    spreads = [element("li", line) for line in numbers.over_runs(gate.runs)]
    reason = element("p", gate.reason) if gate.reason else ""
    decided = "\n".join(gate_decisions(gate, Paint()))
    title = "Reward: " if numbers.is_reward(gate) else "Gate: "
    return _section(
        side_by_side(title, outcome),
        reason,
        _conditions(gate),
        element("ul", runs, spreads) if runs else "",
        element("pre", decided) if decided else "",
    )


def _conditions(gate: GateOutcome) -> Html | str:
    parts = [element("li", _word(*numbers.met(p)), f": {numbers.condition(p)}") for p in gate.parts]
    return element("ul", parts) if parts else ""


def _word(word: str, style: str) -> Html:
    return element("span", word, class_=style)
