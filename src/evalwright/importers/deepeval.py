"""Goldens of deepeval, with or without the answer of a system, as JSON, JSON Lines or CSV; and its test runs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.errors import counted
from evalwright.files.csv_records import CsvError, csv_records
from evalwright.files.numbers import is_number
from evalwright.files.packed import opened
from evalwright.importers.file_heads import columns_of
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.placed_records import ImportRecord, placed_records
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes, Mistakes
from evalwright.importers.token_counts import Tokens, recorded_dollars, recorded_milliseconds, token_count
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of

__all__ = ["DeepEval"]

_KEYS = (
    "input", "actual_output", "expected_output", "context", "retrieval_context", "tools_called", "expected_tools",
    "name", "comments", "source_file", "additional_metadata", "token_cost", "input_token_count", "output_token_count",
    "scenario", "turns", "expected_outcome", "completion_time", "success", "metrics_data", "metadata", "tags",
)  # fmt: skip
"""Keys that are read. Others are those of newer releases, unless they are nearly one of these."""
_OF_JUDGES = ("evaluation_cost", "run_duration", "order", "flaky")
"""Keys of test runs that say nothing about the system."""
_LISTS = ("turns", "tools_called", "expected_tools")
_RUN = "testRunData"
_HELD = ("goldens", "testCases", "conversationalTestCases")
"""Where datasets and test runs have their cases."""
_CAMEL = re.compile(r"(?<=[a-z])([A-Z])")


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The goldens of the files."""
    number = 0
    for file in files:
        for place in _places(file, reading):
            number += 1
            if not isinstance(place.value, dict):
                message = f"expected a golden, found {described(place.value)}"
                reading.mistakes.add(file, message, place.line, place.key)
                continue
            yield _record(file, place, _snake(place.value), number, reading)


def _places(file: Path, reading: ImportFindings) -> Iterator[ImportRecord]:
    if columns := columns_of(file):
        yield from _rows(file, columns, reading.mistakes)
        return
    for place in placed_records(file, reading.mistakes):
        whole = place.value.get(_RUN, place.value) if isinstance(place.value, dict) else None
        held = {key: whole[key] for key in _HELD if isinstance(whole.get(key), list)} if isinstance(whole, dict) else {}
        for key, inner in held.items():
            yield from (ImportRecord(item, place.line, f"{key}[{i}]") for i, item in enumerate(inner))
        if not held:
            yield place


def _rows(file: Path, columns: Sequence[str], mistakes: Mistakes) -> Iterator[ImportRecord]:
    with opened(file) as source, io.TextIOWrapper(source, "utf-8-sig", newline="") as text:
        records = csv_records(text)
        try:
            next(records)
            for line, cells in records:
                if len(cells) == len(columns):
                    yield ImportRecord(dict(zip(columns, map(_cell, cells), strict=True)), line)
                else:
                    what = counted(len(cells), "cell")
                    mistakes.add(file, f"expected {len(columns)} cells as in the first line, found {what}", line)
        except CsvError as error:
            mistakes.add(file, f"is not CSV: {error}", error.line)
        except UnicodeDecodeError as error:
            mistakes.add(file, f"is not UTF-8 text: {error}")


def _cell(value: str) -> Any:
    """Lists and objects are JSON in a cell; an empty cell means no value."""
    if value[:1] not in ("[", "{"):
        return value or None
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value


def _snake(value: dict[str, Any]) -> dict[str, Any]:
    return {_snake_key(key): inner for key, inner in value.items()}


def _snake_key(key: str) -> str:
    return _CAMEL.sub(r"_\1", key).lower()


def _record(file: Path, place: ImportRecord, golden: dict[str, Any], number: int, reading: ImportFindings) -> Imported:
    talk = Transcript()
    question: Any
    _check_lists(file, place, reading.mistakes)
    reading.notes.lose_keys(golden, (*_KEYS, *_OF_JUDGES), "goldens", near=True)
    question = golden.get("input")
    if golden.get("scenario") is not None or isinstance(golden.get("turns"), list):
        question, answered = _turns(talk, golden, reading.notes)
    else:
        if not isinstance(question, str):
            reading.mistakes.add(file, f"expected text, found {described(question)}", place.line, place.below("input"))
        talk.user(str(question or ""))
        answered = _answer(talk, golden, reading.notes)
    talk.tokens = Tokens(
        token_count(_number(golden.get("input_token_count")), reading.notes),
        token_count(_number(golden.get("output_token_count")), reading.notes),
        cost=recorded_dollars(_number(golden.get("token_cost")), reading.notes),
    )
    talk.latency_ms = recorded_milliseconds(_number(golden.get("completion_time")), reading.notes, unit=1000)
    scores = _scores(talk, golden)
    expected: dict[str, Any] = {"facts": {}}
    for expectation in ("expected_output", "expected_outcome"):
        if golden.get(expectation) is not None:
            expected["facts"][expectation] = golden[expectation]
    if tools := [str(call["name"]) for call in dictionaries(golden.get("expected_tools")) if call.get("name")]:
        expected["must_call_tools"] = tools
    beside = {key: golden[key] for key in ("retrieval_context", "context") if golden.get(key) is not None}
    origin = {"imported_from": {"file": file.name, "format": "deepeval", **place.origin()}}
    name = golden.get("name")
    return Imported(
        file,
        str(name) if name else f"golden-{number}",
        {"user_message": question or ""},
        talk.trace("recorded", {**beside, **scores, **origin}) if answered else None,
        expected=expected,
        metadata=_metadata(golden) | ({} if answered else beside),
        record=place.value,
        line=place.line,
        key=place.key,
        authored=True,
    )


def _check_lists(file: Path, place: ImportRecord, mistakes: Mistakes) -> None:
    for key, value in place.value.items():
        if value is None or _snake_key(key) not in _LISTS:
            continue
        if not isinstance(value, list):
            mistakes.add(file, f"expected a list, found {described(value)}", place.line, place.below(key))
        for i, item in enumerate(value if isinstance(value, list) else ()):
            if not isinstance(item, dict):
                where = place.below(f"{key}[{i}]")
                mistakes.add(file, f"expected an object, found {described(item)}", place.line, where)


def _turns(talk: Transcript, golden: dict[str, Any], notes: ImportNotes) -> tuple[Any, bool]:
    """The first turns of a conversational golden, and whether it has answers."""
    answered = False
    for turn in dictionaries(golden.get("turns")):
        text = str(turn.get("content") or "")
        if turn.get("role") == "user":
            talk.user(text)
        else:
            _add_answer(talk, text, _snake(turn), notes)
            answered = True
    return golden.get("scenario") or talk.user_message, answered


def _answer(talk: Transcript, golden: dict[str, Any], notes: ImportNotes) -> bool:
    """Whether there is an answer; without one its tool calls are lost."""
    if isinstance(golden.get("actual_output"), str):
        _add_answer(talk, golden["actual_output"], golden, notes)
        return True
    if called := [*dictionaries(golden.get("tools_called"))]:
        notes.lose("tools called of goldens without an actual_output", len(called))
    return False


def _add_answer(talk: Transcript, text: str, of: dict[str, Any], notes: ImportNotes) -> None:
    """An answer, preceded by its tool calls and their results."""
    called = [_snake(call) for call in dictionaries(of.get("tools_called"))]
    turn = talk.turn()
    ids = list[str]()
    for call in called:
        id = next(id for id in map("call-{}".format, count(1)) if not talk.knows(id))
        ids.append(id)
        talk.calls_in(turn, str(call.get("name", "tool")), id, arguments_of(call.get("input_parameters")))
        if call.get("reasoning"):
            turn.think(str(call["reasoning"]))
        if call.get("description"):
            notes.lose("descriptions of tools called")
    for id, call in zip(ids, called, strict=True):
        if (output := call.get("output")) is not None:
            talk.result(id, output if isinstance(output, str | dict) else msgspec.json.encode(output).decode())
    (talk.turn() if called else turn).add_text(text)


def _scores(talk: Transcript, golden: dict[str, Any]) -> dict[str, Any]:
    """What the metrics of a test run found, and whether the case passed.

    A metric that failed to measure makes the case fail there; here it has no reward then, unless another one found a
    mistake.
    """
    scores = [_score(_snake(metric)) for metric in dictionaries(golden.get("metrics_data"))]
    verdicts = {score["passed"] for score in scores}
    passed = golden.get("success")
    if isinstance(passed, bool) and (passed or None not in verdicts or False in verdicts):
        talk.custom["reward"] = float(passed)
    for score in scores:
        if score["score"] is not None:
            talk.custom.setdefault(score["name"], score["score"])
    return {"recorded_scores": scores} if scores else {}


def _score(metric: dict[str, Any]) -> dict[str, Any]:
    score, passed, error = metric.get("score"), metric.get("success"), metric.get("error")
    return {
        "name": str(metric.get("name", "metric")),
        "passed": passed if isinstance(passed, bool) and not error else None,
        "score": score if is_number(score) else None,
        "reason": error or metric.get("reason"),
    }


def _metadata(golden: dict[str, Any]) -> dict[str, Any]:
    additional_metadata = golden.get("additional_metadata", golden.get("metadata"))
    metadata = (
        dict(additional_metadata)
        if isinstance(additional_metadata, dict)
        else {}
        if additional_metadata is None
        else {"additional_metadata": additional_metadata}
    )
    for name in ("comments", "source_file", "tags"):
        if golden.get(name) is not None:
            metadata[name] = golden[name]
    return metadata


def _number(value: Any) -> Any:
    """The number in the text of a cell; anything else as it is."""
    with suppress(ValueError):
        return float(value) if isinstance(value, str) else value
    return value


class DeepEval(TraceImporter):
    """Goldens and test runs of deepeval, as JSON, and goldens as JSON Lines or CSV."""

    read: ClassVar[Read] = staticmethod(read)
