"""The columns of the list of cells: the usual ones, or those that an address names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from evalwright.errors import money
from evalwright.reports import numbers
from evalwright.viewer.filters import METADATA, Filter
from evalwright.viewer.pages.marks import Piece, in_pieces
from evalwright.viewer.table import CellRow, CellTable
from evalwright.viewer.texts import few, first_part, short_name, visible

__all__ = ["CellColumn", "ColumnChoice", "column_choices", "names_of_cells", "shown_columns"]

_ANSWER = 80
"""Characters of an answer."""
_AROUND = 60
"""Characters before and after a match."""
_MOST_MATCHES = 2
"""Matches outside of the answer that a row quotes."""
_METADATA_CHOICES = 30
_MATCH = "match"
"""The style of a mark on what was searched for."""


class CellColumn(NamedTuple):
    name: str
    """As addresses have it."""
    title: str
    label: str
    """Before a value on a narrow screen."""
    style: str
    text: Callable[[CellRow], list[Piece]]
    quotes: Callable[[CellRow], list[list[Piece]]] = lambda row: []
    """What stands below the text."""


class ColumnChoice(NamedTuple):
    """A box of the chooser. `is_usual`: shown if an address names no columns."""

    name: str
    title: str
    is_usual: bool


def column_choices(
    table: CellTable, chosen: Filter, *, several: bool, trials: bool, scored: bool
) -> list[ColumnChoice]:
    """The columns to choose from. Those of variants and trials are usual only where there are several, that of scores
    where nothing passes or fails."""
    usual = {"failed", "answer", "latency", "cost"}
    usual |= {name for name, shown in (("variant", several), ("trial", trials), ("score", scored)) if shown}
    known = [
        ColumnChoice("input", "Input", is_usual=False),
        *(ColumnChoice(name, _titles(name, scored)[0], name in usual) for name in _COLUMNS),
    ]
    tags = [ColumnChoice("tags", "Tags", is_usual=False)] if table.values("tag") or "tags" in chosen.columns else []
    keys = [f"{METADATA}{key}" for key in table.values("metadata")[:_METADATA_CHOICES]]
    named = dict.fromkeys([*keys, *(name for name in chosen.columns if name.startswith(METADATA))])
    return [*known, *tags, *(ColumnChoice(name, name.removeprefix(METADATA), is_usual=False) for name in named)]


def shown_columns(
    table: CellTable, rows: Sequence[CellRow], chosen: Filter, choices: Iterable[ColumnChoice], *, scored: bool
) -> list[CellColumn]:
    """The columns of these rows, in the order of the choices."""
    shown = [
        choice.name for choice in choices if (choice.name in chosen.columns if chosen.columns else choice.is_usual)
    ]
    return [_column(name, table, rows, chosen.words, scored) for name in shown]


def names_of_cells(chosen: Filter) -> Callable[[CellRow], list[Piece]]:
    """The names of cells with the matches of the search marked."""
    return lambda row: _found_pieces(short_name(row.case_key), chosen.words)


def _titles(name: str, scored: bool) -> tuple[str, str]:
    """The title and the label of a column; in a suite that has only scores, no evaluator failed."""
    return ("Evaluators below 1", "Below 1") if scored and name == "failed" else _COLUMNS[name][:2]


def _column(name: str, table: CellTable, rows: Sequence[CellRow], words: Sequence[str], scored: bool) -> CellColumn:
    if name == "answer":
        quotes = _quotes(table, rows, words)
        title, label, style, _ = _COLUMNS[name]
        return CellColumn(
            name,
            *(title, label, style),
            lambda row: _found_pieces(first_part(row.answer, _ANSWER), words),
            lambda row: quotes.get(row.number, []),
        )
    if name in _COLUMNS:
        *_, style, text = _COLUMNS[name]
        return CellColumn(name, *_titles(name, scored), style, lambda row: [Piece(text(row), "")])
    positions = sorted({row.position for row in rows})
    if name == "input":
        inputs = table.inputs_of(positions)
        return CellColumn(
            name,
            "Input",
            "Input",
            "answer",
            lambda row: _found_pieces(first_part(inputs.get(row.position, ""), _ANSWER), words),
        )
    if name == "tags":
        metadata, title = table.tags_of(positions), "Tags"
    else:
        title = name.removeprefix(METADATA)
        metadata = table.metadata_of(title, positions)
    return CellColumn(
        name, title, title, "", lambda row: _found_pieces(short_name(metadata.get(row.position, "")), words)
    )


def _quotes(table: CellTable, rows: Sequence[CellRow], words: Sequence[str]) -> dict[int, list[list[Piece]]]:
    """By the number of a cell: the matches that neither its name nor its answer shows, each with the text around it."""
    pieces: dict[int, list[list[Piece]]] = {}
    for word in words:
        unseen = [row.number for row in rows if word not in f"{row.case_key}\n{row.answer[: _ANSWER - 1]}".lower()]
        for number, (before, match, after) in table.around(word, unseen, _AROUND).items():
            quotes = pieces.setdefault(number, [])
            if len(quotes) < _MOST_MATCHES:
                start, end = ("…" * (len(part) == _AROUND) for part in (before, after))
                around = (f"{start}{before}", ""), (match, _MATCH), (f"{after}{end}", "")
                quotes.append([Piece(visible(part), style) for part, style in around])
    return pieces


def _found_pieces(text: str, words: Sequence[str]) -> list[Piece]:
    return in_pieces(text, dict.fromkeys(words, _MATCH))


def _number(value: float | None, shown: Callable[[float], str]) -> str:
    return "" if value is None else shown(value)


_COLUMNS: Mapping[str, tuple[str, str, str, Callable[[CellRow], str]]] = {
    "variant": ("Variant", "Variant", "", lambda row: short_name(row.variant)),
    "trial": ("Trial", "Trial", "number", lambda row: str(row.trial + 1)),
    "failed": (
        "Failed evaluators",
        "Failed",
        "",
        lambda row: visible(row.error) if row.error else few(row.failed_evaluators),
    ),
    "answer": ("Answer", "Answer", "answer", lambda row: row.answer),
    "latency": ("Latency", "Latency", "number", lambda row: _number(row.latency, numbers.duration)),
    "cost": ("Cost", "Cost", "number", lambda row: _number(row.cost, money)),
    "score": ("Score", "Score", "number", lambda row: _number(row.score, lambda score: f"{score:.3g}")),
    "tokens": ("Tokens", "Tokens", "number", lambda row: _number(row.tokens, lambda tokens: f"{tokens:,.0f}")),
    "duration": ("Duration", "Duration", "number", lambda row: _number(row.duration, numbers.duration)),
    "attempt": ("Attempt", "Attempt", "number", lambda row: str(row.attempt)),
}
