"""A run as Markdown, for pull requests and pages.

Data is put into code spans, which it cannot leave: it makes no HTML, links, mentions or table cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from evalwright.errors import counted
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
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
from evalwright.reports.failures import error_text, find_failures
from evalwright.reports.gates import gate_decisions
from evalwright.reports.intervals import forest_lines, forest_of_deltas
from evalwright.reports.text import Paint, one_line

__all__ = ["Markdown", "code", "table"]

Row = TypeVar("Row")

_LEFT = (Unit.NAME, Unit.TEXT, Unit.CASES)
_MOST_LISTED = 100
_LONGEST_WARNING = 500
_TICKS = re.compile("`+")


class Markdown:
    """Markdown with tables (GitHub and GitLab), the first 100 failures and errors with their reasons."""

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        found = find_failures(reader, summary, _MOST_LISTED)
        parts = [
            _head(summary),
            _section("Variants", variant_columns(summary), summary.variants),
            _section("Evaluators", evaluator_columns(summary), evaluator_rows(summary.by_evaluator)),
            _section("Trials", TRIAL_COLUMNS, trial_rows(summary.variants)),
            _comparison(summary.comparison) if summary.comparison else [],
            _gate(summary.gate) if summary.gate else [],
            _warnings(summary.warnings),
            [shows] if (shows := numbers.could_show(summary)) else [],
            _verdicts(found.title, found.failed, found.failed_total),
            _verdicts("Errors (no verdict)", found.errored, found.errored_total),
        ]
        return "\n".join(line for part in parts if part for line in [*part, ""])


def code(text: str, limit: int = 80) -> str:
    """Data as a code span on one line; a pipe is shown as `¦`, as renderers disagree on how to escape it."""
    line = one_line(text, limit).replace("|", "¦")
    if not line:
        return ""
    ticks = "`" * (max(map(len, _TICKS.findall(line)), default=0) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _head(summary: RunSummary) -> list[str]:
    lines = [f"# Run {code(summary.run_id, 160)}", ""]
    cells = counted(summary.cells_total + summary.cells_missing, "cell")
    shard = f" ({summary.shard})" if summary.shard else ""
    lines.append(f"{counted(summary.cases_total, 'case')}, {cells}{shard}; suite {code(summary.config_path, 200)}")
    lines.append(f"started {summary.started_at:%Y-%m-%d %H:%M:%S} UTC; rates with 95% Wilson intervals")
    if summary.cells_missing:
        lines += ["", f"**Partial: {summary.cells_missing:,} of {cells} have not been run.**"]
    return lines


def table(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[str]:
    """A table of the columns that these rows need: texts to the left, numbers to the right."""
    shown = used(columns, rows)
    rule = ["---" if column.unit in _LEFT else "---:" for column in shown]
    body = ([_cell(column, row) for column in shown] for row in rows)
    return [f"| {' | '.join(cells)} |" for cells in ([column.title for column in shown], rule, *body)]


def _cell(column: Column[Row], row: Row) -> str:
    text = column.show(row)
    if column.unit is Unit.CASES:
        return _ids(text, column.value(row))
    return code(text) if column.unit is Unit.NAME else text


def _section(title: str, columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[str]:
    return [f"## {title}", "", *table(columns, rows)] if rows else []


def _comparison(comparison: ComparisonReport) -> list[str]:
    lines = _section(f"Against {code(comparison.baseline)}", COMPARISON_COLUMNS, comparison.deltas)
    rows = forest_of_deltas(comparison.deltas)
    # A code block shows data as it is, but for the fence that would end it.
    picture = ["", "```text", *(line.replace("`", "'") for line in forest_lines(rows)), "```"] if len(rows) > 1 else []
    return [*lines, *picture]


def _gate(gate: GateOutcome) -> list[str]:
    lines = [f"## {'Reward' if numbers.is_reward(gate) else 'Gate'}: {_outcome(gate)}", "", *_conditions(gate)]
    for i, run in enumerate(gate.runs, 1):
        lines += [f"- run {i}: {_outcome(run)}", *(f"  {line}" for line in _conditions(run))]
    lines += [f"- {code(line, 200)}" for line in numbers.over_runs(gate.runs)]
    decided = [f"    {line}" for line in gate_decisions(gate, Paint())]
    return [*lines, "", *decided] if decided else lines


def _outcome(gate: GateOutcome) -> str:
    return numbers.outcome(gate)[0] + (f": {code(gate.reason, 200)}" if gate.reason else "")


def _conditions(gate: GateOutcome) -> list[str]:
    return [f"- {numbers.met(p)[0]}: {code(numbers.condition(p), 200)}" for p in gate.parts]


def _warnings(warnings: Sequence[str]) -> list[str]:
    lines = [f"- {code(warning, _LONGEST_WARNING)}" for warning in warnings]
    return [f"## Warnings: {len(lines)}", "", *lines] if lines else []


def _ids(number: str, ids: Sequence[str]) -> str:
    shown = " ".join(code(name, 40) for name in ids[:10])
    return f"{number} {shown}".rstrip() + (" …" if len(ids) > 10 else "")


def _verdicts(title: str, verdicts: Sequence[CaseVerdict], total: int) -> list[str]:
    if not total:
        return []
    lines = [f"## {title}: {total:,}", "", *(line for verdict in verdicts for line in _verdict(verdict))]
    return [*lines, "", f"… and {total - len(verdicts):,} more"] if total > len(verdicts) else lines


def _verdict(verdict: CaseVerdict) -> Iterator[str]:
    trial = f", trial {verdict.trial + 1}" if verdict.trial else ""
    between = ", borderline" if verdict.status == "borderline" else ""
    yield f"- {code(verdict.case_key)} {code(verdict.variant_name)}{trial}{between}"
    if verdict.error is not None:
        yield f"  - {code(error_text(verdict.error), 300)}"
        return
    for reason in filter(None, verdict.reasons):
        yield f"  - {code(reason, 300)}"
