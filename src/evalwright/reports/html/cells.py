"""The cells of a run for its HTML page: errors and failures first, each as a section that opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import Any

import msgspec

from evalwright.errors import counted
from evalwright.model.cell_index import CellIndex, StaleIndex
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult, Status
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Span, ToolCall, ToolResult, Trace, TraceMessage
from evalwright.reports.failures import error_text, failures_title, finished_index, first_verdicts
from evalwright.reports.html.elements import Child, Html, element, side_by_side
from evalwright.reports.inspection import MARKS, calls_with_results, facts, recorded_metrics
from evalwright.reports.steps import about, outlined, recorded_in
from evalwright.reports.terminal import cell_name
from evalwright.reports.text import capped

__all__ = ["cells_shown"]

_Key = tuple[str, str, int, int]

_FAILURES = "Failures"
_REST = "Passed and skipped"
_MOST = {"Errors (no verdict)": 200, _FAILURES: 200, _REST: 100}
"""Cells of each group that are shown."""
_STATUSES: dict[str, tuple[Status, ...]] = {
    "Errors (no verdict)": ("error",),
    _FAILURES: ("fail", "borderline"),
    _REST: ("pass", "skip"),
}
_GROUPS: dict[str, str] = {status: title for title, statuses in _STATUSES.items() for status in statuses}
_LONGEST = 4_000
"""Characters of a text."""
_MOST_ITEMS = 50
"""Tool calls, messages, steps or results of a cell."""
_DEEPEST, _EM_SPACE = 20, "\u2003"


def cells_shown(reader: RunReader, summary: RunSummary) -> Html:
    """A section for each group. Traces are read once, and only those shown are kept in memory."""
    totals = dict.fromkeys(_MOST, 0)
    for variant in summary.variants:
        for status, count in variant.cells.items():
            totals[_GROUPS.get(status, _REST)] += count
    found = first_verdicts(reader, summary, [(_STATUSES[title], most) for title, most in _MOST.items()])
    chosen = dict(zip(_MOST, found, strict=True))
    shown = _rendered(reader, {_key(verdict): verdict for verdicts in chosen.values() for verdict in verdicts})
    scored = summary.scored is True
    return side_by_side(_group(title, chosen[title], totals[title], shown, scored) for title in _MOST if totals[title])


def _group(title: str, verdicts: Sequence[CaseVerdict], total: int, shown: dict[_Key, Html], scored: bool) -> Html:
    cells = [shown.get(_key(verdict)) or _cell(None, [], verdict) for verdict in verdicts]
    left_out = total - len(cells)
    note = f"{counted(left_out, 'more cell')}: run evalwright inspect." if left_out > 0 else ""
    heading = element("h2", f"{failures_title(scored) if title == _FAILURES else title}: {total:,}")
    return element("section", heading, *cells, element("p", note, class_="note") if note else "")


def _key(record: CaseVerdict | Trace | EvaluationResult) -> _Key:
    return record.case_key, record.variant_name, record.trial, record.attempt


def _rendered(reader: RunReader, verdicts: dict[_Key, CaseVerdict]) -> dict[_Key, Html]:
    if (index := finished_index(reader)) is not None:
        with closing(index), suppress(StaleIndex):
            return dict(_looked_up(index, verdicts))
    results: dict[_Key, dict[str, EvaluationResult]] = {}
    for row in reader.results(EvaluationResult):
        if (key := _key(row)) in verdicts:
            results.setdefault(key, {})[row.evaluator] = row
    return {
        key: _cell(trace, list(results.get(key, {}).values()), verdicts[key])
        for trace in reader.traces(Trace)
        if (key := _key(trace)) in verdicts
    }


def _looked_up(index: CellIndex, verdicts: dict[_Key, CaseVerdict]) -> Iterator[tuple[_Key, Html]]:
    for key, verdict in verdicts.items():
        if (entry := index.cell(*key[:3])) is not None:
            trace, results, _ = index.records(entry)
            yield key, _cell(trace, results, verdict)


def _cell(trace: Trace | None, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> Html:
    status = verdict.status
    name = cell_name(verdict.case_key, verdict.variant_name, verdict.trial)
    reason = next(filter(None, verdict.reasons), "") if verdict.error is None else error_text(verdict.error)
    heading = element(
        "summary",
        element("span", f"{MARKS[status]} {status}", class_=status),
        " ",
        element("strong", name),
        element("span", f" {facts(trace)}" if trace else "", class_="note"),
        element("div", capped(reason, 300), class_="note") if status not in ("pass", "skip") and reason else "",
    )
    return element("details", heading, element("dl", list(_facts(trace, results, verdict))))


def _facts(trace: Trace | None, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> Iterator[Html]:
    if trace is not None:
        yield from _field("input", _block(trace.input))
        yield from _field("messages", [_message(message) for message in trace.messages[:_MOST_ITEMS]])
        yield from _field("thinking", _block(trace.output.thinking))
        yield from _field("answer", _block(trace.output.final_answer))
        yield from _field("structured", _block(trace.output.structured))
        calls = list(calls_with_results(trace))
        yield from _field("tools", [_call(call, result) for call, result in calls[:_MOST_ITEMS]])
        yield from _field("steps", [_step(depth, span) for depth, span in islice(outlined(trace.spans), _MOST_ITEMS)])
        left_out = max(len(calls), len(trace.messages), len(trace.spans)) - _MOST_ITEMS
        yield from _field("", f"only the first {_MOST_ITEMS} are shown" if left_out > 0 else "")
        yield from _field("usage", _block(recorded_metrics(trace)))
        yield from _field("extra", _block(trace.extra or None))
    error = verdict.error or (trace.error if trace else None)
    yield from _field("error", _block(error_text(error)) if error else "")
    if error is not None and error.stack:
        yield from _field("stack", _block(error.stack))
    yield from _field("evaluators", [_result(row) for row in results[:_MOST_ITEMS]])
    if not results:
        yield from _field("reasons", _block("\n".join(filter(None, verdict.reasons))))


def _step(depth: int, span: Span) -> Html:
    error = element("span", f" {capped(span.error, 300)}", class_="error") if span.error else ""
    name = _EM_SPACE * min(depth, _DEEPEST) + capped(span.name, 200)
    head = element("div", name, element("span", f" {about(span)}", class_="note"), error)
    recorded = recorded_in(span)
    if not recorded:
        return head
    parts = [side_by_side(element("span", label, class_="note"), _block(value)) for label, value in recorded]
    return side_by_side(head, element("details", element("summary", "recorded", class_="note"), *parts))


def _field(label: str, *content: Child) -> Iterator[Html]:
    found = side_by_side(*content)
    if found:
        yield side_by_side(element("dt", label), element("dd", found))


def _block(value: Any) -> Html:
    if value is None or value == "":
        return Html("")
    text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return element("pre", capped(text, _LONGEST), dir="auto")


def _message(message: TraceMessage) -> Html:
    said = {"thinking": message.thinking, "tool_call": message.tool_call, "name": message.name}
    more = {key: value for key, value in said.items() if value is not None}
    return side_by_side(element("span", message.role, class_="note"), _block(message.content), _block(more or None))


def _call(call: ToolCall | None, result: ToolResult | None) -> Html:
    name = call.name if call else result.name if result else ""
    arguments = _block(call.arguments) if call else ""
    answer = side_by_side(element("span", "returned", class_="note"), _block(result.content)) if result else ""
    return side_by_side(element("code", name), arguments, answer)


def _result(row: EvaluationResult) -> Html:
    status = row.status
    score = "" if row.score is None else f" {row.score:.3g}"
    head = side_by_side(
        element("span", MARKS[status], class_=status),
        " ",
        element("strong", row.evaluator),
        score,
        f" ({row.evaluator_type})",
    )
    reason = _block(error_text(row.error) if row.error else row.reason)
    if not row.detail:
        return side_by_side(element("div", head), reason)
    detail = element("details", element("summary", "detail", class_="note"), _block(row.detail))
    return side_by_side(element("div", head), reason, detail)
