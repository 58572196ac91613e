"""Two runs side by side on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from evalwright.decisions.comparison import RunComparison, VariantComparison
from evalwright.reports import numbers
from evalwright.reports.decision import reason_lines
from evalwright.reports.decision_columns import EVALUATOR_CHANGE_COLUMNS, RUN_COMPARISON_COLUMNS, at_level
from evalwright.reports.decision_words import change_of, claim, errors_line
from evalwright.reports.terminal import cell_name, table_lines
from evalwright.reports.text import Paint, one_line

__all__ = ["comparison_of_runs"]

_MOST_LISTED = 20
_WIDTH = 80
_STYLES = {"ship": "pass", "dont": "fail", "undecided": "borderline"}


def comparison_of_runs(comparison: RunComparison, paint: Paint) -> list[str]:
    """The decisions, rates, changes, errors, and cases that changed; every change is B − A."""
    alpha = next((variant.decision.alpha for variant in comparison.variants), 0.05)
    parts = [
        [line for variant in comparison.variants for line in _headline(variant, paint)],
        [f"{paint('A', 'bold')}  {one_line(comparison.a)}", f"{paint('B', 'bold')}  {one_line(comparison.b)}"],
        table_lines(at_level(RUN_COMPARISON_COLUMNS, alpha), comparison.variants, paint)
        or ["the runs have no variant in common"],
        _wrapped(numbers.family_note([variant.delta for variant in comparison.variants]), paint),
        table_lines(at_level(EVALUATOR_CHANGE_COLUMNS, alpha), comparison.evaluators, paint),
        [line for variant in comparison.variants for line in _wrapped(_errors(variant), paint)],
        [line for variant in comparison.variants for line in _reasons(variant, len(comparison.variants) > 1, paint)],
        _changes(comparison.variants, paint),
        _only("A", _cells_only(comparison, "a"), paint),
        _only("B", _cells_only(comparison, "b"), paint),
        [f"warning: {one_line(line)}" for line in _warnings(comparison)],
    ]
    return [line for part in parts if part for line in [*part, ""]][:-1]


def _width(paint: Paint) -> int:
    return max(40, min(paint.columns or _WIDTH, _WIDTH))


def _wrapped(line: str, paint: Paint) -> list[str]:
    return wrap(line, _width(paint), subsequent_indent="  ", break_on_hyphens=False)


def _headline(variant: VariantComparison, paint: Paint) -> list[str]:
    decision, name = variant.decision, one_line(variant.variant, 40)
    text = claim(decision)
    change = change_of(decision) if decision.n else ""
    verdict = f"{name}: {paint(text, _STYLES[decision.verdict])}"
    if len(f"{name}: {text}, {change}") > _width(paint):
        return [verdict, f"  {change}"]
    return [f"{verdict}, {change}" if change else verdict]


def _errors(variant: VariantComparison) -> str:
    """Errors of both sides, and what the difference would be if they had been verdicts."""
    text = errors_line(variant.decision)
    return f"errors in {one_line(variant.variant, 40)}: {text}" if text else ""


def _reasons(variant: VariantComparison, titled: bool, paint: Paint) -> list[str]:
    """Why B fails more or less often than A."""
    lines = reason_lines(variant.decision.clusters, _width(paint))
    return [f"{one_line(variant.variant, 40)}:" if titled else "", *lines][not titled :] if lines else []


def _warnings(comparison: RunComparison) -> list[str]:
    return list(dict.fromkeys(line for variant in comparison.variants for line in variant.decision.warnings))


def _changes(variants: Sequence[VariantComparison], paint: Paint) -> list[str]:
    worse = [(case, v.variant) for v in variants for case in v.decision.changed.worse]
    better = [(case, v.variant) for v in variants for case in v.decision.changed.better]
    return [
        *_listed(f"Changed cases, worse: {len(worse):,}", worse, paint("✗", "fail"), paint),
        *_listed(f"Changed cases, better: {len(better):,}", better, paint("✓", "pass"), paint),
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
