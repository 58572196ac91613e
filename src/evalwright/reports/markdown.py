"""A run as Markdown, for pull requests and pages.

Whatever comes from data stands in code spans, which it cannot leave: no HTML, links, mentions or table cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import ComparisonReport, GateOutcome, RunSummary, VariantSummary
from evalwright.reports import numbers
from evalwright.reports.calibration import calibration_mark
from evalwright.reports.failures import shortfalls
from evalwright.reports.text import one_line

__all__ = ["Markdown"]

_MOST_LISTED = 100
_TICKS = re.compile("`+")


class Markdown:
    """Markdown with tables (GitHub and GitLab), the first 100 failures and errors with their reasons."""

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        found = shortfalls(reader, summary, _MOST_LISTED)
        parts = [
            _head(summary),
            _variants(summary.variants),
            _evaluators(summary),
            _trials(summary.variants),
            _comparison(summary.comparison) if summary.comparison else [],
            _gate(summary.gate) if summary.gate else [],
            _verdicts("Failures", found.failed, found.failed_total),
            _verdicts("Errors (no verdict)", found.errored, found.errored_total),
        ]
        return "\n".join(line for part in parts if part for line in [*part, ""])


def code(text: str, limit: int = 80) -> str:
    """Data as a code span on one line; a pipe is shown as `¦`, as renderers disagree on how to escape it."""
    line = one_line(text, limit).replace("|", "¦")
    if not line:
        return ""
    ticks = "`" * (max(map(len, _TICKS.findall(line)), default=0) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _head(summary: RunSummary) -> list[str]:
    lines = [f"# Run {code(summary.run_id, 160)}", ""]
    cells = numbers.counted(summary.cells_total + summary.cells_missing, "cell")
    lines.append(f"{numbers.counted(summary.cases_total, 'case')}, {cells}; suite {code(summary.config_path, 200)}")
    lines.append(f"started {summary.started_at:%Y-%m-%d %H:%M:%S} UTC; rates with 95% Wilson intervals")
    if summary.cells_missing:
        lines += ["", f"**Partial: {summary.cells_missing:,} of {cells} have not been run.**"]
    return lines


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table whose columns but the first (and those without a name) align right."""
    rule = ["---", *("---:" if name else "---" for name in header[1:])]
    return [_row(header), _row(rule), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _variants(variants: Sequence[VariantSummary]) -> list[str]:
    between = ["borderline"] if any(v.cells.get("borderline") for v in variants) else []
    statuses = ["pass", *between, "fail", "error", "skip"]
    header = ["variant", "pass rate", "95% interval", "cases", *statuses]
    header += ["mean latency", "mean cost", "tokens in", "tokens out", "judges' cost"]
    return ["## Variants", "", *_table(header, (_variant_row(v, statuses) for v in variants))]


def _variant_row(v: VariantSummary, statuses: Sequence[str]) -> list[str]:
    return [
        code(v.name),
        numbers.percent(v.pass_rate) if v.pass_rate_n else "–",
        numbers.interval(v.pass_rate_ci95),
        f"{v.pass_rate_n:,}",
        *(f"{v.cells.get(status, 0):,}" for status in statuses),
        numbers.mean_duration(v.avg_latency_ms, v.latency_n),
        "" if v.avg_cost_usd is None else numbers.mean(numbers.money(v.avg_cost_usd), v.cost_n),
        "" if v.avg_tokens_input is None else numbers.mean(f"{v.avg_tokens_input:,.0f}", v.tokens_input_n),
        "" if v.avg_tokens_output is None else numbers.mean(f"{v.avg_tokens_output:,.0f}", v.tokens_output_n),
        "" if v.judge_cost_usd is None else numbers.money(v.judge_cost_usd),
    ]


def _evaluators(summary: RunSummary) -> list[str]:
    judges = any(rollup.calibration is not None for rollup in summary.by_evaluator)
    rows = [
        [
            code(rollup.evaluator),
            code(variant),
            numbers.percent(rate.pass_rate) if rate.n else "–",
            numbers.interval(rate.pass_rate_ci95),
            numbers.results(rate),
            "" if rate.avg_score is None else numbers.mean(f"{rate.avg_score:.3f}", rate.scored),
            f"{rate.errors:,}",
            f"{rate.skipped:,}",
            *([calibration_mark(rollup.calibration)] if judges else []),
        ]
        for rollup in summary.by_evaluator
        for variant, rate in rollup.by_variant.items()
    ]
    header = ["evaluator", "variant", "passed", "95% interval", "n", "mean score", "errors", "skipped"]
    header += ["against people"] if judges else []
    return ["## Evaluators", "", *_table(header, rows)] if rows else []


def _trials(variants: Sequence[VariantSummary]) -> list[str]:
    rows = [
        [code(v.name), str(k), _rate(v.trials.pass_at_k[k - 1]), _rate(v.trials.pass_hat_k[k - 1])]
        for v in variants
        if v.trials
        for k in range(1, v.trials.trials + 1)
    ]
    header = ["variant", "k", "pass@k (one of k)", "pass^k (all of k)"]
    return ["## Trials", "", *_table(header, rows)] if rows else []


def _rate(value: float | None) -> str:
    return "–" if value is None else numbers.percent(value)


def _comparison(comparison: ComparisonReport) -> list[str]:
    rows = [
        [
            code(delta.variant),
            numbers.points(delta.pass_rate_delta, delta.pass_rate_delta_ci95),
            numbers.probability(delta.p_value),
            f"{delta.n:,}",
            numbers.signed_duration(delta.avg_latency_delta_ms),
            _ids(delta.regressions),
            _ids(delta.improvements),
        ]
        for delta in comparison.deltas
    ]
    header = ["variant", "pass rate, 95% interval", "p", "cases", "latency", "regressions", "improvements"]
    return [f"## Against {code(comparison.baseline)}", "", *_table(header, rows)]


def _gate(gate: GateOutcome) -> list[str]:
    lines = [f"## Gate: {_outcome(gate)}", "", *_conditions(gate)]
    for i, run in enumerate(gate.runs, 1):
        lines += [f"- run {i}: {_outcome(run)}", *(f"  {line}" for line in _conditions(run))]
    return [*lines, *(f"- {code(line, 200)}" for line in numbers.over_runs(gate.runs))]


def _outcome(gate: GateOutcome) -> str:
    return ("passed" if gate.passed else "failed") + (f": {code(gate.reason, 200)}" if gate.reason else "")


def _conditions(gate: GateOutcome) -> list[str]:
    return [f"- {'held' if p.passed else 'missed'}: {code(numbers.condition(p), 200)}" for p in gate.parts]


def _ids(ids: Sequence[str]) -> str:
    shown = " ".join(code(name, 40) for name in ids[:10])
    return f"{len(ids):,} {shown}".rstrip() + (" …" if len(ids) > 10 else "")


def _verdicts(title: str, verdicts: Sequence[CaseVerdict], total: int) -> list[str]:
    if not total:
        return []
    lines = [f"## {title}: {total:,}", "", *(line for verdict in verdicts for line in _verdict(verdict))]
    return [*lines, "", f"… and {total - len(verdicts):,} more"] if total > len(verdicts) else lines


def _verdict(verdict: CaseVerdict) -> Iterator[str]:
    trial = f", trial {verdict.trial + 1}" if verdict.trial else ""
    between = ", borderline" if verdict.status == "borderline" else ""
    yield f"- {code(verdict.case_key)} {code(verdict.variant_name)}{trial}{between}"
    if verdict.error is not None:
        yield f"  - {code(f'{verdict.error.type}: {verdict.error.message}', 300)}"
        return
    for reason in filter(None, verdict.reasons):
        yield f"  - {code(reason, 300)}"
