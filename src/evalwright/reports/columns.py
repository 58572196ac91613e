"""The tables of a run, defined once: titles, contents and conditions of their columns. Reports only draw them.

A new column is one row here and one line in docs/reports.md. None of it is computed during a run. Tables of
several runs and of calibration are in `decision_columns.py`: a run that ends needs neither them nor their statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from evalwright.errors import money
from evalwright.model.calibration import JudgeCalibration
from evalwright.model.summary import (
    EvaluatorRate,
    EvaluatorRollup,
    NamedMetric,
    RunSummary,
    TrialStatistics,
    VariantDelta,
    VariantSummary,
)
from evalwright.reports import numbers

__all__ = [
    "COMPARISON_COLUMNS",
    "EVALUATOR_COLUMNS",
    "METRIC_COLUMNS",
    "TRIAL_COLUMNS",
    "VARIANT_COLUMNS",
    "Column",
    "EvaluatorRow",
    "TrialRow",
    "Unit",
    "bold",
    "evaluator_columns",
    "evaluator_rows",
    "metric_rows",
    "trial_rows",
    "used",
    "variant_columns",
]

Row = TypeVar("Row")
Interval = tuple[float, float]


class Unit(Enum):
    """The kind of a value, which determines how it is written."""

    NAME = auto()
    """A name or id from data: every report makes it harmless in its own way."""
    TEXT = auto()
    """A word that evalwright chose: needs no escaping."""
    RATE = auto()
    """A share from 0 to 1."""
    POINTS = auto()
    """A difference of shares, in percentage points."""
    INTERVAL = auto()
    """The ends of a 95 % interval of a rate."""
    PROBABILITY = auto()
    SCORE = auto()
    NUMBER = auto()
    """A number whose unit the row names."""
    CHANGE = auto()
    """A difference of such numbers."""
    COUNT = auto()
    DURATION = auto()
    """Milliseconds."""
    DURATION_CHANGE = auto()
    MONEY = auto()
    """US dollars."""
    TOKENS = auto()
    """A mean number of tokens."""
    CASES = auto()
    """Ids of cases: their number; reports that have room list them too."""


class Column(NamedTuple, Generic[Row]):
    """One column of a table of `Row`s."""

    key: str
    """The path of the value in the JSON of the row; a dot enters an object: `cells.pass`."""
    title: str
    unit: Unit
    value: Callable[[Row], Any]
    """None if there is nothing to show."""
    interval: Callable[[Row], Interval | None] | None = None
    """The 95 % interval of a rate or of a difference of rates."""
    n: Callable[[Row], int] | None = None
    """The number of values behind a mean."""
    shown: Literal["always", "if_any", "wide"] = "always"
    """`if_any`: only if some row has a value. `wide`: the same, and the first to leave a narrow table."""
    style: Callable[[Row], str] = lambda row: ""
    """How the value looks on a terminal and a page: `pass`, `fail`, `error`, ..."""
    text: Callable[[Row], str] | None = None
    """The text that people read, if unit, interval and n do not determine it."""

    def show(self, row: Row) -> str:
        """The value of a row as people read it; empty if there is none."""
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        if value is None:
            return "–" if self.unit is Unit.RATE else ""
        if self.unit is Unit.POINTS:
            return numbers.points(value, self.interval(row) if self.interval else None)
        return numbers.mean(_TEXTS[self.unit](value), self.n(row)) if self.n else _TEXTS[self.unit](value)


_TEXTS: dict[Unit, Callable[[Any], str]] = {
    Unit.NAME: str,
    Unit.TEXT: str,
    Unit.RATE: numbers.percent,
    Unit.INTERVAL: numbers.interval,
    Unit.PROBABILITY: numbers.probability,
    Unit.SCORE: numbers.score,
    Unit.NUMBER: "{:.6g}".format,
    Unit.CHANGE: numbers.change,
    Unit.COUNT: "{:,}".format,
    Unit.DURATION: numbers.duration,
    Unit.DURATION_CHANGE: numbers.signed_duration,
    Unit.MONEY: money,
    Unit.TOKENS: "{:,.0f}".format,
    Unit.CASES: lambda ids: f"{len(ids):,}",
}


def used(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[Column[Row]]:
    """The columns to show for these rows: the same in every report. A rate of 0 is a finding, a cost of 0 is none."""
    return [column for column in columns if column.shown == "always" or any(_has_value(column, row) for row in rows)]


def _has_value(column: Column[Row], row: Row) -> bool:
    value = column.value(row)
    return value is not None if column.unit is Unit.RATE else bool(value)


def bold(row: object) -> str:
    return "bold"


def _counted_as(status: str, count: Callable[[Row], int]) -> Callable[[Row], str]:
    return lambda row: status if count(row) else "dim"


def _cells(status: str, shown: Literal["always", "if_any"] = "always") -> Column[VariantSummary]:
    def count(row: VariantSummary) -> int:
        return row.cells.get(status, 0)

    return Column(f"cells.{status}", status, Unit.COUNT, count, shown=shown, style=_counted_as(status, count))


def _trial_value(value: Callable[[TrialStatistics], Any]) -> Callable[[VariantSummary], Any]:
    return lambda row: None if row.trials is None else value(row.trials)


def _dominated_text(row: VariantSummary) -> str:
    return ", ".join(row.dominated_by)


def _mixed_text(row: VariantSummary) -> str:
    return "" if row.trials is None else f"{row.trials.mixed_cases:,}"


VARIANT_COLUMNS: tuple[Column[VariantSummary], ...] = (
    Column("name", "variant", Unit.NAME, lambda v: v.name, style=bold),
    Column(
        "pass_rate",
        "pass rate",
        Unit.RATE,
        lambda v: v.pass_rate if v.pass_rate_n else None,
        interval=lambda v: v.pass_rate_ci95,
    ),
    Column("pass_rate_ci95", "95% interval", Unit.INTERVAL, lambda v: v.pass_rate_ci95),
    Column("pass_rate_n", "cases", Unit.COUNT, lambda v: v.pass_rate_n),
    _cells("pass"),
    _cells("borderline", "if_any"),
    _cells("fail"),
    _cells("error"),
    _cells("skip", "if_any"),
    Column(
        "avg_latency_ms",
        "mean latency",
        Unit.DURATION,
        lambda v: v.avg_latency_ms,
        n=lambda v: v.latency_n,
        shown="wide",
    ),
    Column("avg_cost_usd", "mean cost", Unit.MONEY, lambda v: v.avg_cost_usd, n=lambda v: v.cost_n, shown="wide"),
    Column("cost_total_usd", "total cost", Unit.MONEY, lambda v: v.cost_total_usd, shown="wide"),
    Column(
        "avg_tokens_input",
        "mean tokens in",
        Unit.TOKENS,
        lambda v: v.avg_tokens_input,
        n=lambda v: v.tokens_input_n,
        shown="wide",
    ),
    Column(
        "avg_tokens_output",
        "mean tokens out",
        Unit.TOKENS,
        lambda v: v.avg_tokens_output,
        n=lambda v: v.tokens_output_n,
        shown="wide",
    ),
    Column("judge_cost_usd", "judge cost", Unit.MONEY, lambda v: v.judge_cost_usd, shown="wide"),
    Column("trials.flake_rate", "flake rate", Unit.RATE, _trial_value(lambda t: t.flake_rate), shown="wide"),
    Column(
        "trials.flake_rate_ci95", "95% interval", Unit.INTERVAL, _trial_value(lambda t: t.flake_rate_ci95), shown="wide"
    ),
    Column("trials.mixed", "mixed cases", Unit.CASES, _trial_value(lambda t: t.mixed), shown="wide", text=_mixed_text),
    Column("dominated_by", "dominated by", Unit.NAME, lambda v: v.dominated_by, shown="wide", text=_dominated_text),
)


_OF_VERDICTS = ("pass_rate", "pass_rate_ci95", "cells.pass", "cells.borderline", "cells.fail")


def variant_columns(summary: RunSummary) -> tuple[Column[VariantSummary], ...]:
    """The columns of a run's variants: without passes and failures if it only has scores."""
    if summary.scored is not True:
        return VARIANT_COLUMNS
    return tuple(column for column in VARIANT_COLUMNS if column.key not in _OF_VERDICTS)


class EvaluatorRow(NamedTuple):
    """One evaluator on one variant."""

    evaluator: str
    variant: str
    rate: EvaluatorRate
    calibration: JudgeCalibration | None


def evaluator_rows(rollups: Sequence[EvaluatorRollup]) -> list[EvaluatorRow]:
    """The rows of a run's evaluators, those of one evaluator together."""
    return [
        EvaluatorRow(rollup.evaluator, variant, rate, rollup.calibration)
        for rollup in rollups
        for variant, rate in rollup.by_variant.items()
    ]


def _own_score(row: EvaluatorRow) -> float | None:
    """The mean score if it says more than the pass rate, which scores of 1 for a pass and 0 for a failure do not."""
    score, passed = row.rate.avg_score, row.rate.pass_rate
    if score is None or (passed is not None and row.rate.scored == row.rate.n and abs(score - passed) < 1e-9):
        return None
    return score


EVALUATOR_COLUMNS: tuple[Column[EvaluatorRow], ...] = (
    Column("evaluator", "evaluator", Unit.NAME, lambda e: e.evaluator, style=bold),
    Column("variant", "variant", Unit.NAME, lambda e: e.variant),
    Column(
        "pass_rate",
        "passed",
        Unit.RATE,
        lambda e: e.rate.pass_rate if e.rate.n else None,
        interval=lambda e: e.rate.pass_rate_ci95,
    ),
    Column("pass_rate_ci95", "95% interval", Unit.INTERVAL, lambda e: e.rate.pass_rate_ci95),
    Column("n", "n", Unit.COUNT, lambda e: e.rate.n, text=lambda e: numbers.results(e.rate)),
    Column("avg_score", "score per result", Unit.SCORE, _own_score, n=lambda e: e.rate.scored, shown="wide"),
    Column(
        "errors",
        "errors",
        Unit.COUNT,
        lambda e: e.rate.errors,
        shown="if_any",
        style=_counted_as("error", lambda e: e.rate.errors),
    ),
    Column("skipped", "skipped", Unit.COUNT, lambda e: e.rate.skipped, shown="if_any"),
    Column(
        "calibration",
        "calibration",
        Unit.TEXT,
        lambda e: e.calibration,
        shown="wide",
        style=lambda e: "dim",
        text=lambda e: numbers.agreement_figures(e.calibration),
    ),
)


def evaluator_columns(summary: RunSummary) -> tuple[Column[EvaluatorRow], ...]:
    """The columns of a run's evaluators: only the scores if it has no passes and failures."""
    if summary.scored is not True:
        return EVALUATOR_COLUMNS
    instead = {
        "n": Column[EvaluatorRow]("scored", "scores", Unit.COUNT, lambda e: e.rate.scored),
        "avg_score": Column[EvaluatorRow]("avg_score", "score per result", Unit.SCORE, lambda e: e.rate.avg_score),
    }
    return tuple(instead.get(column.key, column) for column in EVALUATOR_COLUMNS if column.key not in _OF_VERDICTS)


METRIC_COLUMNS: tuple[Column[NamedMetric], ...] = (
    Column("metric", "metric", Unit.NAME, lambda m: m.metric, style=bold),
    Column("variant", "variant", Unit.NAME, lambda m: m.variant),
    Column("mean", "mean score", Unit.SCORE, lambda m: m.mean, n=lambda m: m.n, shown="if_any"),
    Column("value", "value", Unit.NUMBER, lambda m: m.value),
)


def metric_rows(summary: RunSummary) -> list[NamedMetric]:
    """The rows of a run's named metrics, those of one metric together."""
    return list(summary.named_metrics or ())


class TrialRow(NamedTuple):
    """A variant at one `k`, which is a position in the lists of its statistics."""

    variant: str
    k: int
    trials: TrialStatistics


def trial_rows(variants: Sequence[VariantSummary]) -> list[TrialRow]:
    """The rows of the variants that ran several times, k = 1 to the number of trials."""
    return [TrialRow(v.name, k, v.trials) for v in variants if v.trials for k in range(1, v.trials.trials + 1)]


def _at(values: Callable[[TrialStatistics], Sequence[Any]]) -> Callable[[TrialRow], Any]:
    def at(row: TrialRow) -> Any:
        found = values(row.trials)
        return found[row.k - 1] if row.k <= len(found) else None  # version 0.1 stored fewer lists

    return at


TRIAL_COLUMNS: tuple[Column[TrialRow], ...] = (
    Column("name", "variant", Unit.NAME, lambda t: t.variant, style=bold),
    Column("k", "k", Unit.TEXT, lambda t: t.k),
    Column("trials.pass_at_k", "pass@k (one of k)", Unit.RATE, _at(lambda t: t.pass_at_k)),
    Column("trials.pass_at_k_ci95", "95% interval", Unit.INTERVAL, _at(lambda t: t.pass_at_k_ci95), shown="if_any"),
    Column("trials.pass_hat_k", "pass^k (all of k)", Unit.RATE, _at(lambda t: t.pass_hat_k)),
    Column("trials.pass_hat_k_ci95", "95% interval", Unit.INTERVAL, _at(lambda t: t.pass_hat_k_ci95), shown="if_any"),
    Column("trials.cases_by_k", "cases", Unit.COUNT, _at(lambda t: t.cases_by_k or [t.cases] * t.trials)),
)

COMPARISON_COLUMNS: tuple[Column[VariantDelta], ...] = (
    Column("variant", "variant", Unit.NAME, lambda d: d.variant, style=bold),
    Column(
        "pass_rate_delta",
        "pass rate, 95% interval",
        Unit.POINTS,
        lambda d: d.pass_rate_delta,
        interval=lambda d: d.pass_rate_delta_ci95,
    ),
    Column("p_value", "p", Unit.PROBABILITY, lambda d: d.p_value),
    Column("p_holm", "p (Holm)", Unit.PROBABILITY, lambda d: d.p_holm, shown="if_any"),
    Column("n", "cases", Unit.COUNT, lambda d: d.n),
    Column(
        "avg_latency_delta_ms",
        "mean latency, not paired",
        Unit.DURATION_CHANGE,
        lambda d: d.avg_latency_delta_ms,
        shown="wide",
    ),
    Column(
        "regressions",
        "changed, worse",
        Unit.CASES,
        lambda d: d.regressions,
        style=_counted_as("fail", lambda d: len(d.regressions)),
    ),
    Column(
        "improvements",
        "changed, better",
        Unit.CASES,
        lambda d: d.improvements,
        style=_counted_as("pass", lambda d: len(d.improvements)),
    ),
)
