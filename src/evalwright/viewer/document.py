"""A run as one HTML file that needs nothing else: no script, no server, no network."""

from __future__ import annotations

import shlex
import sqlite3
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from msgspec import convert

from evalwright.errors import InputError, counted
from evalwright.model.cell import OfCase, cell_key
from evalwright.model.decision import Decision
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import FAILED, NOT_PASSED, Status
from evalwright.model.summary import ComparisonReport, RunSummary, VariantDelta, decisions_of
from evalwright.model.trace import TraceError
from evalwright.reports import numbers
from evalwright.reports.changed_cells import changed_cells
from evalwright.reports.columns import (
    COMPARISON_COLUMNS,
    METRIC_COLUMNS,
    TRIAL_COLUMNS,
    evaluator_columns,
    evaluator_rows,
    metric_rows,
    trial_rows,
    variant_columns,
)
from evalwright.reports.context import ALONE, ReportContext
from evalwright.reports.decision_columns import RUN_COMPARISON_COLUMNS
from evalwright.reports.decision_words import notes_of
from evalwright.reports.failures import failures_title
from evalwright.reports.intervals import forest_of_deltas
from evalwright.reports.sentences import sentences_of
from evalwright.scoring.reasons import error_text
from evalwright.viewer.filters import Filter
from evalwright.viewer.pages.blocks import Blocks
from evalwright.viewer.pages.cell import cell_context
from evalwright.viewer.pages.evaluator_results import evaluator_results
from evalwright.viewer.pages.gates import gate_context
from evalwright.viewer.pages.run import Numbers, table_of
from evalwright.viewer.records import CellReader
from evalwright.viewer.rendering import page_text, style_of_documents
from evalwright.viewer.table import CellRow, CellTable
from evalwright.viewer.table_build import fill_table
from evalwright.viewer.texts import first_part

__all__ = ["HtmlDocument"]

_MOST_CELLS = 20_000
_IN_FULL = 500
"""How many cells that did not pass are shown with all their records."""
_AT_LEAST_IN_FULL = 100
"""If fewer cells did not pass, the first that passed are shown in full as well."""
_TEXTS = 3_000_000
"""Characters of all texts of the cells in full, shared alike."""
_LONGEST_REASON = 300
_LEAST_TEXTS, _MOST_TEXTS = 6_000, 60_000
_UNSOUND: dict[str, tuple[Status, ...]] = {"errors": ("error",), "failures": FAILED}


class HtmlDocument:
    """One HTML page: numbers, changed cells and reasons, then every cell, those that did not pass in full.

    Those are at most 500; with fewer than 100, cells that passed fill up to that number. Of all others the page has the
    status and the beginning of the answer.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"compare", "link"})

    @staticmethod
    def check(summary: RunSummary, run: str) -> None:
        """Raises InputError for a run with more cells than fit into a file."""
        if summary.cells_total > _MOST_CELLS:
            raise InputError(
                f"{counted(summary.cells_total, 'cell')} do not fit into one page (at most {_MOST_CELLS:,}): "
                f"use `evalwright view {shlex.quote(run)} --bundle DIR --only not-passed`"
            )

    def render(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> str:
        """Raises InputError for a run without a plan."""
        plan = reader.plan
        if plan is None:
            raise InputError(f"{reader.location} has no plan")
        file = sqlite3.connect(":memory:")
        fill_table(file, reader, plan, lambda count: None, texts=False)
        table = CellTable(file)
        with closing(table):
            style = style_of_documents()
            run = _StoredRun(reader, plan, summary, table)
            shown: dict[str, Any] = {
                "links": _DocumentLinks(context),
                "title": f"{plan.name} · {summary.run_id} · evalwright",
                "style": style.text,
                "policy": _policy(b64encode(style.digest).decode()),
                "run": run,
                "failures_title": failures_title(run.scored),
                "summary": summary,
                "sentences": sentences_of(summary, None if context.before is None else context.before.comparison),
                **_numbers(summary, table),
                **_comparison_context(reader, summary, context),
                **_cells(run, context),
            }
            return page_text("document.html", shown)


def _policy(digest: str) -> str:
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'none'; base-uri 'none'"


class _DocumentLinks:
    """Places in the document, and pages of the published bundle."""

    static = True

    def __init__(self, context: ReportContext) -> None:
        self._context = context

    def has(self, run: str) -> bool:
        return False

    def whole(self, run: str, key: str, part: str) -> str:
        """Texts in full are in the bundle."""
        return ""

    def cell(self, run: str, key: str, chosen: Filter | None = None) -> str:
        return f"#{key}"

    def page(self, run: str, row: CellRow) -> str:
        """The page of a cell in the published bundle; empty without one."""
        return self._context.address(run, OfCase(case_id=row.case_key), row.variant, row.trial)


class _StoredRun:
    """The run as pages of cells need it, with the records of those that are shown."""

    problem: str | None = None

    def __init__(self, reader: RunReader, plan: Plan, summary: RunSummary, table: CellTable) -> None:
        self.id: str = summary.run_id
        self.path: str = reader.location
        self.plan: Plan = plan
        self.scored: bool = summary.scored is True
        self.has_baseline: bool = summary.comparison is not None
        self.table: CellTable = table
        self.artifacts: Path = reader.artifacts
        self.has_artifacts: bool = self.artifacts.is_dir()
        cells = CellReader(reader)
        self.prepare, self.records = cells.prepare, cells.records


def _numbers(summary: RunSummary, table: CellTable) -> dict[str, Any]:
    gate = summary.gate
    return {
        "variants": table_of(variant_columns(summary), list(summary.variants)),
        "evaluators": table_of(evaluator_columns(summary), evaluator_rows(summary.by_evaluator)),
        "metrics": table_of(METRIC_COLUMNS, metric_rows(summary)),
        "trials": table_of(TRIAL_COLUMNS, list(trial_rows(summary.variants))),
        **gate_context(gate),
        "gate_picture": "" if gate is None else _decision_picture(decisions_of(gate)),
        "dependence": numbers.dependence(summary),
        "could_show": numbers.could_show(summary),
        "against_notes": []
        if summary.comparison is None
        else _notes(decisions_of(summary.comparison), summary.comparison.deltas),
        "against": None if summary.comparison is None else _against(summary.comparison, table),
        "baseline": "" if summary.comparison is None else summary.comparison.baseline,
        "picture": "" if summary.comparison is None else _picture(summary.comparison),
    }


def _notes(decisions: Sequence[Decision], deltas: Sequence[VariantDelta]) -> list[str]:
    """Below a table of differences: what they hold for, errors with what they could change, and warnings."""
    several = len(decisions) > 1
    notes = [
        f"{decision.variant_b}: {line}" if several else line for decision in decisions for line in notes_of(decision)
    ]
    return [*filter(None, [numbers.family_note(deltas)]), *notes]


def _against(comparison: ComparisonReport, table: CellTable) -> Numbers | None:
    """Variants against their baseline; the ids of cases lead to their cells."""

    def address(row: Any, case: str) -> str:
        key = cell_key(case, row.variant, 0)
        return f"#{key}" if table.by_key(key) is not None else ""

    rows = list(comparison.deltas)
    return table_of(COMPARISON_COLUMNS, rows, address) if rows else None


def _picture(comparison: ComparisonReport) -> str:
    """The intervals of the differences, as an image URL."""
    rows = forest_of_deltas(comparison.deltas)
    if not rows:
        return ""
    from evalwright.reports.pictures.decision import image_of
    from evalwright.reports.pictures.plots import forest_svg

    return image_of(forest_svg(f"Change of the pass rate against {comparison.baseline}", rows))


def _decision_picture(decisions: Sequence[Decision]) -> str:
    """The intervals of decisions, their evaluators and slices, as an image URL."""
    if not decisions:
        return ""
    from evalwright.reports.pictures.decision import decision_image

    return decision_image(decisions)


def _comparison_context(reader: RunReader, summary: RunSummary, context: ReportContext) -> dict[str, Any]:
    """The changed cells of a comparison with an earlier run, the worst first."""
    if context.before is None:
        return {"compared": None, "compared_notes": [], "compared_picture": "", "compared_reasons": [], "changed": []}
    comparison = context.before.comparison
    cells, _ = changed_cells(reader, context.before, summary.cells_total)
    changed = [(cell_key(cell.case_key, cell.variant, cell.after.trial), cell) for cell in cells]
    return {
        "compared": table_of(RUN_COMPARISON_COLUMNS, list(comparison.variants)),
        "compared_with": comparison.a,
        "compared_notes": _notes(
            [variant.decision for variant in comparison.variants], [variant.delta for variant in comparison.variants]
        ),
        "compared_picture": _decision_picture([variant.decision for variant in comparison.variants]),
        "compared_reasons": [(variant.variant, variant.decision.clusters) for variant in comparison.variants],
        "changed": changed,
    }


def _cells(run: _StoredRun, context: ReportContext) -> dict[str, Any]:
    """Cells in full by their kind, and all others as rows."""
    table = run.table
    unsound = table.rows(Filter(status=NOT_PASSED), _IN_FULL)
    passed = table.rows(Filter(status=("pass", "skip")), max(0, _AT_LEAST_IN_FULL - len(unsound)))
    full = [*unsound, *passed]
    run.prepare(full)
    room = max(_LEAST_TEXTS, min(_MOST_TEXTS, _TEXTS // max(1, len(full))))
    shown = {row.number for row in full}
    reasons, number = table.reasons(limit=_IN_FULL)
    links = _DocumentLinks(context)
    shown_cell: Callable[[CellRow], dict[str, Any]] = partial(_cell_document, run, links, room)
    return {
        **{name: [row for row in unsound if row.status in kind] for name, kind in _UNSOUND.items()},
        **{f"{name}_total": table.count(Filter(status=kind)) for name, kind in _UNSOUND.items()},
        "passed": passed,
        "shown_cell": shown_cell,
        "reasons": reasons[:20],
        "more_reasons": max(0, number - 20),
        "others": _other_rows(table, shown),
        "anchors": context.before is not None or run.has_baseline,
        "others_total": table.total - len(shown),
        "several": len(run.plan.variants) > 1,
        "trialled": any(row.trial for row in full) or bool(table.count(Filter(trial=(1,)))),
    }


def _cell_document(run: _StoredRun, links: _DocumentLinks, room: int, row: CellRow) -> dict[str, Any]:
    """Everything about one cell; only its verdict if it has no trace."""
    records = run.records(row)
    verdict = records.verdict or {}
    error, reasons = verdict.get("error"), [reason for reason in verdict.get("reasons") or [] if reason]
    why = "" if row.status in ("pass", "skip") else error_text(convert(error, TraceError)) if error else ""
    if not why and reasons and row.status not in ("pass", "skip"):
        why = reasons[0]
    shown_cell: dict[str, Any] = {"why": first_part(why, _LONGEST_REASON), "row": row}
    if records.trace:
        return shown_cell | cell_context(run, row, Filter(), links, (0, 0, None, None), room)  # type: ignore[arg-type]
    blocks = Blocks(lambda part: "", room)
    shown = blocks.of(error_text(convert(error, TraceError)), "") if error else None
    results = evaluator_results(records.results, run.plan, blocks)
    return shown_cell | {"verdict_alone": reasons, "error": shown, "results": results}


def _other_rows(table: CellTable, shown: set[int]) -> Iterator[CellRow]:
    return (row for row in table.every(Filter()) if row.number not in shown)
