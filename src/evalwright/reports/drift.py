"""Drift as Markdown, for pull requests and nightly jobs."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.decisions.drift import Drift
from evalwright.errors import counted
from evalwright.reports import numbers
from evalwright.reports.decision_columns import MEASURE_CHANGE_COLUMNS, RATE_CHANGE_COLUMNS
from evalwright.reports.markdown import code, table

__all__ = ["drift_lines"]

_MOST_LISTED = 100


def drift_lines(found: Drift, current: str) -> list[str]:
    """The report: counts, the change of the pass rate with its interval, cases, evaluators, latency, cost, tokens."""
    (delta,) = found.report.deltas
    interval = numbers.interval(delta.pass_rate_delta_ci95)
    p = "" if delta.p_value is None else f", p {numbers.probability(delta.p_value)}"
    lines = [
        f"# Drift: {code(current)}",
        "",
        f"Baseline: {code(found.report.baseline)}",
        "",
        f"- regressions: {found.report.regressions_count}",
        f"- improvements: {found.report.improvements_count}",
        f"- pass rate: {delta.pass_rate_delta:+.2%} over {counted(delta.n, 'case')} (95% {interval}{p})",  # as in evalh
    ]
    lines += [
        f"- cells with an error: {numbers.percent(c.before)} → {numbers.percent(c.after)}"
        for c in found.errored
        if c.before or c.after
    ]
    lines += _cases("Regressions", delta.regressions) + _cases("Improvements", delta.improvements)
    for title, columns, changes in (
        ("Evaluators", RATE_CHANGE_COLUMNS, found.evaluators),
        ("Measures", MEASURE_CHANGE_COLUMNS, found.measures),
    ):
        lines += ["", f"## {title}", "", *table(columns, changes)] if changes else []
    return lines


def _cases(title: str, cases: Sequence[str]) -> list[str]:
    if not cases:
        return []
    more = [f"- … and {len(cases) - _MOST_LISTED:,} more"] if len(cases) > _MOST_LISTED else []
    return ["", f"## {title}", "", *(f"- {code(case)}" for case in cases[:_MOST_LISTED]), *more]
