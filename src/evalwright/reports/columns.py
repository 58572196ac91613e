"""The tables of a run, defined once: titles, contents and conditions of their columns. Reports only draw them.

A new column is one row here and one line in docs/reports.md. None of it is computed during a run. Tables of
several runs and of calibration are in `decision_columns.py`: a run that ends needs neither them nor their statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

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
from evalwright.reports.column import Column, Unit, bold

__all__ = [
    "COMPARISON_COLUMNS",
    "EVALUATOR_COLUMNS",
    "METRIC_COLUMNS",
    "TRIAL_COLUMNS",
    "VARIANT_COLUMNS",
    "EvaluatorRow",
    "TrialRow",
    "evaluator_columns",
    "evaluator_rows",
    "metric_rows",
    "trial_rows",
    "variant_columns",
]

Row = TypeVar("Row")


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
