"""One cell in full: result, input and output, every judge call, messages, spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from evalwright.errors import counted
from evalwright.model.plan import Plan
from evalwright.model.result import is_judge_call
from evalwright.model.trace import Trace, TraceError, TraceMessage
from evalwright.reports.inspection import calls_with_results, recorded_metrics
from evalwright.reports.numbers import duration
from evalwright.scoring.reasons import error_text
from evalwright.stores.artifacts import read_artifact
from evalwright.viewer.filters import BadQuery, Filter
from evalwright.viewer.labels import LabelFile
from evalwright.viewer.links import Links
from evalwright.viewer.pages import NotThere, Page, ShownRun
from evalwright.viewer.pages.blocks import ROOM, Blocks, Shown
from evalwright.viewer.pages.spans import span_rows
from evalwright.viewer.records import StoredCell
from evalwright.viewer.table import CellPlace, CellRow
from evalwright.viewer.texts import shell_word

__all__ = [
    "EvaluatorResult",
    "ToolCalls",
    "cell_context",
    "cell_page",
    "ends",
    "evaluator_results",
    "found_row",
    "stored_records",
    "whole_text",
]

_ORDER = {"error": 0, "fail": 1, "borderline": 2, "pass": 3, "skip": 4}
_LATER = "The cells are still being read: try again soon."
_MOST = 100
"""Messages, and tool calls, on a page: of more, the first and the last half."""
_ROOM_OF_ALL = 2_000_000
"""Characters of all texts of a page with all messages."""
T = TypeVar("T")


class Call(NamedTuple):
    """One call of a judge."""

    model: str
    facts: str
    messages: list[tuple[str, Shown]]
    reply: Shown | None
    further: list[tuple[str, Shown]]


class EvaluatorResult(NamedTuple):
    """One evaluator's result as a row."""

    name: str
    kind: str
    status: str
    score: float | None
    threshold: str
    reason: Shown
    cost: float | None
    calls: list[Call]
    votes: Shown | None
    detail: Shown | None
    stack: Shown | None


class Message(NamedTuple):
    """One message of the conversation."""

    number: int
    role: str
    name: str
    content: list[Shown]
    thinking: Shown | None
    call: str
    arguments: Shown | None


class ToolCalls(NamedTuple):
    """Tool calls as number, name, arguments and result."""

    rows: list[tuple[int, str, Shown | None, Shown | None]]
    hidden: int


class Trial(NamedTuple):
    """Trials of the same case and variant that gave the same answer."""

    rows: list[CellRow]
    here: bool


def found_row(run: ShownRun, key: str) -> CellRow:
    """Raises NotThere."""
    table = run.table
    if table is None:
        raise NotThere(run.problem or _LATER, f"/runs/{run.id}")
    row = table.by_key(key)
    if row is None:
        raise NotThere(
            f"The run {run.id} has no cell {key[:40]!r}; it has {counted(table.total, 'cell')}.", f"/runs/{run.id}"
        )
    return row


def stored_records(run: ShownRun, key: str) -> dict[str, Any]:
    """The records of a cell, exactly as stored."""
    row = found_row(run, key)
    records = run.records(row)
    artifact = _artifact(run, row)
    return {
        "case": records.case,
        "trace": records.trace,
        "results": records.results,
        "verdict": records.verdict,
        "earlier_attempts": records.earlier,
        "artifact": msgspec.to_builtins(artifact.record) if artifact is not None else None,
    }


def whole_text(run: ShownRun, key: str, part: str) -> str:
    """One text of a cell in full, by its place in the records: `trace/messages/3/content`. Raises NotThere."""
    value: Any = stored_records(run, key)
    try:
        for step in part.split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (LookupError, ValueError, TypeError):
        raise NotThere(f"The cell has nothing at {part[:200]!r}.", "/") from None
    return value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def cell_page(run: ShownRun, key: str, pairs: Sequence[tuple[str, str]], links: Links, labels: LabelFile) -> Page:
    """Raises NotThere and BadQuery."""
    chosen, wanted = Filter.of(pairs, ("messages",)), dict(pairs).get("messages") or ""
    if wanted not in ("", "all"):
        raise BadQuery(f"'messages' is {wanted!r}, expected 'all'")
    row = found_row(run, key)
    title = f"{row.case_key} · {run.plan.name} · evalwright"
    said = labels.by_answer().get((row.case_key, row.variant, row.trial, row.attempt), [])
    context = cell_context(run, row, chosen, links, whole=bool(wanted))
    return Page("cell.html", title, {**context, "human_labels": said})


def cell_context(
    run: ShownRun,
    row: CellRow,
    chosen: Filter,
    links: Links,
    place: CellPlace | None = None,
    room: int = ROOM,
    *,
    whole: bool = False,
) -> dict[str, Any]:
    """The content of a cell's page; `place` is its position among the chosen cells, if already known.

    `room` is the number of characters for all texts together. With `whole`, all messages and tool calls are there.
    """
    records = run.records(row)
    if not records.trace:
        raise NotThere("The records of this cell cannot be read.", f"/runs/{run.id}")
    trace = msgspec.convert(records.trace, Trace)
    room = _ROOM_OF_ALL if whole else room
    blocks = Blocks(lambda part: links.whole(run.id, row.key, part), room)  # type: ignore[attr-defined]
    table = run.table
    if place is None and table is not None:
        place = table.place(chosen, row)
    results = evaluator_results(records.results, run.plan, blocks)
    error = trace.error
    messages, hidden = ends(trace.messages, None if whole else _MOST)
    return {
        "run": run,
        "row": row,
        "chosen": chosen,
        "place": place,
        "error": None if error is None else blocks.of(error_text(error), "trace/error/message"),
        "stack": None if error is None or not error.stack else blocks.of(error.stack, "trace/error/stack"),
        "failed": [one for one in results if one.status not in ("pass", "skip")],
        "verdict_reasons": (records.verdict or {}).get("reasons") or [],
        "input": _parts(trace.input, "trace/input", blocks),
        "answer": answer_of(trace, records, blocks),
        "thinking": blocks.of(trace.output.thinking, "trace/output/thinking") if trace.output.thinking else None,
        "structured": blocks.of(trace.output.structured, "trace/output/structured")
        if trace.output.structured
        else None,
        "expected": _expected(records, blocks),
        "results": results,
        "messages": list(_messages(messages, blocks)),
        "messages_hidden": hidden,
        "tool_calls": unsaid_calls(trace, blocks, None if whole else _MOST),
        "spans": span_rows(trace, blocks),
        "trials": _trials(run, row),
        "earlier": [_attempt(one) for one in records.earlier],
        "files": _files(run, row, blocks),
        "more": _more(trace, records, blocks),
        "tags": (records.case or {}).get("tags") or [],
        "commands": _commands(run, row, records),
    }


def _parts(value: Any, part: str, blocks: Blocks) -> list[tuple[str, Shown]]:
    """An input: its single text, or each of its parts by name."""
    if isinstance(value, dict) and 1 < len(value) <= 12:
        return [(str(name), blocks.of(one, blocks.at(part, name))) for name, one in value.items()]
    return [("", blocks.of("" if value is None else value, part))]


class Piece(NamedTuple):
    """A part of an answer: `style` is empty, `good` for a wanted match, `bad` for an unwanted one."""

    text: str
    style: str


class AnswerText(NamedTuple):
    pieces: list[Piece]
    shown: Shown
    missing: list[str]


def answer_of(trace: Trace, records: StoredCell, blocks: Blocks) -> AnswerText | None:
    """The answer with the matches of evaluators marked; None if there is none."""
    text = trace.output.final_answer
    if text is None:
        return None
    shown = blocks.of(text, "trace/output/final_answer")
    expected = (records.case or {}).get("expected") or {}
    good = {hit for result in records.results for hit in result.get("hits") or ()}
    misses = [miss for result in records.results for miss in result.get("misses") or ()]
    bad = {*(expected.get("answer_should_not_include") or ()), *misses}
    pieces = _marked(shown.text, {**dict.fromkeys(map(str, good), "good"), **dict.fromkeys(map(str, bad), "bad")})
    missing = [str(miss) for miss in dict.fromkeys(misses) if str(miss).lower() not in text.lower()]
    return AnswerText(pieces, shown, missing[:20])


def _marked(text: str, phrases: dict[str, str]) -> list[Piece]:
    import re

    known = {phrase.lower(): style for phrase, style in phrases.items() if 2 <= len(phrase) <= 200}
    if not known or len(known) > 100:
        return [Piece(text, "")]
    pattern = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))), re.IGNORECASE)
    pieces, end = [], 0
    for found in pattern.finditer(text):
        pieces += [Piece(text[end : found.start()], ""), Piece(found[0], known.get(found[0].lower(), "good"))]
        end = found.end()
    return [piece for piece in [*pieces, Piece(text[end:], "")] if piece.text]


def _expected(records: StoredCell, blocks: Blocks) -> list[tuple[str, Shown]]:
    expected = (records.case or {}).get("expected") or {}
    return [
        (str(name).replace("_", " "), blocks.of(value, blocks.at("case/expected", name)))
        for name, value in expected.items()
        if value not in (None, [], {}, "")
    ]


def evaluator_results(results: Sequence[dict[str, Any]], plan: Plan, blocks: Blocks) -> list[EvaluatorResult]:
    """Those that did not pass first, then in the order of the suite."""
    order = {spec.name: place for place, spec in enumerate(plan.evaluators)}
    thresholds = {spec.name: spec.threshold for spec in plan.evaluators}
    rows = []
    for number, result in enumerate(results):
        rows.append(_result(result, number, thresholds, blocks))
    return sorted(rows, key=lambda one: (_ORDER[one.status], order.get(one.name, len(order))))


def _result(result: dict[str, Any], number: int, thresholds: dict[str, Any], blocks: Blocks) -> EvaluatorResult:
    error, at = result.get("error"), f"results/{number}"
    detail = dict(result.get("detail") or {})
    calls = detail.pop("judge_calls", None)
    votes = detail.pop("votes", None)
    threshold = thresholds.get(result["evaluator"])
    if threshold is None:
        threshold = detail.get("threshold")
    reason = error_text(_error(error)) if error else result.get("reason") or ""
    return EvaluatorResult(
        result["evaluator"],
        result.get("evaluator_type", ""),
        _status(result, detail),
        result.get("score"),
        f"{threshold:g}" if isinstance(threshold, int | float) else "",
        blocks.of(reason, f"{at}/error/message" if error else f"{at}/reason"),
        result.get("cost_usd"),
        [
            _call(call, f"{at}/detail/judge_calls/{i}", blocks)
            for i, call in enumerate(calls if isinstance(calls, list) else [])
        ],
        blocks.of(votes, f"{at}/detail/votes") if votes else None,
        blocks.of(detail, f"{at}/detail") if detail else None,
        blocks.of(error["stack"], f"{at}/error/stack") if error and error.get("stack") else None,
    )


def _error(error: dict[str, Any]) -> Any:
    return msgspec.convert(error, TraceError)


def _status(result: dict[str, Any], detail: dict[str, Any]) -> str:
    if result.get("error"):
        return "error"
    if result.get("skipped"):
        return "skip"
    if result.get("passed"):
        return "pass"
    return "borderline" if detail.get("verdict") == "borderline" else "fail"


def _call(call: Any, at: str, blocks: Blocks) -> Call:
    if not is_judge_call(call):
        return Call("", "", [], blocks.of(call, at), [])
    usage, facts = call.get("usage") or {}, []
    if call.get("cached"):
        facts.append("cached")
    if usage:
        facts.append(f"{usage.get('token_input', '?')} → {usage.get('token_output', '?')} tokens")
    if call.get("cost_usd") is not None:
        facts.append(f"${call['cost_usd']:.6g}")
    if call.get("latency_ms") is not None:
        facts.append(duration(call["latency_ms"]))
    messages = []
    for number, message in enumerate(call.get("messages") or []):
        rest = {key: value for key, value in message.items() if key not in ("role", "content")}
        content = message.get("content") if not rest else {"content": message.get("content"), **rest}
        place = f"{at}/messages/{number}" + ("" if rest else "/content")
        messages.append((str(message.get("role", "")), blocks.of("" if content is None else content, place)))
    reply = call.get("reply")
    further = [
        (name, blocks.of(call[name], f"{at}/{name}")) for name in ("thinking", "tool_calls", "error") if call.get(name)
    ]
    shown = None if reply is None else blocks.of(reply, f"{at}/reply")
    return Call(str(call.get("model", "")), " · ".join(facts), messages, shown, further)


def ends(items: Iterable[T], most: int | None = _MOST) -> tuple[list[tuple[int, T]], int]:
    """The items with their places; of more than `most`, the first and the last half of them, and how many are left out.

    What went wrong with a long conversation is told by its beginning and its end.
    """
    placed = list(enumerate(items))
    hidden = 0 if most is None else max(0, len(placed) - most)
    if most is not None and hidden:
        placed[most // 2 : most // 2 + hidden] = []
    return placed, hidden


def _messages(messages: Iterable[tuple[int, TraceMessage]], blocks: Blocks) -> Iterator[Message]:
    for place, message in messages:
        at = f"trace/messages/{place}"
        call, content = message.tool_call, message.content
        if isinstance(content, list):
            parts = [blocks.of(part, f"{at}/content/{i}") for i, part in enumerate(content)]
        else:
            parts = [] if content is None else [blocks.of(content, f"{at}/content")]
        yield Message(
            place + 1,
            message.role,
            message.name or "",
            parts,
            blocks.of(message.thinking, f"{at}/thinking") if message.thinking else None,
            "" if call is None else call.name,
            None if call is None else blocks.of(call.arguments, f"{at}/tool_call/arguments"),
        )


def _told_by_messages(trace: Trace) -> bool:
    """Whether the messages contain every tool call and every result."""
    calls = {_same(one.tool_call.name, one.tool_call.arguments) for one in trace.messages if one.tool_call is not None}
    contents = {_same(one.content) for one in trace.messages}
    return all(_same(call.name, call.arguments) in calls for call in trace.tool_calls) and all(
        _same(result.content) in contents for result in trace.tool_results
    )


def _same(*values: Any) -> bytes:
    return msgspec.json.encode(values, order="deterministic")


def unsaid_calls(trace: Trace, blocks: Blocks, most: int | None = _MOST) -> ToolCalls:
    """Tool calls with their results, if the messages do not contain them; see `ends`."""
    if _told_by_messages(trace):
        return ToolCalls([], 0)
    found = []
    calls, hidden = ends(calls_with_results(trace), most)
    for place, (call, result) in calls:
        name = call.name if call is not None else result.name if result is not None else ""
        given = None if call is None else blocks.of(call.arguments, f"trace/tool_calls/{place}/arguments")
        came = (
            None
            if result is None
            else blocks.of(result.content, f"trace/tool_results/{trace.tool_results.index(result)}/content")
        )
        found.append((place + 1, name, given, came))
    return ToolCalls(found, hidden)


def _trials(run: ShownRun, row: CellRow) -> list[Trial]:
    """The trials of the case and variant, those with the same status and answer together; empty if there is one."""
    table = run.table
    rows = [] if table is None else table.of_case(row.case_key, row.variant)
    if len(rows) < 2:
        return []
    together: dict[tuple[str | None, str], list[CellRow]] = {}
    for one in rows:
        together.setdefault((one.status, one.answer), []).append(one)
    return [Trial(same, any(one.number == row.number for one in same)) for same in together.values()]


def _attempt(trace: dict[str, Any]) -> tuple[int, str]:
    error = trace.get("error") or {}
    return trace.get("attempt", 1), f"{error.get('type', '')}: {error.get('message', '')}" if error else "answered"


def _artifact(run: ShownRun, row: CellRow) -> Any:
    if not run.has_artifacts:
        return None
    variant = next((v for v in run.plan.variants if v.name == row.variant), None)
    trials = (variant.trials if variant else None) or run.plan.run.trials
    return read_artifact(run.artifacts, row.case_key, row.variant, row.trial, row.attempt, trials)


def _files(run: ShownRun, row: CellRow, blocks: Blocks) -> list[tuple[str, str, Shown | None]]:
    artifact = _artifact(run, row)
    if artifact is None:
        return []
    diff = artifact.record.diff
    signs = [("+", diff.added), ("~", diff.modified), ("−", diff.removed)]
    found: list[tuple[str, str, Shown | None]] = []
    for path, sign in sorted((path, sign) for sign, paths in signs for path in paths):
        text = diff.text_diffs.get(path)
        at = blocks.at("artifact/diff/text_diffs", path)
        found.append((sign, path, None if text is None else blocks.of(text, at)))
    return [*found, *(("?", f"{path}: {why}", None) for path, why in artifact.record.left_out.items())]


def _more(trace: Trace, records: StoredCell, blocks: Blocks) -> list[tuple[str, Shown]]:
    """The other recorded values."""
    found: list[tuple[str, Any, str]] = [
        ("metrics", recorded_metrics(trace), "trace/metrics"),
        ("extra", trace.extra or None, "trace/extra"),
        ("metadata", (records.case or {}).get("metadata") or None, "case/metadata"),
        ("description", (records.case or {}).get("description"), "case/description"),
        ("note", (records.case or {}).get("note"), "case/note"),
    ]
    return [(name, blocks.of(value, at)) for name, value, at in found if value]


def _commands(run: ShownRun, row: CellRow, records: StoredCell) -> list[str]:
    case_id = (records.case or {}).get(
        "id"
    ) or row.case_key  # a second case of one id has no name of its own in a suite
    return [
        f"evalwright run {shell_word(run.plan.config_path)} --case {shell_word(case_id)}",
        f"evalwright inspect {shell_word(run.path)} --case {shell_word(row.case_key)} --no-truncate",
    ]
