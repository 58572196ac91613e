"""One cell in full: result, input and output, every judge call, messages, spans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from evalwright.errors import counted
from evalwright.model.trace import Trace
from evalwright.reports.inspection import recorded_metrics
from evalwright.scoring.reasons import error_text
from evalwright.stores.artifacts import read_artifact
from evalwright.viewer.filters import Filter
from evalwright.viewer.labels import LabelFile, StoredLabel
from evalwright.viewer.links import Links
from evalwright.viewer.pages import Page, PageNotFound, ShownRun, table_of_cells
from evalwright.viewer.pages.blocks import ROOM, Blocks, ShownText
from evalwright.viewer.pages.conversation import MOST_ON_A_PAGE, ends, shown_messages, unsaid_calls
from evalwright.viewer.pages.evaluator_results import evaluator_results
from evalwright.viewer.pages.known_values import check_values
from evalwright.viewer.pages.marks import Piece, in_pieces
from evalwright.viewer.pages.spans import span_rows
from evalwright.viewer.query import unknown_value
from evalwright.viewer.records import StoredCell
from evalwright.viewer.table import CellPlace, CellRow
from evalwright.viewer.texts import shell_word

__all__ = [
    "cell_context",
    "cell_page",
    "expected_parts",
    "find_row",
    "input_parts",
    "page_of_cell",
    "same_answers",
    "stored_records",
    "whole_text",
]

_ROOM_OF_ALL = 2_000_000
"""Characters of all texts of a page with all messages."""
_NOTHING: tuple[Any, ...] = (None, [], {}, "")
_EXPECTED = ("ground_truth", "reference_answer", "expected_outcome")
"""Keys of formats for what a case expects; they are kept with the other keys that only the format has."""
_HALVED = 4
"""Times that the room of a page is halved: then it has six messages, and 30 steps."""


class Trial(NamedTuple):
    """Trials of the same case and variant that gave the same answer."""

    rows: list[CellRow]
    here: bool


def find_row(run: ShownRun, key: str) -> CellRow:
    """Raises PageNotFound and StillReading."""
    table = table_of_cells(run)
    row = table.by_key(key)
    if row is None:
        raise PageNotFound(
            f"The run {run.id} has no cell {key[:40]!r}; it has {counted(table.total, 'cell')}.", f"/runs/{run.id}"
        )
    return row


def stored_records(run: ShownRun, key: str) -> dict[str, Any]:
    """The records of a cell, exactly as stored."""
    row = find_row(run, key)
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


def whole_text(records: dict[str, Any], part: str) -> str:
    """One text of a cell in full, by its place in the records: `trace/messages/3/content`. Raises PageNotFound."""
    value: Any = records
    try:
        for step in part.split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (LookupError, ValueError, TypeError):
        raise PageNotFound(f"The cell has nothing at {part[:200]!r}.", "/") from None
    return value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def cell_page(run: ShownRun, key: str, pairs: Sequence[tuple[str, str]], links: Links, labels: LabelFile) -> Page:
    """Raises PageNotFound, StillReading and BadQuery."""
    chosen, wanted = Filter.of(pairs, ("messages",)), dict(pairs).get("messages") or ""
    if wanted not in ("", "all"):
        raise unknown_value("messages", wanted, ("all",))
    row = find_row(run, key)
    check_values([run], chosen)
    cell_labels = labels.by_answer().get((row.case_key, row.variant, row.trial, row.attempt), [])
    return page_of_cell(run, row, chosen, links, cell_labels, whole=bool(wanted))


def page_of_cell(
    run: ShownRun,
    row: CellRow,
    chosen: Filter,
    links: Links,
    labels: Sequence[StoredLabel],
    place: CellPlace | None = None,
    *,
    whole: bool = False,
    halved: int = 0,
) -> Page:
    """The page of a cell, with room for texts and rows halved that many times. Raises PageNotFound."""
    room, rows = (_ROOM_OF_ALL, None) if whole else (ROOM >> halved, MOST_ON_A_PAGE >> halved)
    context = cell_context(run, row, chosen, links, place, room, rows)
    smaller = None
    if not whole and halved < _HALVED:
        smaller = partial(page_of_cell, run, row, chosen, links, labels, place, halved=halved + 1)
    title = f"{row.case_key} · {run.plan.name} · evalwright"
    return Page("cell.html", title, {**context, "human_labels": labels}, smaller)


def cell_context(
    run: ShownRun,
    row: CellRow,
    chosen: Filter,
    links: Links,
    place: CellPlace | None = None,
    room: int = ROOM,
    rows: int | None = MOST_ON_A_PAGE,
) -> dict[str, Any]:
    """The content of a cell's page; `place` is its position among the chosen cells, if already known.

    `room` is the number of characters for all texts together, and `rows` how many messages and tool calls there are of
    each; None for all.
    """
    records = run.records(row)
    if not records.trace:
        raise PageNotFound("The records of this cell cannot be read.", f"/runs/{run.id}")
    trace = msgspec.convert(records.trace, Trace)
    blocks = Blocks(lambda part: links.whole(run.id, row.key, part), room)  # type: ignore[attr-defined]
    table = run.table
    if place is None and table is not None:
        place = table.place(chosen, row)
    results = evaluator_results(records.results, run.plan, blocks)
    error = trace.error
    messages, hidden = ends(trace.messages, rows)
    trials = _trials(run, row)
    statuses = [one.status for trial in trials for one in trial.rows]
    return {
        "run": run,
        "row": row,
        "chosen": chosen,
        "place": place,
        "error": None if error is None else blocks.of(error_text(error), "trace/error/message"),
        "stack": None if error is None or not error.stack else blocks.of(error.stack, "trace/error/stack"),
        "failed": [result for result in results if result.status not in ("pass", "skip")],
        "verdict_reasons": (records.verdict or {}).get("reasons") or [],
        "input": input_parts(trace.input, blocks),
        "answer": answer_of(trace, records, blocks),
        "thinking": blocks.of(trace.output.thinking, "trace/output/thinking") if trace.output.thinking else None,
        "structured": blocks.of(trace.output.structured, "trace/output/structured")
        if trace.output.structured
        else None,
        "expected": expected_parts(records, blocks),
        "results": results,
        "messages": list(shown_messages(messages, blocks)),
        "messages_hidden": hidden,
        "tool_calls": unsaid_calls(trace, blocks, rows),
        "spans": span_rows(trace, blocks, rows),
        "trials": trials,
        "trials_passed": (statuses.count("pass"), len(statuses)),
        "variants": _other_variants(run, row),
        "earlier": [_attempt(attempt) for attempt in records.earlier],
        "files": _files(run, row, blocks),
        "more": _more(trace, records, blocks),
        "tags": (records.case or {}).get("tags") or [],
        "commands": _commands(run, row, records),
    }


def input_parts(value: Any, blocks: Blocks) -> list[tuple[str, ShownText]]:
    """Each part of an input by its name, or the whole input if it has no or too many parts."""
    part = "trace/input"
    if isinstance(value, dict) and 0 < len(value) <= 12:
        return [(str(name), blocks.of(part_value, blocks.at(part, name))) for name, part_value in value.items()]
    return [("", blocks.of("" if value is None else value, part))]


class AnswerText(NamedTuple):
    pieces: list[Piece]
    shown: ShownText
    missing: list[str]


def answer_of(trace: Trace, records: StoredCell, blocks: Blocks) -> AnswerText | None:
    """The answer with the matches of evaluators marked; None if there is none."""
    text = trace.output.final_answer
    if text is None:
        return None
    shown = blocks.of(text, "trace/output/final_answer")
    pieces = _marked_pieces(shown.text, _phrases(records))
    # a miss that is the whole reason, as of a limit on the latency, is no part that the answer lacks
    misses = [miss for one in records.results for miss in one.get("misses") or () if miss != one.get("reason")]
    missing = [str(miss) for miss in dict.fromkeys(misses) if str(miss).lower() not in text.lower()]
    return AnswerText(pieces, shown, missing[:20])


def _phrases(records: StoredCell) -> dict[str, str]:
    """What evaluators looked for in the answer: `good` if it should be there, `bad` if not."""
    expected = (records.case or {}).get("expected") or {}
    good: list[Any] = []
    bad: list[Any] = [*(expected.get("answer_should_not_include") or ())]
    for result in records.results:
        good += result.get("hits") or ()
        bad += result.get("misses") or ()
        detail = result.get("detail")
        if isinstance(detail, dict) and detail.get("field") == "output.final_answer":  # of contains_text
            for name, phrases in (("matched_all_of", good), ("matched_any_of", good), ("matched_none_of", bad)):
                phrases += found if isinstance(found := detail.get(name), list) else ()
    return {**dict.fromkeys(map(str, good), "good"), **dict.fromkeys(map(str, bad), "bad")}


def _marked_pieces(text: str, phrases: dict[str, str]) -> list[Piece]:
    known = {phrase: style for phrase, style in phrases.items() if 2 <= len(phrase) <= 200}
    return in_pieces(text, known if len(known) <= 100 else {})


def expected_parts(records: StoredCell, blocks: Blocks) -> list[tuple[str, ShownText]]:
    """What a case expects, by name."""
    case = records.case or {}
    expected, extra = case.get("expected") or {}, case.get("extra") or {}
    named: list[tuple[str, Any, str]] = [
        (name, value, blocks.at("case/expected", name)) for name, value in expected.items()
    ]
    named += [(name, extra[name], f"case/extra/{name}") for name in _EXPECTED if name in extra]
    return [(str(name).replace("_", " "), blocks.of(value, at)) for name, value, at in named if value not in _NOTHING]


def _trials(run: ShownRun, row: CellRow) -> list[Trial]:
    """The trials of the case and variant, those with the same status and answer together; empty if there is one."""
    table = run.table
    rows = [] if table is None else table.of_case(row.case_key, row.variant)
    if len(rows) < 2:
        return []
    return [Trial(same, any(trial.number == row.number for trial in same)) for same in same_answers(rows)]


def _other_variants(run: ShownRun, row: CellRow) -> list[CellRow]:
    """The cells of the same case and trial on other variants."""
    if run.table is None or len(run.plan.variants) < 2:
        return []
    return [other for other in run.table.of_case(row.case_key, trial=row.trial) if other.variant != row.variant]


def same_answers(rows: Iterable[CellRow]) -> list[list[CellRow]]:
    """Cells with the same status and answer together."""
    together: dict[tuple[str | None, bytes | None], list[CellRow]] = {}
    for row in rows:
        together.setdefault((row.status, row.digest), []).append(row)
    return list(together.values())


def _attempt(trace: dict[str, Any]) -> tuple[int, str]:
    error = trace.get("error") or {}
    return trace.get("attempt", 1), f"{error.get('type', '')}: {error.get('message', '')}" if error else "answered"


def _artifact(run: ShownRun, row: CellRow) -> Any:
    if not run.has_artifacts:
        return None
    variant = next((v for v in run.plan.variants if v.name == row.variant), None)
    trials = (variant.trials if variant else None) or run.plan.run.trials
    return read_artifact(run.artifacts, row.case_key, row.variant, row.trial, row.attempt, trials)


def _files(run: ShownRun, row: CellRow, blocks: Blocks) -> list[tuple[str, str, ShownText | None]]:
    artifact = _artifact(run, row)
    if artifact is None:
        return []
    diff = artifact.record.diff
    signs = [("+", diff.added), ("~", diff.modified), ("−", diff.removed)]
    shown: list[tuple[str, str, ShownText | None]] = []
    for path, sign in sorted((path, sign) for sign, paths in signs for path in paths):
        text = diff.text_diffs.get(path)
        at = blocks.at("artifact/diff/text_diffs", path)
        shown.append((sign, path, None if text is None else blocks.of(text, at)))
    return [*shown, *(("?", f"{path}: {why}", None) for path, why in artifact.record.left_out.items())]


def _more(trace: Trace, records: StoredCell, blocks: Blocks) -> list[tuple[str, ShownText]]:
    """The other recorded values."""
    case = records.case or {}
    of_format = {name: value for name, value in (case.get("extra") or {}).items() if name not in (*_EXPECTED, "id")}
    facts: list[tuple[str, Any, str]] = [
        ("metrics", recorded_metrics(trace), "trace/metrics"),
        ("extra", trace.extra or None, "trace/extra"),
        ("metadata", case.get("metadata") or None, "case/metadata"),
        ("description", case.get("description"), "case/description"),
        ("note", case.get("note"), "case/note"),
        ("other keys of the case", of_format, "case/extra"),
    ]
    return [(name, blocks.of(value, at)) for name, value, at in facts if value]


def _commands(run: ShownRun, row: CellRow, records: StoredCell) -> list[str]:
    case_id = (records.case or {}).get(
        "id"
    ) or row.case_key  # a second case of one id has no name of its own in a suite
    return [
        f"evalwright run {shell_word(run.plan.config_path)} --case {shell_word(case_id)}",
        f"evalwright inspect {shell_word(run.path)} --case {shell_word(row.case_key)} --no-truncate",
    ]
