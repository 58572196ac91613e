"""A run on a terminal: variants, evaluators, comparison, trials, failures and the next command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from evalwright.errors import counted
from evalwright.model.decision import Decision
from evalwright.model.plan import Plan
from evalwright.model.summary import ComparisonReport, GateOutcome, RunSummary, VariantSummary, decisions_of
from evalwright.reports import numbers
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
from evalwright.reports.gates import gate_decisions
from evalwright.reports.statuses import shown_status
from evalwright.reports.table import Table
from evalwright.reports.text import Paint, ended, folded, one_line, short_line, shortened, width

if TYPE_CHECKING:
    from evalwright.reports.reasons import GroupedCase, ReasonGroup, ReasonGroups

__all__ = ["cell_name", "comparison_lines", "failure_lines", "run_lines", "table_lines"]

_LONGEST = 160
"""Characters of a miss, and of a case with its variant."""
_PARTS = (("mean", "mean_score"), ("median", "median_score"), ("lowest", "min_score"), ("highest", "max_score"))

Row = TypeVar("Row")

_LEFT = (Unit.NAME, Unit.TEXT)
_LONGEST_REASON = 200
_MOST_GROUPS = 10
_SHORTEST = 12
"""Columns of the name of a case or an eval, however narrow the screen is."""
_MOST_IDS = 8
_MOST_TRIALS = 8


def run_lines(plan: Plan, summary: RunSummary, paint: Paint) -> list[str]:
    """Everything in the summary of a run, one part after another, separated by empty lines."""
    parts = [
        _title(plan, summary, paint),
        table_lines(variant_columns(summary), summary.variants, paint),
        table_lines(evaluator_columns(summary), evaluator_rows(summary.by_evaluator), paint),
        table_lines(METRIC_COLUMNS, metric_rows(summary), paint),
        _score_lines(summary.native, paint) if summary.native else [],
        _folded_text(numbers.dependence(summary), paint),
        [*_trials(summary.variants, paint), *_mixed_cases(summary.variants, paint)],
        comparison_lines(summary.comparison, paint) if summary.comparison else [],
        _gate(summary.gate, paint) if summary.gate else [],
        [f"{paint('warning:', 'borderline')} {one_line(warning)}" for warning in summary.warnings],
        _folded_text(numbers.could_show(summary), paint),
    ]
    return [line for part in parts if part for line in ["", *part]][1:]


def _folded_text(text: str, paint: Paint) -> list[str]:
    return [paint(line, "dim") for line in folded(text.split(), paint.columns)] if text else []


def _gate(gate: GateOutcome, paint: Paint) -> list[str]:
    lines = _outcome("reward" if numbers.is_reward(gate) else "gate", gate, paint)
    for i, run in enumerate(gate.runs, 1):
        lines += [f"  {line}" for line in _outcome(f"run {i}", run, paint)]
    lines += [f"  {line}" for line in numbers.over_runs(gate.runs)]
    return [*lines, *(["", *decided] if (decided := gate_decisions(gate, paint)) else [])]


def _outcome(name: str, gate: GateOutcome, paint: Paint) -> list[str]:
    outcome = paint(*numbers.outcome(gate))
    reason = one_line(gate.reason, _LONGEST_REASON).split()
    lines = folded([outcome, "", *reason] if reason else [outcome], paint.columns, f"{name} ", "  ")
    for part in gate.parts:
        condition = one_line(numbers.condition(part), None).split(" ")
        lines += folded(condition, paint.columns, f"  {numbers.met(part)[0]:7}  ", " " * 11)
    return lines


def _title(plan: Plan, summary: RunSummary, paint: Paint) -> list[str]:
    sizes = [counted(summary.cases_total, "case")]
    if len(summary.variants) > 1:
        sizes.append(counted(len(summary.variants), "variant"))
    trials = set(plan.trials_by_variant.values())
    if trials - {1}:
        fewest = f"{min(trials)}–" if len(trials) > 1 else ""
        sizes.append(f"{fewest}{counted(max(trials), 'trial')}")
    shard = f", {summary.shard}" if summary.shard else ""
    sized, name = "  " + " × ".join(sizes) + shard, one_line(plan.name, 80)
    missing = f"   {numbers.missing_cells(summary)}" if summary.cells_missing else ""
    if paint.columns is not None:
        name = shortened(name, max(_SHORTEST, paint.columns - width(sized + missing)))
    return [paint(name, "bold") + paint(sized, "dim") + (paint(missing, "error") if missing else "")]


def table_lines(columns: Sequence[Column[Row]], rows: Sequence[Row], paint: Paint) -> list[str]:
    """A table of the columns that these rows need; a second name that is the same in all rows is left out."""
    shown = [
        column
        for i, column in enumerate(used(columns, rows))
        if i != 1 or column.unit is not Unit.NAME or len({column.value(row) for row in rows}) > 1
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


def _mixed_cases(variants: Sequence[VariantSummary], paint: Paint) -> list[str]:
    """Cases that passed in some trials and failed in others."""
    return [
        line
        for v in variants
        if v.trials is not None
        for line in _ids(f"mixed in {v.name}" if len(variants) > 1 else "mixed", v.trials.mixed, paint)
    ]


def _few(trials: int) -> set[int]:
    """Every k if there are few, else the powers of two."""
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
    return [
        *table_lines([against, *others], comparison.deltas, paint),
        *_folded_text(numbers.family_note(comparison.deltas), paint),
        *_notes(decisions_of(comparison), paint),
        *changed,
    ]


def _notes(decisions: Sequence[Decision], paint: Paint) -> list[str]:
    """Errors with what they could change, and warnings."""
    if not decisions:
        return []
    from evalwright.reports.decision_words import notes_of

    named = [
        (f"{decision.variant_b}: " if len(decisions) > 1 else "", line)
        for decision in decisions
        for line in notes_of(decision)
    ]
    return [row for name, line in named for row in folded(one_line(name + line).split(), paint.columns, indent="  ")]


def _ids(label: str, ids: Sequence[str], paint: Paint) -> list[str]:
    if not ids:
        return []
    first, *rest = folded(_listed_names(ids, paint), paint.columns, f"  {one_line(label, 60)}: ", "    ")
    head = f"{one_line(label, 60)}:"
    return [first.replace(head, paint(head, "dim"), 1), *rest]


def _listed_names(ids: Sequence[str], paint: Paint) -> list[str]:
    """The first names, each with its comma: lines break between these pieces, never within them."""
    names = [one_line(name, 80) if paint.whole else shortened(one_line(name, 80), 24) for name in ids[:_MOST_IDS]]
    left = len(ids) - len(names)
    return [*(f"{name}," for name in names[:-1]), names[-1] + (f" and {left:,} more" if left else "")]


def failure_lines(
    failed: ReasonGroups, errored: ReasonGroups, plan: Plan, summary: RunSummary, run: str, paint: Paint
) -> list[str]:
    """Failures by reason, then the cells without a verdict. `run` is the folder as a command names it."""
    from evalwright.reports.failures import failures_title

    parts = [
        (failed, f"{failures_title(summary.scored is True)} ({_sizes(failed)})"),
        (errored, f"Errors ({_sizes(errored)}, no verdict)"),
    ]
    columns = [
        [paint(title, "heading"), *_group_lines(groups, plan, summary, run, paint)]
        for groups, title in parts
        if groups.cells
    ]
    return [line for part in columns for line in ["", *part]][1:]


def _sizes(groups: ReasonGroups) -> str:
    cells = counted(groups.cells, "cell")
    return f"{cells}, {counted(len(groups), 'reason')}" if len(groups) > 1 else cells


def _group_lines(groups: ReasonGroups, plan: Plan, summary: RunSummary, run: str, paint: Paint) -> Iterator[str]:
    """Each of the most frequent reasons, and below it its first cases."""
    shown = [*islice(groups, _MOST_GROUPS)]
    digits = max(len(f"{group.count:,}") for group in shown)
    edge, indent = None if paint.whole else paint.columns, " " * (digits + len("   × "))
    room = _LONGEST_REASON if edge is None else edge - len(indent)
    for group in shown:
        # folded and not cut: advice stands at the end of a message
        words = [ended(word, room) for word in one_line(group.title, _LONGEST_REASON).split(" ")]
        yield from folded(words, edge, f"  {group.count:>{digits},} × ", indent)
        yield from _case_lines(group, plan, summary, " " * (digits + 5), paint)
    if left := len(groups) - len(shown) + groups.more:
        yield paint(f"  … and {counted(left, 'more reason')}: evalwright inspect {run} --failed", "dim")


def _case_lines(group: ReasonGroup, plan: Plan, summary: RunSummary, indent: str, paint: Paint) -> Iterator[str]:
    """The first cases of a group, on one line if they have room, each shortened in the middle if it alone has none."""
    several = len(summary.variants) > 1
    shown, planned = group.cases, plan.trials_by_variant
    ends = [
        "" if (of := planned.get(verdict.variant, 1)) == 1 else f" ({count} of {of} trials)" for verdict, count in shown
    ]
    ends[-1] += group.rest
    status = next((verdict.status for verdict, _ in shown if verdict.status), "")
    shown_as = shown_status(status, scored=summary.scored is True)
    mark = paint(shown_as.mark, shown_as.style)
    room = None if paint.whole or paint.columns is None else paint.columns - len(indent) - 2
    line = ", ".join(_shown_case(verdict, several) + end for (verdict, _), end in zip(shown, ends, strict=True))
    if room is None or width(line) <= room:
        yield f"{indent}{mark} {line}"
        return
    for i, ((one, _), end) in enumerate(zip(shown, ends, strict=True)):
        yield f"{indent}{mark if not i else ' '} {_shown_case(one, several, max(room - len(end), _SHORTEST))}{end}"


def _shown_case(case: GroupedCase, with_variant: bool, room: int = _LONGEST) -> str:
    """A case in at most `room` columns. Its variant has a third of them, as its name is in every line."""
    variant = f" · {short_line(case.variant, min(40, room // 3))}" if with_variant else ""
    return f"{short_line(case.case_key, min(80, room - width(variant)))}{variant}"


def cell_name(case: str, variant: str, trial: int = 0, *, trials: int = 1) -> str:
    """The name of a cell for people, who count trials from 1; the first is named if there are several `trials`."""
    name = f"{short_line(case, 80)} · {short_line(variant, 40)}"
    return f"{name} · trial {trial + 1}" if trial or trials > 1 else name


def _score_lines(native: dict[str, Any], paint: Paint) -> list[str]:
    """The scores of an AgentEvals run, and the misses that occur most often; nothing for totals of other formats."""
    if "median_score" not in native:
        return []
    parts = [f"{label} {native[name]:.3f}" for label, name in _PARTS]
    if native["std_score"] is not None:
        parts.append(f"standard deviation {native['std_score']:.3f}")
    text = f"score {', '.join(parts)} of {counted(native['total'], 'cell')}, errors counted as 0"
    first, *rest = folded(text.split(), paint.columns, indent="  ")
    lines = [first.replace("score", paint("score", "dim"), 1), *rest]
    misses = [f"  {miss['count']:>4,} × {one_line(miss['text'], _LONGEST)}" for miss in native["misses"]]
    return [*lines, *([paint("Most frequent misses", "heading"), *misses] if misses else [])]
