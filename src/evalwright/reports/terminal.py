"""A run on a terminal: variants, evaluators, comparison, trials, failures and the next command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from evalwright.errors import counted
from evalwright.model.plan import Plan
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import ComparisonReport, GateOutcome, RunSummary, VariantSummary
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
from evalwright.reports.failures import Failures, error_text
from evalwright.reports.gates import gate_decisions
from evalwright.reports.table import Table
from evalwright.reports.text import Paint, one_line

__all__ = ["cell_name", "comparison_lines", "failure_lines", "run_lines", "table_lines"]

_LONGEST = 160
"""Characters of a miss."""
_PARTS = (("mean", "mean_score"), ("median", "median_score"), ("lowest", "min_score"), ("highest", "max_score"))

Row = TypeVar("Row")

_LEFT = (Unit.NAME, Unit.TEXT)
_LONGEST_REASON = 200
_MOST_REASONS = 4
_MOST_IDS = 8
_MOST_TRIALS = 8


def run_lines(plan: Plan, summary: RunSummary, paint: Paint) -> list[str]:
    """Everything in the summary of a run, one part after another, separated by empty lines."""
    parts = [
        _title(plan, summary, paint),
        table_lines(variant_columns(summary), summary.variants, paint),
        table_lines(evaluator_columns(summary), evaluator_rows(summary.by_evaluator), paint),
        _score_lines(summary.native, paint) if summary.native else [],
        [*_trials(summary.variants, paint), *_mixed(summary.variants, paint)],
        comparison_lines(summary.comparison, paint) if summary.comparison else [],
        _gate(summary.gate, paint) if summary.gate else [],
        [f"{paint('warning:', 'borderline')} {one_line(warning)}" for warning in summary.warnings],
        [paint(shows, "dim")] if (shows := numbers.could_show(summary)) else [],
    ]
    return [line for part in parts if part for line in ["", *part]][1:]


def _gate(gate: GateOutcome, paint: Paint) -> list[str]:
    lines = _outcome("reward" if numbers.is_reward(gate) else "gate", gate, paint)
    for i, run in enumerate(gate.runs, 1):
        lines += [f"  {line}" for line in _outcome(f"run {i}", run, paint)]
    lines += [f"  {line}" for line in numbers.over_runs(gate.runs)]
    return [*lines, *(["", *decided] if (decided := gate_decisions(gate, paint)) else [])]


def _outcome(name: str, gate: GateOutcome, paint: Paint) -> list[str]:
    outcome = paint(*numbers.outcome(gate))
    reason = f"  {one_line(gate.reason, _LONGEST_REASON)}" if gate.reason else ""
    return [f"{name} {outcome}{reason}", *(f"  {numbers.met(p)[0]:7}  {numbers.condition(p)}" for p in gate.parts)]


def _title(plan: Plan, summary: RunSummary, paint: Paint) -> list[str]:
    sizes = [counted(summary.cases_total, "case")]
    if len(summary.variants) > 1:
        sizes.append(counted(len(summary.variants), "variant"))
    trials = max((v.trials or plan.run.trials for v in plan.variants), default=1)
    if trials > 1:
        sizes.append(counted(trials, "trial"))
    line = paint(one_line(plan.name, 80), "bold") + paint("  " + " × ".join(sizes), "dim")
    if not summary.cells_missing:
        return [line]
    planned = counted(summary.cells_total + summary.cells_missing, "cell")
    missing = f"partial: {summary.cells_missing:,} of {planned} not run"
    return [f"{line}   {paint(missing, 'error')}"]


def table_lines(columns: Sequence[Column[Row]], rows: Sequence[Row], paint: Paint) -> list[str]:
    """A table of the columns that these rows need; a second name that is the same in all rows is left out."""
    shown = [
        column
        for i, column in enumerate(used(columns, rows))
        if not i or column.unit is not Unit.NAME or len({column.value(row) for row in rows}) > 1
    ]
    names = next(i for i, column in enumerate(shown) if column.unit not in _LEFT)
    wide = [i for i, column in enumerate(shown) if column.shown == "wide"]
    table = Table([("" if c.unit in _LEFT else ">") + one_line(c.title, 60) for c in shown], names=names, wide=wide)
    for row in rows:
        table.add((column.show(row), column.style(row)) for column in shown)
    return table.lines(paint) if rows else []


def _trials(variants: Sequence[VariantSummary], paint: Paint) -> list[str]:
    rows = trial_rows(variants)
    shown = _few(max((row.k for row in rows), default=0))
    return table_lines(TRIAL_COLUMNS, [row for row in rows if row.k in shown or row.k == row.trials.trials], paint)


def _mixed(variants: Sequence[VariantSummary], paint: Paint) -> list[str]:
    """Cases that passed in some trials and failed in others."""
    return [
        line
        for v in variants
        if v.trials is not None
        for line in _ids(f"mixed in {v.name}" if len(variants) > 1 else "mixed", v.trials.mixed, paint)
    ]


def _few(trials: int) -> set[int]:
    """Every k while there are few, else those that double, and the last one."""
    return set(range(1, trials + 1)) if trials <= _MOST_TRIALS else {2**i for i in range(trials.bit_length())}


def comparison_lines(comparison: ComparisonReport, paint: Paint) -> list[str]:
    """The variants of a run against its baseline: signs and intervals as `variant − baseline`."""
    variant, *others = COMPARISON_COLUMNS
    against = variant._replace(title=f"against {one_line(comparison.baseline, 40)}")
    changed = [
        line
        for delta in comparison.deltas
        for line in [
            *_ids(f"changed in {delta.variant}, worse", delta.regressions, paint),
            *_ids(f"changed in {delta.variant}, better", delta.improvements, paint),
        ]
    ]
    return [*table_lines([against, *others], comparison.deltas, paint), *changed]


def _ids(label: str, ids: Sequence[str], paint: Paint) -> list[str]:
    if not ids:
        return []
    listed = ", ".join(one_line(name, 24) for name in ids[:_MOST_IDS])
    more = ", …" if len(ids) > _MOST_IDS else ""
    return [f"  {paint(one_line(label, 60) + ':', 'dim')} {listed}{more}"]


def failure_lines(found: Failures, run: str, paint: Paint) -> list[str]:
    """Failures with their reasons, then the cells without a verdict. `run` is the folder as a command names it."""
    more = f"evalwright inspect {run} --failed"

    def listed(title: str, verdicts: Sequence[CaseVerdict], total: int) -> list[str]:
        return _listed(title, verdicts, total, more, found.scored, paint)

    failed = listed(f"{found.title} ({counted(found.failed_total, 'cell')})", found.failed, found.failed_total)
    title = f"Errors ({counted(found.errored_total, 'cell')}, no verdict)"
    errors = listed(title, found.errored, found.errored_total)
    return [*failed, *([""] if failed and errors else []), *errors]


def _listed(
    title: str, verdicts: Sequence[CaseVerdict], total: int, more: str, scored: bool, paint: Paint
) -> list[str]:
    if not total:
        return []
    lines = [paint(title, "heading")]
    for verdict in verdicts:
        lines += _verdict_lines(verdict, scored, paint)
    if total > len(verdicts):
        lines.append(paint(f"  … and {total - len(verdicts):,} more: {more}", "dim"))
    return lines


def _verdict_lines(verdict: CaseVerdict, scored: bool, paint: Paint) -> list[str]:
    mark = paint({"error": "!", "borderline": "~"}.get(verdict.status, "·" if scored else "✗"), verdict.status)
    lines = [f"  {mark} {cell_name(verdict.case_key, verdict.variant_name, verdict.trial)}"]
    reasons = verdict.reasons
    if verdict.error is not None:  # results for an answer that never came explain nothing
        reasons = [error_text(verdict.error)]
    lines += [f"      {one_line(reason, _LONGEST_REASON)}" for reason in reasons[:_MOST_REASONS]]
    if len(reasons) > _MOST_REASONS:
        lines.append(paint(f"      … and {len(reasons) - _MOST_REASONS} more", "dim"))
    return lines


def cell_name(case: str, variant: str, trial: int = 0) -> str:
    """The name of a cell for people, who count trials from 1."""
    name = f"{one_line(case, 80)} · {one_line(variant, 40)}"
    return f"{name} · trial {trial + 1}" if trial else name


def _score_lines(native: dict[str, Any], paint: Paint) -> list[str]:
    """The scores of an AgentEvals run, and the misses that occur most often; nothing for totals of other formats."""
    if "median_score" not in native:
        return []
    parts = [f"{label} {native[name]:.3f}" for label, name in _PARTS]
    if native["std_score"] is not None:
        parts.append(f"standard deviation {native['std_score']:.3f}")
    line = f"{paint('score', 'dim')} {', '.join(parts)} of {counted(native['total'], 'cell')}, errors counted as 0"
    misses = [f"  {miss['count']:>4,} × {one_line(miss['text'], _LONGEST)}" for miss in native["misses"]]
    return [line, *([paint("Most frequent misses", "heading"), *misses] if misses else [])]
