"""Drift as Markdown, for pull requests and nightly jobs."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.decisions.drift import Drift
from evalwright.errors import counted
from evalwright.model.summary import decisions_of
from evalwright.reports import numbers
from evalwright.reports.decision_columns import EVALUATOR_CHANGE_COLUMNS, MEASURE_CHANGE_COLUMNS
from evalwright.reports.decision_words import change_of, claim, notes_of
from evalwright.reports.markdown import code, note_text, table

__all__ = ["drift_lines"]

_MOST_LISTED = 100


def drift_lines(found: Drift, current: str) -> list[str]:
    """The report: counts, the change of the pass rate with its interval, cases, evaluators, latency, cost, tokens."""
    report = found.report
    (delta,) = report.deltas
    decisions = decisions_of(report)
    over = "" if report.counted is None else f"; counts over all {counted(report.counted, 'case')}, no error rate"
    lines = [
        f"# Drift: {code(current)}",
        "",
        f"Baseline: {code(report.baseline)}",
        "",
        *(
            f"- {f'{code(decision.variant_b)}: ' * (len(decisions) > 1)}{claim(decision)}: {change_of(decision)}"
            for decision in decisions
        ),
        f"- regressions: {report.regressions_count}{over}",
        f"- improvements: {report.improvements_count}{over}",
    ]
    if report.union_delta is not None:
        # the number is written as evalh writes it, which scripts may look for
        lines.append(f"- pass rate: {report.union_delta:+.2%} (percentage points){over}")
    lines += [
        f"- {note_text(line)}" for line in dict.fromkeys(line for decision in decisions for line in notes_of(decision))
    ]
    lines += [
        f"- cells with an error: {numbers.percent(c.before)} → {numbers.percent(c.after)}"
        for c in found.errored
        if c.before or c.after
    ]
    lines += _cases("Regressions", delta.regressions) + _cases("Improvements", delta.improvements)
    if found.evaluators:
        lines += ["", "## Evaluators", "", *table(EVALUATOR_CHANGE_COLUMNS, found.evaluators)]
    if found.measures:
        lines += ["", "## Measures, means of each run, not paired", "", *table(MEASURE_CHANGE_COLUMNS, found.measures)]
    return lines


def _cases(title: str, cases: Sequence[str]) -> list[str]:
    if not cases:
        return []
    more = [f"- … and {len(cases) - _MOST_LISTED:,} more"] if len(cases) > _MOST_LISTED else []
    return ["", f"## {title}", "", *(f"- {code(case)}" for case in cases[:_MOST_LISTED]), *more]
