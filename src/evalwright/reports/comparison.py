"""Two runs side by side on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.decisions.comparison import RunComparison, VariantComparison
from evalwright.reports.decision_columns import EVALUATOR_CHANGE_COLUMNS, RUN_COMPARISON_COLUMNS
from evalwright.reports.terminal import cell_name, table_lines
from evalwright.reports.text import Paint, one_line

__all__ = ["comparison_of_runs"]

_MOST_LISTED = 20


def comparison_of_runs(comparison: RunComparison, paint: Paint) -> list[str]:
    """Rates, changes and cases that changed; every change is B − A."""
    parts = [
        [f"{paint('A', 'bold')}  {one_line(comparison.a)}", f"{paint('B', 'bold')}  {one_line(comparison.b)}"],
        table_lines(RUN_COMPARISON_COLUMNS, comparison.variants, paint) or ["the runs have no variant in common"],
        table_lines(EVALUATOR_CHANGE_COLUMNS, comparison.evaluators, paint),
        _changes(comparison.variants, paint),
        _only("A", _cells_only(comparison, "a"), paint),
        _only("B", _cells_only(comparison, "b"), paint),
    ]
    return [line for part in parts if part for line in [*part, ""]][:-1]


def _changes(variants: Sequence[VariantComparison], paint: Paint) -> list[str]:
    worse = [(case, v.variant) for v in variants for case in v.delta.regressions]
    better = [(case, v.variant) for v in variants for case in v.delta.improvements]
    return [
        *_listed(f"Regressions: {len(worse):,}", worse, paint("✗", "fail"), paint),
        *_listed(f"Improvements: {len(better):,}", better, paint("✓", "pass"), paint),
    ]


def _only(side: str, cells: Sequence[tuple[str, str]], paint: Paint) -> list[str]:
    return _listed(f"{side} only: {len(cells):,}", cells, " ", paint) if cells else []


def _cells_only(comparison: RunComparison, side: str) -> list[tuple[str, str]]:
    cells = [(case, v.variant) for v in comparison.variants for case in getattr(v, f"{side}_only")]
    return cells + [("every case", name) for name in getattr(comparison, f"variants_{side}_only")]


def _listed(title: str, cells: Sequence[tuple[str, str]], mark: str, paint: Paint) -> list[str]:
    lines = [paint(title, "heading"), *(f"  {mark} {cell_name(*cell)}" for cell in cells[:_MOST_LISTED])]
    more = len(cells) - _MOST_LISTED
    return [*lines, paint(f"  … and {more:,} more (--json lists them all)", "dim")] if more > 0 else lines
