"""One run: its numbers, why cells did not pass, and its cells a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from evalwright.model.summary import RunSummary
from evalwright.reports.column import Column, Unit, used
from evalwright.reports.columns import (
    METRIC_COLUMNS,
    TRIAL_COLUMNS,
    evaluator_columns,
    evaluator_rows,
    metric_rows,
    trial_rows,
    variant_columns,
)
from evalwright.reports.failures import failures_title
from evalwright.viewer.filters import GROUPS, SORTS, Filter
from evalwright.viewer.groups import cell_groups
from evalwright.viewer.labelled import LABEL_CHOICES
from evalwright.viewer.links import Links
from evalwright.viewer.live import Progress
from evalwright.viewer.pages import Page
from evalwright.viewer.pages.cell_columns import column_choices, names_of_cells, shown_columns
from evalwright.viewer.pages.gates import gate_context
from evalwright.viewer.pages.known_values import check_values
from evalwright.viewer.pages.runs import state_of
from evalwright.viewer.query import page_start
from evalwright.viewer.schema import SCORED_STATUSES, STATUSES
from evalwright.viewer.shelf import OpenRun
from evalwright.viewer.table import CellTable

__all__ = ["PAGE", "Cell", "Numbers", "run_context", "run_page", "table_of"]

PAGE = 100
_REASONS = 20
_METADATA = 8
"""Keys of metadata that the form has a field for."""
_NAMES = (Unit.NAME, Unit.TEXT, Unit.CASES)
_MOST_IDS = 50
_OF_TRIALS = "trials."
"""The prefix of the keys of columns that only runs with several trials have."""


class Cell(NamedTuple):
    """A value of a table of numbers."""

    text: str
    style: str
    share: float | None
    """For a rate: the value that a bar shows."""
    is_name: bool
    title: str
    cases: list[tuple[str, str]]
    """Ids with the addresses of their cells, shown after their number."""
    more: int
    """How many ids are left out."""


class Numbers(NamedTuple):
    """A table of the summary."""

    titles: list[Cell]
    rows: list[list[Cell]]


def table_of(
    columns: Iterable[Column[Any]], rows: list[Any], address: Callable[[Any, str], str] = lambda row, case: ""
) -> Numbers:
    """A table of the reports' columns; `address` leads to the cell of a case of a row."""
    shown = used(tuple(columns), rows)
    titles = [Cell(column.title, "", None, column.unit in _NAMES, column.title, [], 0) for column in shown]
    return Numbers(titles, [[_cell(column, row, address) for column in shown] for row in rows])


def _cell(column: Column[Any], row: Any, address: Callable[[Any, str], str]) -> Cell:
    value = column.value(row)
    text = column.show(row)
    share = None
    if column.unit is Unit.RATE:
        share = value if isinstance(value, float | int) else None
        text = "no verdicts" if value is None and column.key == "pass_rate" else text
    cases = list(value or ()) if column.unit is Unit.CASES else []
    named = [(case, address(row, case)) for case in cases[:_MOST_IDS]]
    return Cell(text, column.style(row), share, column.unit in _NAMES, column.title, named, len(cases) - len(named))


def run_page(run: OpenRun, pairs: Iterable[tuple[str, str]], links: Links, progress: Progress | None) -> Page:
    """`progress` is that of a run that is being written. Raises BadQuery."""
    context = run_context(run, Filter.of(pairs), links, progress)
    return Page("run.html", f"{run.plan.name} · {run.id} · evalwright", context)


def _continuing(summary: RunSummary) -> str:
    """The command that runs what is left: of a variant that was stopped for its errors, these cells too."""
    only_errors = (variant.cells.get("error") == sum(variant.cells.values()) > 0 for variant in summary.variants)
    return "retry" if any(only_errors) else "resume"


def run_context(run: OpenRun, chosen: Filter, links: Links, progress: Progress | None = None) -> dict[str, Any]:
    """What the page of a run shows: of the server, where `progress` is that of a run being written, or of a bundle."""
    summary, table = run.summary, run.table
    # a retry or a re-evaluation writes a run that was finished
    state = "running" if progress is not None and progress.state == "running" else state_of(run.source, summary)
    columns = variant_columns(summary)
    of_trials = [column for column in columns if column.key.startswith(_OF_TRIALS)]
    evaluators = table_of(evaluator_columns(summary), evaluator_rows(summary.by_evaluator))
    context: dict[str, Any] = {
        "run": run,
        "progress": progress,
        "state": state,
        "continuing": _continuing(summary),
        "is_baseline": run.source.is_baseline(),
        "summary": summary,
        **gate_context(summary.gate),
        "variants": table_of([column for column in columns if column not in of_trials], list(summary.variants)),
        "evaluators": evaluators,
        "metrics": table_of(METRIC_COLUMNS, metric_rows(summary)),
        "flaky": table_of(
            [columns[0], *of_trials],
            [variant for variant in summary.variants if variant.trials is not None],
            lambda variant, case: links.trials(run.id, case, variant.name),
        ),
        "trials": table_of(TRIAL_COLUMNS, list(trial_rows(summary.variants))),
        "failures_title": failures_title(run.scored),
        "chosen": chosen,
        "indexing": None if table is not None else run.indexing,
        "warnings": list(dict.fromkeys([*summary.warnings, *(f"cannot be read: {note}" for note in run.unread)])),
    }
    return context | (_nothing() if table is None else _cells(run, table, chosen))


def _nothing() -> dict[str, Any]:
    return {"reasons": [], "more_reasons": 0, "rows": [], "groups": [], "count": 0, "choices": {}, "search": None} | {
        "next": None,
        "previous": None,
        "several": False,
        "chosen_reasons": [],
        "columns": [],
    }


def _cells(run: OpenRun, table: CellTable, chosen: Filter) -> dict[str, Any]:
    choices = {
        "status": SCORED_STATUSES if run.scored else STATUSES,
        "sort": SORTS,
        "group": GROUPS,
        "label": LABEL_CHOICES if table.labelled.any or chosen.label else (),
        **{name: table.values(name) for name in ("evaluator", "tag", "variant", "error", "metadata")},
    }
    check_values([run], chosen)
    order = {spec.name: place for place, spec in enumerate(run.plan.evaluators)}
    choices["evaluator"] = sorted(choices["evaluator"], key=lambda name: order.get(name, len(order)))
    search = run.search(chosen) if chosen.in_messages and chosen.words else None
    reasons, number = table.reasons(limit=_REASONS)
    count = table.count(chosen)
    if search is None or search.is_done:
        page_start(chosen.after, count)
    grouped = chosen.group != "none"
    several = len(choices["variant"]) > 1
    of_trials = any(planned > 1 for planned in run.plan.trials_by_variant.values())
    boxes = column_choices(table, chosen, several=several, trials=of_trials, scored=run.scored)
    if {box.name for box in boxes if box.is_usual} == set(chosen.columns):
        chosen = replace(chosen, columns=())
    rows = [] if grouped else table.rows(chosen, PAGE)
    groups = cell_groups(table, chosen) if grouped else []
    listed = [*rows, *(row for group in groups for row in group.rows)]
    return {
        "chosen": chosen,
        "columns": shown_columns(table, listed, chosen, boxes, scored=run.scored),
        "boxes": boxes,
        "metadata": _metadata(table, chosen),
        "name_of": names_of_cells(chosen),
        "choices": choices,
        "search": search,
        "reasons": reasons,
        "more_reasons": max(0, number - len(reasons)),
        "chosen_reasons": [(key, table.reason(key)) for key in chosen.reason],
        "count": count,
        "rows": rows,
        "groups": groups,
        "next": replace(chosen, after=chosen.after + PAGE) if not grouped and chosen.after + PAGE < count else None,
        "previous": replace(chosen, after=max(0, chosen.after - PAGE)) if chosen.after else None,
        "several": several,
    }


def _metadata(table: CellTable, chosen: Filter) -> list[tuple[str, str]]:
    """The fields of the form for metadata: those that are filled, and the first keys that cases have."""
    filled = {name for name, _ in chosen.metadata}
    return [*chosen.metadata, *((name, "") for name in table.values("metadata")[:_METADATA] if name not in filled)]
