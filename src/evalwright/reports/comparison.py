"""Two runs side by side on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evalwright.decisions.comparison import EvaluatorComparison, RunComparison, Side, VariantComparison
from evalwright.reports import numbers
from evalwright.reports.terminal import cell_name
from evalwright.reports.text import Paint, Table, one_line

__all__ = ["comparison_of_runs"]

_MOST_LISTED = 20


def comparison_of_runs(comparison: RunComparison, paint: Paint) -> list[str]:
    """Rates, changes and cases that changed; every change is B − A."""
    parts = [
        [f"{paint('A', 'bold')}  {one_line(comparison.a)}", f"{paint('B', 'bold')}  {one_line(comparison.b)}"],
        _variants(comparison.variants, paint),
        _means(comparison.variants, paint),
        _evaluators(comparison.evaluators, paint),
        _changes(comparison.variants, paint),
        _only("A", _cells_only(comparison, "a"), paint),
        _only("B", _cells_only(comparison, "b"), paint),
    ]
    return [line for part in parts if part for line in [*part, ""]][:-1]


def _variants(variants: Sequence[VariantComparison], paint: Paint) -> list[str]:
    if not variants:
        return ["the runs have no variant in common"]
    change = (">change, 95% interval", ">p", ">cases in both")
    table = Table(("variant", ">A passed", ">B passed", *change))
    for v in variants:
        delta = v.delta
        points = numbers.points(delta.pass_rate_delta, delta.pass_rate_delta_ci95)
        table.add(
            [
                (v.variant, "bold"),
                _rate(v.a),
                _rate(v.b),
                (points, _style(delta.pass_rate_delta)),
                numbers.probability(delta.p_value),
                f"{delta.n:,}",
            ]
        )
    return table.lines(paint)


def _means(variants: Sequence[VariantComparison], paint: Paint) -> list[str]:
    table = Table(("variant", ">A latency", ">B latency", ">A cost", ">B cost"))
    for v in variants:
        latencies = [_mean(side.avg_latency_ms, side.latency_n, numbers.duration) for side in (v.a, v.b)]
        costs = [_mean(side.avg_cost_usd, side.cost_n, numbers.money) for side in (v.a, v.b)]
        table.add([(v.variant, "bold"), *latencies, *costs])
    return table.lines(paint) if variants else []


def _mean(value: float | None, n: int, shown: Callable[[float], str]) -> str:
    return "" if value is None else numbers.mean(shown(value), n)


def _rate(side: Side) -> str:
    return numbers.mean(numbers.percent(side.rate), side.n) if side.n else "–"


def _style(delta: float) -> str:
    return "" if delta == 0 else "fail" if delta < 0 else "pass"


def _evaluators(pairs: Sequence[EvaluatorComparison], paint: Paint) -> list[str]:
    several = len({pair.variant for pair in pairs}) > 1
    table = Table(("evaluator", "variant", ">A passed", ">B passed", ">change"))
    for pair in pairs:
        change = (numbers.points(pair.rate_delta), _style(pair.rate_delta))
        table.add([pair.evaluator, pair.variant if several else "", _rate(pair.a), _rate(pair.b), change])
    return table.lines(paint) if pairs else []


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
