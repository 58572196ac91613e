"""One cell of a run in full: input, answer, tool calls, steps, and each evaluator's result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from evalwright.errors import counted, money
from evalwright.model.artifact import FilesystemArtifact
from evalwright.model.result import EvaluationResult, is_judge_call
from evalwright.model.trace import Span, ToolCall, ToolResult, Trace, TraceMessage
from evalwright.reports import numbers
from evalwright.reports.statuses import ShownStatus, shown_status
from evalwright.reports.steps import about, outlined, recorded_in
from evalwright.reports.terminal import cell_name
from evalwright.reports.text import Paint, block, one_line, short_line, width
from evalwright.scoring.reasons import error_text

__all__ = ["calls_with_results", "cell_lines", "facts", "file_lines", "recorded_metrics"]

_LABEL = 12
_MOST_FILES = 20
_MOST_STEPS = 20
_DEEPEST = 20
_INDENT = " " * (_LABEL + 2)
_AFTER_COMMA = re.compile(r"(?<=,)(?=.)")


def cell_lines(
    trace: Trace,
    results: Sequence[EvaluationResult],
    status: str,
    paint: Paint,
    limit: int | None,
    trials: int = 1,
    *,
    scored: bool = False,
) -> list[str]:
    """The cell, one of `trials`, for a terminal; `scored` if its suite has only scores. Texts are cut after `limit`
    characters, and their lines folded.

    None shows them in full, with everything else that was recorded: messages, input and output of each step, and
    details of results; their lines are as recorded, to be copied.
    """
    lines = [_headline(trace, shown_status(status, scored=scored), paint, trials)]
    lines += _field("about", _text(trace.extra.get("description")), paint, limit)
    lines += _field("group", trace.group or None, paint, limit)
    lines += _field("input", _text(trace.input), paint, limit)
    if limit is None:
        lines += _labelled_lines("messages", [_message(message) for message in trace.messages], paint)
    lines += _field("thinking", trace.output.thinking, paint, limit)
    lines += _field("answer", trace.output.final_answer, paint, limit)
    lines += _field("structured", _text(trace.output.structured), paint, limit)
    lines += _labelled_lines("tools", list(_tools(trace, paint, limit)), paint)
    lines += _labelled_lines("steps", _steps(trace, paint, limit), paint)
    if trace.error is not None:
        lines += _field("error", error_text(trace.error), paint, limit, "error")
        if limit is None:
            lines += _field("stack", trace.error.stack, paint, limit)
    if limit is None:
        lines += _field("usage", _text(recorded_metrics(trace)), paint, limit)
        lines += _field("extra", _text(trace.extra or None), paint, limit)
    lines += _labelled_lines("warnings", [one_line(str(warning), 200) for warning in _warnings(trace)], paint)
    lines += _labelled_lines("evaluators", [_result(result, paint, limit, scored) for result in results], paint)
    if limit is None or paint.columns is None or paint.whole:
        return lines
    return [part for line in lines for folded in line.split("\n") for part in _fitted_lines(folded, paint.columns)]


def _fitted_lines(line: str, columns: int) -> Iterator[str]:
    """A line broken at words, each part below the beginning of its text. A word that has no room on a line of its own
    is broken after commas, as JSON has them; the rest is left to the terminal."""
    indent = max(len(line) - len(line.lstrip(" ")), _LABEL + 2)
    first, *words = line.split(" ")
    for word in words:
        long = indent + width(word) > columns
        for i, part in enumerate(_AFTER_COMMA.split(word) if long else [word]):
            joined = first + (" " if i == 0 else "") + part
            if part and width(joined) > columns >= indent + width(part):
                yield first.rstrip(" ")
                joined = " " * indent + part
            first = joined
    yield first


def _warnings(trace: Trace) -> list[Any]:
    """Problems noted when a recording was imported, values that could not be stored unchanged, and why an answer may be
    only the beginning of one."""
    noted = [trace.extra.get(key) for key in ("warnings", "replaced")]
    warnings = [warning for notes in noted if isinstance(notes, list) for warning in notes]
    interruption = trace.extra.get("stream_interrupted")
    return [*warnings, *([f"the stream was interrupted: {interruption}"] if interruption else [])]


def file_lines(artifact: FilesystemArtifact, paint: Paint, limit: int | None) -> list[str]:
    """The files that a cell added (+), modified (~) and removed (-), each with its diff; unknown ones (?)."""
    diff = artifact.diff
    signs = [("+", diff.added), ("~", diff.modified), ("-", diff.removed)]
    changes = sorted((path, sign) for sign, paths in signs for path in paths)
    unknown = [f"? {one_line(path, 200)}: {one_line(why, 200)}" for path, why in artifact.left_out.items()]
    most = len(changes) if limit is None else _MOST_FILES
    items = [_change(path, sign, diff.text_diffs.get(path), paint, limit) for path, sign in changes[:most]]
    if len(changes) > most:
        items.append(f"… (+{counted(len(changes) - most, 'file')})")
    return _labelled_lines("files", [*items, *unknown[:most]], paint)


def _change(path: str, sign: str, diff: str | None, paint: Paint, limit: int | None) -> str:
    line = f"{sign} {one_line(path, 200)}"
    if diff is None:
        return line
    body = diff.split("\n", 2)[-1].rstrip("\n")  # without the header, which names the file again
    return f"{line}\n{_INDENT}{paint(block(body, _INDENT, limit), 'dim')}"


def _headline(trace: Trace, status: ShownStatus, paint: Paint, trials: int) -> str:
    name = paint(cell_name(trace.case_key, trace.variant_name, trace.trial, trials=trials), "bold")
    return f"{paint(f'{status.mark} {status.word}', status.style)}  {name}  {paint(facts(trace), 'dim')}"


def facts(trace: Trace) -> str:
    """Time, cost, tokens and attempts of a cell."""
    found = [] if trace.latency_ms is None else [numbers.duration(trace.latency_ms)]
    metrics = trace.metrics
    if metrics.cost_usd is not None:
        found.append(money(metrics.cost_usd))
    if metrics.token_input is not None or metrics.token_output is not None:
        found.append(f"{_number(metrics.token_input)} → {_number(metrics.token_output)} tokens")
    if trace.attempt > 1:
        found.append(f"attempt {trace.attempt}")
    return " · ".join(found)


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _field(label: str, text: str | None, paint: Paint, limit: int | None, style: str = "") -> list[str]:
    return _labelled_lines(label, [paint(block(text, _INDENT, limit), style)], paint) if text else []


def _labelled_lines(label: str, items: Sequence[str], paint: Paint) -> list[str]:
    if not items:
        return []
    beside = " " * (_LABEL + 2)
    return [f"  {paint(label.ljust(_LABEL), 'dim')}{items[0]}", *(f"{beside}{item}" for item in items[1:])]


def _steps(trace: Trace, paint: Paint, limit: int | None) -> list[str]:
    if not trace.spans:
        return []
    most = len(trace.spans) if limit is None else _MOST_STEPS
    lines = [_step(depth, span, paint, limit) for depth, span in islice(outlined(trace.spans), most)]
    left_out = len(trace.spans) - len(lines)
    return [*lines, f"… (+{left_out:,} steps)"] if left_out > 0 else lines


def _step(depth: int, span: Span, paint: Paint, limit: int | None) -> str:
    inset = "  " * min(depth, _DEEPEST)
    line = f"{inset}{one_line(span.name, 60)}  {paint(about(span), 'dim')}".rstrip()
    lines = [f"{line}  {paint(block(span.error, _INDENT, limit), 'error')}" if span.error else line]
    if limit is None:
        within = f"{_INDENT}{inset}  "
        lines += [
            f"{within}{paint(label, 'dim')}  {block(_text(value), within + '  ', limit)}"
            for label, value in recorded_in(span)
        ]
    return "\n".join(lines)


def _message(message: TraceMessage) -> str:
    """One message in full: role, content, and the call that it makes or answers."""
    fields = msgspec.to_builtins(message)
    role, content = fields.pop("role"), fields.pop("content", None)
    more = {key: value for key, value in fields.items() if value not in (None, [], {})}
    parts = [role, _text(content), _text(more or None)]
    return block("  ".join(part for part in parts if part), _INDENT, None)


def recorded_metrics(trace: Trace) -> dict[str, Any] | None:
    """The tokens, times and costs that are known; None if there are none."""
    metrics = msgspec.to_builtins(trace.metrics)
    return {key: value for key, value in metrics.items() if value not in (None, {})} or None


def _tools(trace: Trace, paint: Paint, limit: int | None) -> Iterator[str]:
    for call, result in calls_with_results(trace):
        if call is None:
            yield f"{one_line(result.name, 60)} → {_result_content(result, paint, limit)}" if result else ""
        else:
            yield _call(call, limit) + (f" → {_result_content(result, paint, limit)}" if result else "")


def calls_with_results(trace: Trace) -> Iterator[tuple[ToolCall | None, ToolResult | None]]:
    """Each call with its result, paired by id, else by name in order; results left over at the end."""
    left = list(trace.tool_results)
    for call in trace.tool_calls:
        result = next((r for r in left if _answers(r, call)), None)
        if result is not None:
            left.remove(result)
        yield call, result
    yield from ((None, result) for result in left)


def _answers(result: ToolResult, call: ToolCall) -> bool:
    if result.tool_call_id is not None and call.id is not None:
        return result.tool_call_id == call.id
    return result.name == call.name


def _call(call: ToolCall, limit: int | None) -> str:
    arguments = ", ".join(f"{one_line(k, 40)}={_json(v)}" for k, v in call.arguments.items())
    return f"{one_line(call.name, 60)}({block(arguments, _INDENT, limit)})"


def _result_content(result: ToolResult, paint: Paint, limit: int | None) -> str:
    content = result.content
    failed = isinstance(content, dict) and bool(content.get("error") or content.get("is_error"))
    text = content if isinstance(content, str) else _text(content)
    return paint(block(text, _INDENT, limit), "error" if failed else "")


def _result(result: EvaluationResult, paint: Paint, limit: int | None, scored: bool) -> str:
    status = shown_status(result.status, scored=scored)
    implied = result.score is None or (result.score in (0, 1) and not scored)  # by the mark
    score = "" if implied else f" {result.score:.3g}"
    reason = error_text(result.error, of_result=True) if result.error else result.reason
    head = f"{paint(status.mark, status.style)} {short_line(result.evaluator, 60)}{paint(score, 'dim')}"
    lines = [f"{head}  {block(reason, _INDENT, limit)}" if reason else head]
    if result.hits or result.misses:
        for sign, texts, style in (("+", result.hits, "pass"), ("-", result.misses, "fail")):
            lines += [
                f"{_INDENT}  {paint(sign, style)} {block(text, _INDENT, limit)}" for text in texts if text not in reason
            ]
    if "votes" in result.detail:
        lines += [f"{_INDENT}  {paint('votes', 'dim')} {line}" for line in _votes(result.detail, paint)]
    if limit is None:
        detail = dict(result.detail)
        calls = detail.pop("judge_calls", None)
        if detail:
            lines.append(f"{_INDENT}  {paint('detail', 'dim')} {block(_text(detail), _INDENT, limit)}")
        for number, call in enumerate(calls if isinstance(calls, list) else (), 1):
            lines += _judge_call(number, call, paint)
    return "\n".join(lines)


def _votes(detail: Mapping[str, Any], paint: Paint) -> Iterator[str]:
    """The result of each judge in a panel, if they do not all agree."""
    votes = detail["votes"]
    rows = [row for row in votes if isinstance(row, dict)] if isinstance(votes, list) else []
    if len({row.get("passed") for row in rows}) < 2:
        return
    marks = {True: "pass", False: "fail", None: "error"}
    shown = [(marks.get(row.get("passed"), "error"), one_line(str(row.get("model")), 40)) for row in rows]
    agree = detail.get("agreement")
    share = f"  {paint(f'{numbers.percent(agree)} agree with the result', 'dim')}" if isinstance(agree, float) else ""
    yield ", ".join(f"{paint(shown_status(mark).mark, mark)} {name}" for mark, name in shown) + share


def _judge_call(number: int, call: Any, paint: Paint) -> list[str]:
    """The prompt to a model and its reply, in full."""
    inset = f"{_INDENT}    "
    if not is_judge_call(call):
        return [f"{_INDENT}  {paint(f'call {number}', 'dim')} {block(_text(call), inset, None)}"]
    usage = {key: call[key] for key in ("usage", "cost_usd", "latency_ms", "cached") if call.get(key)}
    lines = [
        f"{_INDENT}  {paint(f'call {number}', 'dim')} {one_line(str(call.get('model')), 60)} {_text(usage or None)}"
    ]
    for message in call.get("messages") or ():
        fields = {key: value for key, value in message.items() if key not in ("role", "content")}
        parts = [_text(message.get("content")), _text(fields or None)]
        lines.append(
            f"{inset}{paint(str(message.get('role')), 'dim')} {block(' '.join(filter(None, parts)), inset, None)}"
        )
    answered = [label for label in ("reply", "thinking", "error") if call.get(label)]
    return [*lines, *(f"{inset}{paint(label, 'dim')} {block(_text(call[label]), inset, None)}" for label in answered)]


def _text(value: Any) -> str:
    """Plain data as compact JSON; text as it is."""
    if value is None or isinstance(value, str):
        return value or ""
    return _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
