"""A run as one HTML page that needs nothing from elsewhere: no script, no network, readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evalwright.model.protocols import RunReader
from evalwright.model.summary import (
    ComparisonReport,
    GateOutcome,
    RunSummary,
    TrialStatistics,
    VariantSummary,
)
from evalwright.reports import numbers
from evalwright.reports.calibration import calibration_mark
from evalwright.reports.html.cells import cells_shown
from evalwright.reports.html.elements import Child, Html, element, joined

__all__ = ["HtmlPage"]

_MOST_IDS = 50
_TEXTS = ("variant", "evaluator", "regressions", "improvements", "against people", "k")
"""Columns that hold no numbers."""
_STYLE = Html(
    ":root{color-scheme:light dark;--ink:#1c2024;--soft:#5b636b;--line:#d9dde2;--card:#f6f7f9;--pass:#0b6b35;"
    "--fail:#b3261e;--error:#8a3fb0;--mark:#2f6fd6}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e8ea;--soft:#a5abb2;--line:#3a3f45;--card:#1f2327;"
    "--pass:#5fd08f;--fail:#ff8a80;--error:#d7a6f0;--mark:#7eb0ff}}"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);margin:2rem auto;max-width:72rem;padding:0 1rem}"
    "h1{font-size:1.5rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2rem 0 .5rem}"
    "header p,.note{color:var(--soft);margin:.2rem 0;overflow-wrap:anywhere}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;width:100%}th,td{padding:.3rem .9rem .3rem 0;text-align:right;vertical-align:top;"
    "border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums;white-space:nowrap}"
    "th{color:var(--soft);font-weight:500}th.text,td.text{text-align:left;white-space:normal;"
    "min-width:7rem;overflow-wrap:anywhere}"
    ".interval{fill:var(--mark);opacity:.35}.rate{fill:var(--mark)}.track{fill:var(--line)}svg{vertical-align:middle}"
    ".pass{color:var(--pass)}.fail,.borderline{color:var(--fail)}.error{color:var(--error)}.skip{color:var(--soft)}"
    "details{border:1px solid var(--line);border-radius:6px;margin:.35rem 0}"
    "summary{cursor:pointer;padding:.35rem .7rem;overflow-wrap:anywhere}"
    "details[open]>summary{border-bottom:1px solid var(--line)}"
    "dl{display:grid;grid-template-columns:7rem minmax(0,1fr);gap:.4rem .8rem;margin:.7rem}"
    "dt{color:var(--soft)}dd{margin:0}pre{background:var(--card);border-radius:6px;font-size:13px;margin:0 0 .3rem;"
    "max-height:30rem;overflow:auto;padding:.5rem .7rem;white-space:pre-wrap;overflow-wrap:anywhere}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class HtmlPage:
    """Summary, comparison and gate, then up to 500 cells with everything about them, those that fell short first."""

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        head = element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", f"Run {summary.run_id}"),
            element("style", _STYLE),
        )
        parts = [
            _header(summary),
            _variants(summary.variants),
            _evaluators(summary),
            *(_trials(v.name, v.trials) for v in summary.variants if v.trials),
            *([_comparison(summary.comparison)] if summary.comparison else []),
            *([_gate(summary.gate)] if summary.gate else []),
            cells_shown(reader, summary),
        ]
        return f"<!doctype html>\n{element('html', head, element('body', *parts), lang='en')}\n"


def _header(summary: RunSummary) -> Html:
    cells = numbers.counted(summary.cells_total + summary.cells_missing, "cell")
    size = f"{numbers.counted(summary.cases_total, 'case')}, {cells}"
    partial = f"Partial: {summary.cells_missing:,} of {cells} have not been run."
    return element(
        "header",
        element("h1", f"Run {summary.run_id}"),
        element("p", f"{size}; suite ", element("code", summary.config_path)),
        element("p", f"started {summary.started_at:%Y-%m-%d %H:%M:%S} UTC; rates with 95% Wilson intervals"),
        element("p", element("strong", partial, class_="error")) if summary.cells_missing else "",
    )


def _section(title: Child, *content: Child) -> Html:
    return element("section", element("h2", title), *content)


def _table(header: Sequence[str], rows: Iterable[Sequence[Child]]) -> Html:
    sides = ["text" if name in _TEXTS else "number" for name in header]
    body = [element("tr", *(element("td", cell, class_=s) for cell, s in zip(row, sides, strict=True))) for row in rows]
    head = element("tr", *(element("th", name, class_=s) for name, s in zip(header, sides, strict=True)))
    return element("div", element("table", element("thead", head), element("tbody", body)), class_="wide")


def _rate(rate: float | None, ends: tuple[float, float] | None) -> Html:
    """A rate as a point on its interval; the numbers stand beside it."""
    if rate is None or ends is None:
        return Html("")
    low, high = (round(100 * end, 1) for end in ends)
    bar = [
        element("rect", class_="track", y="6", width="100", height="2"),
        element("rect", class_="interval", x=f"{low}", y="3", width=f"{max(high - low, 0.5):.1f}", height="8"),
        element("circle", class_="rate", cx=f"{100 * rate:.1f}", cy="7", r="3"),
    ]
    return element("svg", *bar, width="108", height="14", viewBox="-4 0 108 14", aria_hidden="true")


def _variants(variants: Sequence[VariantSummary]) -> Html:
    header = ["variant", "pass rate", "", "95% interval", "cases", "pass", "borderline", "fail", "error", "skip"]
    header += ["mean latency", "mean cost", "tokens in", "tokens out", "judges' cost"]
    rows = [list(_variant_row(v)) for v in variants]
    kept = [i for i, name in enumerate(header) if i < 6 or name in ("fail", "error") or any(row[i] for row in rows)]
    return _section("Variants", _table([header[i] for i in kept], ([row[i] for i in kept] for row in rows)))


def _variant_row(v: VariantSummary) -> Iterator[Child]:
    yield element("strong", v.name)
    yield numbers.percent(v.pass_rate) if v.pass_rate_n else "–"
    yield _rate(v.pass_rate if v.pass_rate_n else None, v.pass_rate_ci95)
    yield numbers.interval(v.pass_rate_ci95)
    yield f"{v.pass_rate_n:,}"
    for status in ("pass", "borderline", "fail", "error", "skip"):
        count = v.cells.get(status, 0)
        yield element("span", f"{count:,}", class_=status) if count else "" if status in ("borderline", "skip") else "0"
    yield numbers.mean_duration(v.avg_latency_ms, v.latency_n)
    yield "" if v.avg_cost_usd is None else numbers.mean(numbers.money(v.avg_cost_usd), v.cost_n)
    yield "" if v.avg_tokens_input is None else numbers.mean(f"{v.avg_tokens_input:,.0f}", v.tokens_input_n)
    yield "" if v.avg_tokens_output is None else numbers.mean(f"{v.avg_tokens_output:,.0f}", v.tokens_output_n)
    yield "" if v.judge_cost_usd is None else numbers.money(v.judge_cost_usd)


def _evaluators(summary: RunSummary) -> Html:
    judges = any(rollup.calibration is not None for rollup in summary.by_evaluator)
    rows = [
        [
            element("strong", rollup.evaluator),
            variant,
            numbers.percent(rate.pass_rate) if rate.n else "–",
            _rate(rate.pass_rate if rate.n else None, rate.pass_rate_ci95),
            numbers.interval(rate.pass_rate_ci95),
            numbers.results(rate),
            "" if rate.avg_score is None else numbers.mean(f"{rate.avg_score:.3f}", rate.scored),
            element("span", f"{rate.errors:,}", class_="error") if rate.errors else "0",
            f"{rate.skipped:,}",
            *([calibration_mark(rollup.calibration)] if judges else []),
        ]
        for rollup in summary.by_evaluator
        for variant, rate in rollup.by_variant.items()
    ]
    header = ["evaluator", "variant", "passed", "", "95% interval", "n", "mean score", "errors", "skipped"]
    header += ["against people"] if judges else []
    return _section("Evaluators", _table(header, rows)) if rows else Html("")


def _trials(variant: str, trials: TrialStatistics) -> Html:
    def intervals(ends: list[tuple[float, float] | None], k: int) -> str:
        return numbers.interval(ends[k]) if k < len(ends) else ""

    rows = [
        [
            str(k + 1),
            "–" if (one := trials.pass_at_k[k]) is None else numbers.percent(one),
            intervals(trials.pass_at_k_ci95, k),
            "–" if (every := trials.pass_hat_k[k]) is None else numbers.percent(every),
            intervals(trials.pass_hat_k_ci95, k),
        ]
        for k in range(trials.trials)
    ]
    header = ["k", "pass@k (one of k)", "95% interval", "pass^k (all of k)", "95% interval"]
    return _section(joined("Trials of ", element("code", variant)), _table(header, rows))


def _comparison(comparison: ComparisonReport) -> Html:
    rows = [
        [
            element("strong", delta.variant),
            numbers.points(delta.pass_rate_delta, delta.pass_rate_delta_ci95),
            numbers.probability(delta.p_value),
            f"{delta.n:,}",
            numbers.signed_duration(delta.avg_latency_delta_ms),
            _ids(delta.regressions, "fail"),
            _ids(delta.improvements, "pass"),
        ]
        for delta in comparison.deltas
    ]
    header = ["variant", "pass rate, 95% interval", "p", "cases", "latency", "regressions", "improvements"]
    return _section(joined("Against ", element("code", comparison.baseline)), _table(header, rows))


def _ids(ids: Sequence[str], style: str) -> Html:
    if not ids:
        return Html("0")
    more = [f" and {len(ids) - _MOST_IDS:,} more"] if len(ids) > _MOST_IDS else []
    named = [joined(element("code", name), " ") for name in ids[:_MOST_IDS]]
    return joined(element("span", f"{len(ids):,} ", class_=style), named, more)


def _gate(gate: GateOutcome) -> Html:
    outcome = _outcome(gate.passed, "passed", "failed")
    runs = [
        element("li", f"run {i} ", _outcome(run.passed, "passed", "failed"), f" {run.reason}", _conditions(run))
        for i, run in enumerate(gate.runs, 1)
    ]
    spreads = [element("li", line) for line in numbers.over_runs(gate.runs)]
    reason = element("p", gate.reason) if gate.reason else ""
    return _section(joined("Gate: ", outcome), reason, _conditions(gate), element("ul", runs, spreads) if runs else "")


def _conditions(gate: GateOutcome) -> Html | str:
    parts = [element("li", _outcome(p.passed, "held", "missed"), f": {numbers.condition(p)}") for p in gate.parts]
    return element("ul", parts) if parts else ""


def _outcome(passed: bool, good: str, bad: str) -> Html:
    return element("span", good, class_="pass") if passed else element("span", bad, class_="fail")
