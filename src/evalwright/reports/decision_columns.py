"""The tables of comparisons, drift and calibration, once: see `columns.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from evalwright.decisions.comparison import EvaluatorComparison, Side, VariantComparison
from evalwright.decisions.drift import MeasureChange
from evalwright.model.calibration import CorrectedRate
from evalwright.model.decision import Decision
from evalwright.reports import numbers
from evalwright.reports.column import Column, Unit, bold
from evalwright.reports.decision_words import with_ends

__all__ = [
    "CORRECTED_RATE_COLUMNS",
    "EVALUATOR_CHANGE_COLUMNS",
    "MEASURE_CHANGE_COLUMNS",
    "RUN_COMPARISON_COLUMNS",
    "at_level",
]

Row = TypeVar("Row")


def at_level(columns: Sequence[Column[Row]], alpha: float) -> list[Column[Row]]:
    """The same columns, titled by the level of intervals that are not the usual 95 %."""
    level = f"{100 * (1 - alpha):.6g}% interval"
    return [column._replace(title=column.title.replace("95% interval", level)) for column in columns]


_COLOURS = {"ship": "pass", "dont": "fail", "undecided": ""}


def _rate_of(side: Side) -> float | None:
    return side.rate if side.n else None


def _direction(decision: Decision) -> str:
    """Colour follows the decision, not the sign."""
    return _COLOURS[decision.verdict] if decision.ci is not None else ""


def _change(pair: VariantComparison) -> str:
    """Ends show on which side of the margin they lie."""
    delta = pair.delta.pass_rate_delta
    return "" if delta is None else numbers.points(delta, pair.delta.pass_rate_delta_ci95, pair.decision.margin)


RUN_COMPARISON_COLUMNS: tuple[Column[VariantComparison], ...] = (
    Column("variant", "variant", Unit.NAME, lambda c: c.variant, style=bold),
    Column("a.rate", "A passed", Unit.RATE, lambda c: _rate_of(c.a), n=lambda c: c.a.n),
    Column("b.rate", "B passed", Unit.RATE, lambda c: _rate_of(c.b), n=lambda c: c.b.n),
    Column(
        "delta.pass_rate_delta",
        "change, 95% interval",
        Unit.POINTS,
        lambda c: c.delta.pass_rate_delta,
        interval=lambda c: c.delta.pass_rate_delta_ci95,
        style=lambda c: _direction(c.decision),
        text=_change,
    ),
    Column("delta.p_value", "p", Unit.PROBABILITY, lambda c: c.delta.p_value),
    Column("delta.p_holm", "p (Holm)", Unit.PROBABILITY, lambda c: c.delta.p_holm, shown="if_any"),
    Column("delta.n", "cases", Unit.COUNT, lambda c: c.delta.n),
    Column(
        "a.avg_latency_ms",
        "A latency",
        Unit.DURATION,
        lambda c: c.a.avg_latency_ms,
        n=lambda c: c.a.latency_n,
        shown="wide",
    ),
    Column(
        "b.avg_latency_ms",
        "B latency",
        Unit.DURATION,
        lambda c: c.b.avg_latency_ms,
        n=lambda c: c.b.latency_n,
        shown="wide",
    ),
    Column("a.avg_cost_usd", "A cost", Unit.MONEY, lambda c: c.a.avg_cost_usd, n=lambda c: c.a.cost_n, shown="wide"),
    Column("b.avg_cost_usd", "B cost", Unit.MONEY, lambda c: c.b.avg_cost_usd, n=lambda c: c.b.cost_n, shown="wide"),
)

EVALUATOR_CHANGE_COLUMNS: tuple[Column[EvaluatorComparison], ...] = (
    Column("evaluator", "evaluator", Unit.NAME, lambda c: c.evaluator, style=bold),
    Column("variant", "variant", Unit.NAME, lambda c: c.variant),
    Column("a.rate", "A passed", Unit.RATE, lambda c: _rate_of(c.a), n=lambda c: c.a.n),
    Column("b.rate", "B passed", Unit.RATE, lambda c: _rate_of(c.b), n=lambda c: c.b.n),
    Column("rate_delta", "change, 95% interval", Unit.POINTS, lambda c: c.rate_delta, interval=lambda c: c.rate_ci),
    Column("rate_p", "p", Unit.PROBABILITY, lambda c: c.rate_p),
    Column(
        "paired",
        "change of the score",
        Unit.CHANGE,
        lambda c: c.paired if c.scored else None,
        shown="if_any",
        text=lambda c: with_ends(c.paired, c.ci, c.evaluator) if c.scored else "",
    ),
    Column("p", "p of the score", Unit.PROBABILITY, lambda c: c.p if c.scored else None, shown="if_any"),
    Column("q", "q", Unit.PROBABILITY, lambda c: c.q, shown="if_any"),
)


MEASURE_CHANGE_COLUMNS: tuple[Column[MeasureChange], ...] = (
    Column("name", "measure", Unit.NAME, lambda m: m.name),
    Column("before", "baseline", Unit.NUMBER, lambda m: m.before),
    Column("after", "current", Unit.NUMBER, lambda m: m.after),
    Column("change", "change", Unit.CHANGE, lambda m: m.change),
    Column("n_before", "n before", Unit.COUNT, lambda m: m.n_before),
    Column("n_after", "n now", Unit.COUNT, lambda m: m.n_after),
)

CORRECTED_RATE_COLUMNS: tuple[Column[CorrectedRate], ...] = (
    Column("variant", "variant", Unit.NAME, lambda r: r.variant, style=bold),
    Column("judge.value", "judge", Unit.RATE, lambda r: r.judge.value, n=lambda r: r.judge.n),
    Column("corrected", "corrected", Unit.RATE, lambda r: r.corrected, interval=lambda r: r.corrected_ci95),
    Column("corrected_ci95", "95% interval", Unit.INTERVAL, lambda r: r.corrected_ci95, shown="if_any"),
    Column("powered", "powered", Unit.RATE, lambda r: r.powered, interval=lambda r: r.powered_ci95),
    Column("powered_ci95", "95% interval", Unit.INTERVAL, lambda r: r.powered_ci95, shown="if_any"),
    Column("labels", "labels", Unit.COUNT, lambda r: r.labels),
)
