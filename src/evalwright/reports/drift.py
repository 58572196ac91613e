"""Drift as Markdown, for pull requests and nightly jobs."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.decisions.drift import Drift, MeasureChange
from evalwright.reports import numbers
from evalwright.reports.markdown import code

__all__ = ["drift_lines"]

_MOST_LISTED = 100


def drift_lines(found: Drift, current: str) -> list[str]:
    """The report: counts, the change of the pass rate with its interval, cases, evaluators, latency, cost, tokens."""
    (delta,) = found.report.deltas
    interval = numbers.interval(delta.pass_rate_delta_ci95)
    p = "" if delta.p_value is None else f", p = {delta.p_value:.3g}"
    lines = [
        f"# Drift: {code(current)}",
        "",
        f"Baseline: {code(found.report.baseline)}",
        "",
        f"- regressions: {found.report.regressions_count}",
        f"- improvements: {found.report.improvements_count}",
        f"- pass rate: {delta.pass_rate_delta:+.2%} over {delta.n} cases (95% {interval}{p})",
    ]
    lines += [f"- cells with an error: {c.before:.1%} → {c.after:.1%}" for c in found.errored if c.before or c.after]
    lines += _cases("Regressions", delta.regressions) + _cases("Improvements", delta.improvements)
    lines += _table("Evaluators", found.evaluators, percent=True)
    return lines + _table("Measures", found.measures, percent=False)


def _cases(title: str, cases: Sequence[str]) -> list[str]:
    if not cases:
        return []
    more = [f"- ... and {len(cases) - _MOST_LISTED:,} more"] if len(cases) > _MOST_LISTED else []
    return ["", f"## {title}", "", *(f"- {code(case)}" for case in cases[:_MOST_LISTED]), *more]


def _table(title: str, changes: Sequence[MeasureChange], *, percent: bool) -> list[str]:
    if not changes:
        return []
    shown = "{:.1%}" if percent else "{:.6g}"
    signed = "{:+.1%}" if percent else "{:+.6g}"
    rows = [
        f"| {code(c.name)} | {shown.format(c.before)} | {shown.format(c.after)} | {signed.format(c.change)} "
        f"| {c.n_before:,} | {c.n_after:,} |"
        for c in changes
    ]
    head = ["| | baseline | current | change | n before | n now |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    return ["", f"## {title}", "", *head, *rows]
