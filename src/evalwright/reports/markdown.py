"""A run as Markdown, for pull requests and pages.

Data is put into code spans that it cannot break out of, so it creates no HTML, links, mentions or table cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from html import escape
from itertools import islice
from typing import ClassVar, TypeVar
from urllib.parse import quote

from evalwright.errors import counted
from evalwright.model.cell import OfCase
from evalwright.model.decision import Decision
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import ComparisonReport, GateOutcome, RunSummary, VariantDelta, decisions_of
from evalwright.reports import numbers
from evalwright.reports.changed_cells import ChangedCell, changed_cells
from evalwright.reports.column import Column, Unit, used
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
from evalwright.reports.failures import failures_title, find_failures
from evalwright.reports.gates import gate_decisions
from evalwright.reports.intervals import forest_lines, forest_of_deltas
from evalwright.reports.reasons import ReasonGroups, group_reasons
from evalwright.reports.sentences import sentence_of
from evalwright.reports.text import Paint, capped, harmless, json_line, one_line
from evalwright.scoring.reasons import error_text

__all__ = ["Markdown", "code", "note_text", "table"]

Row = TypeVar("Row")
Address = Callable[[CaseVerdict, str, int], str]

_LEFT = (Unit.NAME, Unit.TEXT, Unit.CASES)
_MOST_LISTED = 100
_MOST_CHANGED = 10
_MOST_GROUPS = 20
_LONGEST_ANSWER = 1_000
_FOR_THE_LAST_LINE = 450
_LONGEST_WARNING = 500
_TICKS = re.compile("`+")


class Markdown:
    """Markdown with tables (GitHub and GitLab) whose first line is the decision.

    Sections that do not fit into the limit are left out from the end, and the last line names them: a comment on a pull
    request that is too long is refused as a whole. The same data gives the same text.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"compare", "link", "limit_chars"})

    def render(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> str:
        return _within(_head(summary, context), _sections(reader, summary, context), context.limit)


def _sections(reader: RunReader, summary: RunSummary, context: ReportContext) -> Iterator[list[str]]:
    """The parts of the report, each below its heading, the most important first."""
    before = context.before
    if before is not None:
        decisions = [(variant.variant, variant.decision) for variant in before.comparison.variants]
        table_of_runs = _section("Compared", RUN_COMPARISON_COLUMNS, before.comparison.variants)
        yield [*table_of_runs, *_notes(decisions, [variant.delta for variant in before.comparison.variants])]
    together = numbers.dependence(summary)
    yield _section("Variants", variant_columns(summary), summary.variants) + (["", together] if together else [])
    if summary.gate is not None:
        yield _gate(summary.gate)
    if before is not None:
        yield _changed_section(*changed_cells(reader, before, _MOST_CHANGED), summary.run_id, context)
    failed, errored = group_reasons(reader, summary)
    yield _reasons(f"{failures_title(summary.scored is True)} by reason", failed)
    yield _reasons("Errors by reason", errored)
    if summary.comparison is not None:
        yield _comparison(summary.comparison)
    yield _warnings(summary.warnings)
    yield _section("Evaluators", evaluator_columns(summary), evaluator_rows(summary.by_evaluator))
    yield _section("Named metrics", METRIC_COLUMNS, metric_rows(summary))
    yield _section("Trials", TRIAL_COLUMNS, trial_rows(summary.variants))
    if shows := numbers.could_show(summary, code):
        yield ["## What this suite can show", "", shows]
    failures = find_failures(reader, summary, _MOST_LISTED)
    address = partial(context.address, summary.run_id)
    yield _verdicts(failures.title, failures.failed, failures.failed_total, address)
    yield _verdicts("Errors (no verdict)", failures.errored, failures.errored_total, address)


def _within(head: list[str], sections: Iterable[list[str]], limit: int) -> str:
    """The sections that fit, and a last line that names those that do not."""
    text = "\n".join([*head, ""])
    left_out: list[str] = []
    for section in filter(None, sections):
        more = "\n" + "\n".join([*section, ""])
        if not left_out and len(text) + len(more) <= limit - _FOR_THE_LAST_LINE:
            text += more
        else:
            left_out.append(section[0].lstrip("# ").partition(":")[0])
    if left_out:
        text += f"\nLeft out to stay within {limit:,} characters: {', '.join(left_out)}\n"
    return text


def code(text: str, limit: int = 80) -> str:
    """Data as a code span on one line; a pipe is shown as `¦`, as renderers disagree on how to escape it."""
    line = one_line(text, limit).replace("|", "¦")
    if not line:
        return ""
    ticks = "`" * (max(map(len, _TICKS.findall(line)), default=0) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _head(summary: RunSummary, context: ReportContext) -> list[str]:
    comparison = None if context.before is None else context.before.comparison
    sentence = sentence_of(summary, comparison, code)
    run = code(summary.run_id, 160)
    if context.link:
        run = f"[{run}](<{context.link}/runs/{quote(summary.run_id, safe='')}/index.html>)"
    cells = counted(summary.cells_total + summary.cells_missing, "cell")
    shard = f" ({summary.shard})" if summary.shard else ""
    lines = [f"**{sentence}**", "", f"Run {run}: {counted(summary.cases_total, 'case')}, {cells}{shard}"]
    lines[-1] += f"; suite {code(summary.config_path, 200)}" if summary.config_path else ""
    lines.append(f"started {summary.started_at:%Y-%m-%d %H:%M:%S} UTC; rates with 95% intervals")
    if summary.metadata:
        lines.append(f"metadata {code(json_line(summary.metadata), 200)}")
    if comparison is not None:
        lines.append(f"compared with {code(comparison.a, 200)} (A); every change is B − A")
    if summary.cells_missing:
        have = "has" if summary.cells_missing == 1 else "have"
        lines += ["", f"**Partial: {summary.cells_missing:,} of {cells} {have} not been run.**"]
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
        return _ids(text, column.value(row) or ())
    return code(text) if column.unit is Unit.NAME else text


def _section(title: str, columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[str]:
    return [f"## {title}", "", *table(columns, rows)] if rows else []


def _comparison(comparison: ComparisonReport) -> list[str]:
    lines = _section(f"Against {code(comparison.baseline)}", COMPARISON_COLUMNS, comparison.deltas)
    rows = forest_of_deltas(comparison.deltas)
    picture = ["", *_fenced_block("\n".join(forest_lines(rows)))] if len(rows) > 1 else []
    decisions = decisions_of(comparison)
    return [*lines, *_notes([(decision.variant_b, decision) for decision in decisions], comparison.deltas), *picture]


def _notes(decisions: Sequence[tuple[str, Decision]], deltas: Sequence[VariantDelta]) -> list[str]:
    """Below a table of differences: what they hold for, errors with what they could change, and warnings."""
    several = len(decisions) > 1
    lines = [f"- {note}"] if (note := numbers.family_note(deltas)) else []
    lines += [
        f"- {f'{code(name, 40)} ' if several else ''}{note_text(line)}"
        for name, decision in decisions
        for line in notes_of(decision)
    ]
    return ["", *dict.fromkeys(lines)] if lines else []


def note_text(note: str) -> str:
    """Our own words as they are; anything that may be data as code."""
    word, _, text = note.partition(": ")
    return f"{word}: {code(text, _LONGEST_WARNING)}"


def _gate(gate: GateOutcome) -> list[str]:
    lines = [f"## {'Reward' if numbers.is_reward(gate) else 'Gate'}: {_outcome(gate)}", "", *_conditions(gate)]
    for i, run in enumerate(gate.runs, 1):
        lines += [f"- run {i}: {_outcome(run)}", *(f"  {line}" for line in _conditions(run))]
    lines += [f"- {code(line, 200)}" for line in numbers.over_runs(gate.runs)]
    decided = "\n".join(gate_decisions(gate, Paint()))
    return [*lines, "", *_fenced_block(decided)] if decided else lines


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


def _changed_section(cells: Sequence[ChangedCell], total: int, run_id: str, context: ReportContext) -> list[str]:
    """Each changed case, folded, with the answers of trials that show the change."""
    lines = [f"## Changed cases: {total:,}"]
    for cell in cells:
        mark = "worse" if cell.worse else "better"
        # Markdown is not interpreted within these tags, so data is escaped for HTML.
        title = f"<code>{escape(one_line(cell.case_key, 80))}</code> <code>{escape(one_line(cell.variant, 40))}</code>"
        lines += ["", "<details>", f"<summary>{mark}: {title}</summary>", ""]
        if address := context.address(run_id, OfCase(case_id=cell.case_key), cell.variant, cell.after.trial):
            lines += [f"[all about it](<{address}>)", ""]
        for name, side in (("before", cell.before), ("after", cell.after)):
            title = f"{name}, {side.name}:" if side.name else f"{name}:"
            lines += [
                title,
                "",
                *_fenced_block("(no answer)" if side.answer is None else capped(side.answer, _LONGEST_ANSWER)),
                "",
            ]
        lines.append("</details>")
    if total > len(cells):
        lines += ["", f"… and {total - len(cells):,} more"]
    return lines if total else []


def _fenced_block(text: str) -> list[str]:
    """Data as a block that it cannot end: the fence is longer than any run of backticks in it."""
    body = harmless(text)
    fence = "`" * max(3, *(len(run) + 1 for run in _TICKS.findall(body)), 3)
    return [f"{fence}text", body, fence]


def _reasons(title: str, groups: ReasonGroups) -> list[str]:
    if not groups.cells:
        return []
    lines = [f"## {title}", ""]
    for group in islice(groups, _MOST_GROUPS):
        cases = ", ".join(f"{code(case.case_key, 40)} {code(case.variant, 30)}" for case, _ in group.cases)
        lines += [f"- {group.count:,} × {code(group.title, 200)}", f"  {cases}{group.rest}"]
    left = len(groups) - _MOST_GROUPS + groups.more
    return [*lines, f"- … and {counted(left, 'more reason')}"] if left > 0 else lines


def _verdicts(title: str, verdicts: Sequence[CaseVerdict], total: int, address: Address) -> list[str]:
    if not total:
        return []
    lines = [f"## {title}: {total:,}", "", *(line for verdict in verdicts for line in _verdict(verdict, address))]
    return [*lines, "", f"… and {total - len(verdicts):,} more"] if total > len(verdicts) else lines


def _verdict(verdict: CaseVerdict, address: Address) -> Iterator[str]:
    trial = f", trial {verdict.trial + 1}" if verdict.trial else ""
    between = ", borderline" if verdict.status == "borderline" else ""
    name = f"{code(verdict.case_key)} {code(verdict.variant_name)}"
    if page := address(verdict, verdict.variant_name, verdict.trial):
        name = f"[{name}](<{page}>)"
    yield f"- {name}{trial}{between}"
    if verdict.error is not None:
        yield f"  - {code(error_text(verdict.error), 300)}"
        return
    for reason in filter(None, verdict.reasons):
        yield f"  - {code(reason, 300)}"
