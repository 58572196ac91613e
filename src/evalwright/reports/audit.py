"""The audit of a run, for a terminal."""

from __future__ import annotations

from evalwright.errors import counted, money
from evalwright.model.audit import AuditReport, EvaluatorAudit, MutationAudit, Survivor
from evalwright.reports import numbers
from evalwright.reports.column import Column, Unit, bold
from evalwright.reports.terminal import table_lines
from evalwright.reports.text import Paint, ended, folded, one_line, short_line

__all__ = ["audit_lines"]

_MOST_SHOWN = 5
"""Survivors of a mutation that are shown; `--json` has all."""
_WIDEST_CELL = 36
_SHORTEST_NAME = 20

_MUTATIONS: tuple[Column[MutationAudit], ...] = (
    Column("mutation", "mutation", Unit.NAME, lambda m: m.mutation, style=bold),
    Column("caught.value", "caught", Unit.RATE, lambda m: m.caught.value),
    Column("caught.ci95", "95% interval", Unit.INTERVAL, lambda m: m.caught.ci95),
    Column("mutants", "mutants", Unit.COUNT, lambda m: m.mutants),
    Column("survived", "survived", Unit.COUNT, lambda m: m.survived, style=lambda m: "fail" if m.survived else ""),
    Column("errors", "errors", Unit.COUNT, lambda m: m.errors or None, shown="if_any", style=lambda m: "error"),
)
_EVALUATORS: tuple[Column[EvaluatorAudit], ...] = (
    Column("evaluator", "evaluator", Unit.NAME, lambda e: e.evaluator, style=bold),
    Column("noticed.value", "noticed", Unit.RATE, lambda e: e.noticed.value),
    Column("noticed.ci95", "95% interval", Unit.INTERVAL, lambda e: e.noticed.ci95),
    Column("mutants", "mutants", Unit.COUNT, lambda e: e.mutants),
    Column("changes", "decides", Unit.COUNT, lambda e: e.changes),
    Column("errors", "errors", Unit.COUNT, lambda e: e.errors or None, shown="if_any", style=lambda e: "error"),
)


def audit_lines(report: AuditReport, paint: Paint) -> list[str]:
    """How many mutants were caught, by mutation and by evaluator, and some that were not."""
    parts = [
        _head(report, paint),
        _mutations(report, paint),
        _evaluators(report, paint),
        _survivors(report, paint),
        _errors(report, paint),
    ]
    return [line for part in parts if part for line in ["", *part]][1:]


def _mutations(report: AuditReport, paint: Paint) -> list[str]:
    lines = table_lines(_MUTATIONS, [m for m in report.mutations if m.mutants], paint)
    idle = [f"{m.mutation} ({m.not_applicable:,})" for m in report.mutations if m.not_applicable]
    if idle:
        lines += folded(f"does not apply (traces): {', '.join(idle)}".split(" "), paint.columns, "  ", "    ")
    return lines


def _evaluators(report: AuditReport, paint: Paint) -> list[str]:
    noted = {evaluator.evaluator: evaluator.note for evaluator in report.evaluators if evaluator.note} | report.left_out
    lines = table_lines(_EVALUATORS, report.evaluators, paint)
    lines += [line for name, why in noted.items() for line in _note(f"{short_line(name, _WIDEST_CELL)}: {why}", paint)]
    return [paint("Evaluators", "bold"), *lines] if lines else []


def _head(report: AuditReport, paint: Paint) -> list[str]:
    sized = f"{counted(report.mutants, 'mutant')} of {counted(report.traces, 'trace')}"
    if report.passed > report.traces:
        sized += f"; {counted(report.passed, 'cell')} passed"
    room = 60 if paint.columns is None else max(_SHORTEST_NAME, paint.columns - len(sized) - 2)
    lines = [paint(short_line(report.name, room), "bold") + paint(f"  {sized}", "dim")]
    rate, ends = numbers.share(report.caught), numbers.interval(report.caught.ci95)
    lines.append(f"Caught: {paint(rate, 'bold')} {f'({ends})' if ends else ''}".rstrip())
    if report.judge_cost_usd:
        lines.append(f"Judges cost {money(report.judge_cost_usd)}")
    return [*lines, *(line for note in report.notes for line in _note(note, paint))]


def _note(text: str, paint: Paint) -> list[str]:
    return folded(one_line(text).split(" "), paint.columns, "  note: ", "    ")


def _survivors(report: AuditReport, paint: Paint) -> list[str]:
    lines = []
    for mutation in report.mutations:
        survivors = [survivor for survivor in report.survivors if survivor.mutation == mutation.mutation]
        if survivors:
            lines.append(f"  {len(survivors):,} × {mutation.mutation}")
            lines += [_survivor(survivor, paint) for survivor in survivors[:_MOST_SHOWN]]
        if len(survivors) > _MOST_SHOWN:
            lines.append(paint(f"      and {len(survivors) - _MOST_SHOWN:,} more", "dim"))
    return [paint(f"Survived ({counted(len(report.survivors), 'mutant')})", "bold"), *lines] if lines else []


def _survivor(survivor: Survivor, paint: Paint) -> str:
    trial = f" · trial {survivor.trial + 1}" if survivor.trial else ""
    cell = short_line(f"{survivor.case_id} · {survivor.variant_name}{trial}", _WIDEST_CELL)
    line = f"      {cell}  {one_line(survivor.change, 200) or '(empty)'}"
    return line if paint.columns is None else ended(line, paint.columns)


def _errors(report: AuditReport, paint: Paint) -> list[str]:
    without = [
        counted(number, one, several)
        for number, one, several in (
            (report.errors, "mutant", "mutants"),
            (report.unjudged, "trace that passed", "traces that passed"),
        )
        if number
    ]
    if not without:
        return []
    reason = f"no verdict on {' and '.join(without)}, because an evaluator had an error"
    return _note(f"{reason}: {report.error_example}", paint)
