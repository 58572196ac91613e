"""A run on a terminal: variants, evaluators, comparison, trials, what failed and what to type next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalwright.model.plan import Plan
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import (
    ComparisonReport,
    EvaluatorRate,
    EvaluatorRollup,
    GateOutcome,
    RunSummary,
    TrialStatistics,
    VariantSummary,
)
from evalwright.reports import numbers
from evalwright.reports.calibration import calibration_mark
from evalwright.reports.failures import Shortfalls
from evalwright.reports.scores import score_lines
from evalwright.reports.text import Paint, Styled, Table, one_line

__all__ = ["cell_name", "comparison_lines", "run_lines", "shortfall_lines"]

_LONGEST_REASON = 200
_MOST_REASONS = 4
_MOST_IDS = 8
_MOST_TRIAL_COLUMNS = 8


def run_lines(plan: Plan, summary: RunSummary, paint: Paint) -> list[str]:
    """Everything about a run that its summary holds, part by part with an empty line before each."""
    parts = [
        _title(plan, summary, paint),
        _variants(summary.variants, paint),
        _costs(summary.variants, paint),
        _evaluators(summary.by_evaluator, paint),
        score_lines(summary.native, paint),
        _trials(summary.variants, paint),
        comparison_lines(summary.comparison, paint) if summary.comparison else [],
        _gate(summary.gate, paint) if summary.gate else [],
    ]
    return [line for part in parts if part for line in ["", *part]][1:]


def _gate(gate: GateOutcome, paint: Paint) -> list[str]:
    lines = _outcome("gate", gate, paint)
    for i, run in enumerate(gate.runs, 1):
        lines += [f"  {line}" for line in _outcome(f"run {i}", run, paint)]
    return [*lines, *(f"  {line}" for line in numbers.over_runs(gate.runs))]


def _outcome(name: str, gate: GateOutcome, paint: Paint) -> list[str]:
    outcome = paint("passed", "pass") if gate.passed else paint("failed", "fail")
    reason = f"  {one_line(gate.reason, _LONGEST_REASON)}" if gate.reason else ""
    held = {True: "held", False: "missed"}
    return [f"{name} {outcome}{reason}", *(f"  {held[p.passed]:6}  {numbers.condition(p)}" for p in gate.parts)]


def _title(plan: Plan, summary: RunSummary, paint: Paint) -> list[str]:
    sizes = [numbers.counted(summary.cases_total, "case")]
    if len(summary.variants) > 1:
        sizes.append(numbers.counted(len(summary.variants), "variant"))
    trials = max((v.trials.trials for v in summary.variants if v.trials), default=1)
    if trials > 1:
        sizes.append(numbers.counted(trials, "trial"))
    line = paint(one_line(plan.name, 80), "bold") + paint("  " + " × ".join(sizes), "dim")
    if not summary.cells_missing:
        return [line]
    planned = numbers.counted(summary.cells_total + summary.cells_missing, "cell")
    missing = f"partial: {summary.cells_missing:,} of {planned} not run"
    return [f"{line}   {paint(missing, 'error')}"]


def _variants(variants: Sequence[VariantSummary], paint: Paint) -> list[str]:
    rates = (">pass rate", ">95% interval", ">cases")
    table = Table(("variant", *rates, ">pass", ">borderline", ">fail", ">error", ">skip", ">mean latency"))
    for variant in variants:
        table.add(_variant_row(variant))
    return table.lines(paint)


def _variant_row(v: VariantSummary) -> Iterable[str | Styled]:
    yield v.name, "bold"
    yield numbers.percent(v.pass_rate) if v.pass_rate_n else "–"
    yield numbers.interval(v.pass_rate_ci95)
    yield f"{v.pass_rate_n:,}"
    for status in ("pass", "borderline", "fail", "error", "skip"):
        number = v.cells.get(status, 0)
        optional = status in ("borderline", "skip")
        yield ("" if optional and not number else f"{number:,}", status if number else "dim")
    yield numbers.mean_duration(v.avg_latency_ms, v.latency_n)


def _costs(variants: Sequence[VariantSummary], paint: Paint) -> list[str]:
    """Means over the cells that report them."""
    table = Table(("variant", ">mean cost", ">cost in all", ">mean tokens in", ">mean tokens out", ">judges"))
    for v in variants:
        row = [
            "" if v.avg_cost_usd is None else numbers.mean(numbers.money(v.avg_cost_usd), v.cost_n),
            "" if v.cost_total_usd is None else numbers.money(v.cost_total_usd),
            "" if v.avg_tokens_input is None else numbers.mean(f"{v.avg_tokens_input:,.0f}", v.tokens_input_n),
            "" if v.avg_tokens_output is None else numbers.mean(f"{v.avg_tokens_output:,.0f}", v.tokens_output_n),
            "" if v.judge_cost_usd is None else numbers.money(v.judge_cost_usd),
        ]
        if any(row):
            table.add([(v.name, "bold"), *row])
    return table.lines(paint) if table.rows else []


def _evaluators(rollups: Sequence[EvaluatorRollup], paint: Paint) -> list[str]:
    several = any(len(rollup.by_variant) > 1 for rollup in rollups)
    table = Table(("evaluator", "variant", ">passed", ">95% interval", ">n", ">mean score", ">errors", ">skipped", ""))
    for rollup in rollups:
        name, mark = rollup.evaluator, calibration_mark(rollup.calibration)
        for variant, rate in rollup.by_variant.items():
            score = _own_score(rate)
            table.add(
                [
                    name,
                    variant if several else "",
                    numbers.percent(rate.pass_rate) if rate.n else "–",
                    numbers.interval(rate.pass_rate_ci95),
                    numbers.results(rate),
                    "" if score is None else numbers.mean(f"{score:.3f}", rate.scored),
                    (f"{rate.errors:,}", "error") if rate.errors else "",
                    f"{rate.skipped:,}" if rate.skipped else "",
                    (mark, "dim"),
                ]
            )
            name = mark = ""
    return table.lines(paint) if table.rows else []


def _own_score(rate: EvaluatorRate) -> float | None:
    """The mean score where it says more than the pass rate does: 1 for a pass and 0 for a failure do not."""
    if rate.avg_score is None or (rate.scored == rate.n and abs(rate.avg_score - rate.pass_rate) < 1e-9):
        return None
    return rate.avg_score


def _trials(variants: Sequence[VariantSummary], paint: Paint) -> list[str]:
    repeated = [(v.name, v.trials) for v in variants if v.trials]
    if not repeated:
        return []
    shown = _trial_columns(max(trials.trials for _, trials in repeated))
    table = Table(("variant", "", *(f">k={k}" for k in shown), ">cases"))
    for name, trials in repeated:
        for label, rates, intervals in _by_k(trials):
            values = [rates[k - 1] if k <= len(rates) else None for k in shown]
            cells = ["" if value is None else numbers.percent(value) for value in values]
            table.add([name, label, *cells, f"{trials.cases:,}"])
            ends = [numbers.interval(intervals[k - 1]) if k <= len(intervals) else "" for k in shown]
            table.add(["", *((text, "dim") for text in ("95% interval", *ends)), ""])
            name = ""
    return table.lines(paint)


def _by_k(trials: TrialStatistics) -> list[tuple[str, list[float | None], list[tuple[float, float] | None]]]:
    return [
        ("pass@k, one of k", trials.pass_at_k, trials.pass_at_k_ci95),
        ("pass^k, all of k", trials.pass_hat_k, trials.pass_hat_k_ci95),
    ]


def _trial_columns(trials: int) -> list[int]:
    """Every k while there are few, else those that double, and the last one."""
    if trials <= _MOST_TRIAL_COLUMNS:
        return list(range(1, trials + 1))
    doubling = [2**i for i in range(trials.bit_length()) if 2**i < trials]
    return [*doubling, trials]


def comparison_lines(comparison: ComparisonReport, paint: Paint) -> list[str]:
    """The variants of a run against its baseline: signs and intervals as `variant − baseline`."""
    against = f"against {one_line(comparison.baseline, 40)}"
    table = Table((against, ">pass rate, 95% interval", ">p", ">cases", ">latency", ">worse", ">better"))
    changed: list[str] = []
    for delta in comparison.deltas:
        worse, better = len(delta.regressions), len(delta.improvements)
        table.add(
            [
                (delta.variant, "bold"),
                numbers.points(delta.pass_rate_delta, delta.pass_rate_delta_ci95),
                numbers.probability(delta.p_value),
                f"{delta.n:,}" if delta.n else "",
                numbers.signed_duration(delta.avg_latency_delta_ms),
                (f"{worse:,}", "fail" if worse else "dim"),
                (f"{better:,}", "pass" if better else "dim"),
            ]
        )
        changed += _ids(f"worse with {delta.variant}", delta.regressions, paint)
        changed += _ids(f"better with {delta.variant}", delta.improvements, paint)
    return [*table.lines(paint), *changed] if table.rows else []


def _ids(label: str, ids: Sequence[str], paint: Paint) -> list[str]:
    if not ids:
        return []
    listed = ", ".join(one_line(name, 24) for name in ids[:_MOST_IDS])
    more = ", …" if len(ids) > _MOST_IDS else ""
    return [f"  {paint(one_line(label, 60) + ':', 'dim')} {listed}{more}"]


def shortfall_lines(found: Shortfalls, run: str, paint: Paint) -> list[str]:
    """Failures with their reasons, then apart from them the cells that have no verdict. `run` is for commands."""
    more = f"evalwright inspect {run} --failed"
    failed = _listed("Failures", found.failed, found.failed_total, more, paint)
    errors = _listed("Errors, without a verdict", found.errored, found.errored_total, more, paint)
    return [*failed, *([""] if failed and errors else []), *errors]


def _listed(title: str, verdicts: Sequence[CaseVerdict], total: int, more: str, paint: Paint) -> list[str]:
    if not total:
        return []
    lines = [paint(f"{title} ({numbers.counted(total, 'cell')})", "heading")]
    for verdict in verdicts:
        lines += _verdict_lines(verdict, paint)
    if total > len(verdicts):
        lines.append(paint(f"  … and {total - len(verdicts):,} more: {more}", "dim"))
    return lines


def _verdict_lines(verdict: CaseVerdict, paint: Paint) -> list[str]:
    mark = paint({"error": "!", "borderline": "~"}.get(verdict.status, "✗"), verdict.status)
    lines = [f"  {mark} {cell_name(verdict.case_key, verdict.variant_name, verdict.trial)}"]
    reasons = verdict.reasons
    if verdict.error is not None:  # what evaluators say of an answer that never came explains nothing
        reasons = [f"{verdict.error.type}: {verdict.error.message}"]
    lines += [f"      {one_line(reason, _LONGEST_REASON)}" for reason in reasons[:_MOST_REASONS]]
    if len(reasons) > _MOST_REASONS:
        lines.append(paint(f"      … and {len(reasons) - _MOST_REASONS} more", "dim"))
    return lines


def cell_name(case: str, variant: str, trial: int = 0) -> str:
    """The cell as a person reads it."""
    name = f"{one_line(case, 80)} · {one_line(variant, 40)}"
    return f"{name} · trial {trial + 1}" if trial else name
