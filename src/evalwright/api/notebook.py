"""A run as notebooks show it: a small page with styles inside its elements, and no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

from evalwright.api.cells import Cell
from evalwright.api.summaries import Summary
from evalwright.errors import shorten
from evalwright.reports.column import used
from evalwright.reports.columns import VARIANT_COLUMNS

__all__ = ["html_of"]

_MOST, _LONGEST = 10, 300
_COLOURS = {"pass": "#1a7f37", "borderline": "#9a6700", "fail": "#cf222e", "error": "#8250df", "skip": "#6e7781"}
_CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"


def html_of(name: str, summary: Summary, unsound: Iterable[Cell]) -> str:
    """The variants with their rates, the first cells that failed or have no verdict, and the warnings."""
    variants = [summary.variant(name) for name in summary.rates]
    columns = used(VARIANT_COLUMNS, variants)
    rates = [[escape(column.show(variant)) for column in columns] for variant in variants]
    parts = [f"<div><b>{escape(name)}</b>{_note(summary)}"]
    parts.append(_table([column.title for column in columns], rates))
    shown = list(islice(unsound, _MOST + 1))
    if shown:
        rows = [_row(cell) for cell in shown[:_MOST]]
        parts.append(_table(["", "case", "variant", "answer", "why"], rows))
    if len(shown) > _MOST:
        parts.append("<div>… and more: <code>run.failures()</code>, <code>run.errors()</code></div>")
    parts += [f"<div>warning: {_text(line)}</div>" for line in summary.warnings]
    return "".join([*parts, "</div>"])


def _note(summary: Summary) -> str:
    return f" · {summary.missing:,} cells not run" if summary.missing else ""


def _row(cell: Cell) -> list[str]:
    status = f'<span style="color:{_COLOURS[cell.status]}">{cell.status}</span>'
    trial = f" · trial {cell.trial + 1}" if cell.trial else ""
    why = cell.error or "; ".join(cell.reasons)
    return [status, escape(cell.case_id + trial), escape(cell.variant), _text(cell.output or ""), _text(why)]


def _text(text: str) -> str:
    return escape(shorten(text, _LONGEST, "…"))


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f'<th style="{_CELL}">{title}</th>' for title in titles)
    body = "".join("<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) + "</tr>" for row in rows)
    return f'<table style="border-collapse:collapse"><tr>{head}</tr>{body}</table>'
