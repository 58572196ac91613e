"""Goldens of deepeval: test cases with or without the answer of a system, as JSON, JSON Lines or CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.importers.blocks import dictionaries
from evalwright.importers.placed_records import ImportRecord, placed_records
from evalwright.importers.recordings import described
from evalwright.importers.sources import document, stem
from evalwright.importers.traces import Imported, ImportFindings, Read, TraceImporter
from evalwright.importers.transcript import Tokens, Transcript, arguments_of

__all__ = ["DeepEval"]

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
    if Path(stem(file, with_suffix=True)).suffix.lower() == ".csv":
        rows = csv.DictReader(io.StringIO(document(file).decode("utf-8", "replace")))
        for row in rows:
            yield ImportRecord({key: _cell(value) for key, value in row.items() if key}, rows.line_num)
        return
    for place in placed_records(file, reading.mistakes):
        inner = place.value.get("goldens") if isinstance(place.value, dict) else None
        if isinstance(inner, list):
            yield from (ImportRecord(one, place.line, f"goldens[{i}]") for i, one in enumerate(inner))
        else:
            yield place


def _cell(value: Any) -> Any:
    """Lists and objects stand in a cell as JSON; an empty one is nothing."""
    if not isinstance(value, str) or value == "":
        return None
    if value[0] not in "[{":
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value


def _snake(value: dict[str, Any]) -> dict[str, Any]:
    return {_CAMEL.sub(r"_\1", str(key)).lower(): inner for key, inner in value.items()}


def _record(file: Path, place: ImportRecord, golden: dict[str, Any], number: int, reading: ImportFindings) -> Imported:
    talk = Transcript()
    asked: Any
    asked = golden.get("input")
    if golden.get("scenario") is not None or isinstance(golden.get("turns"), list):
        asked, answered = _turns(talk, golden)
    else:
        if not isinstance(asked, str):
            reading.mistakes.add(file, f"expected text, found {described(asked)}", place.line, place.below("input"))
        talk.user(str(asked or ""))
        answered = _answer(talk, golden)
    talk.tokens = Tokens(
        _whole(golden.get("input_token_count")),
        _whole(golden.get("output_token_count")),
        cost=_number(golden.get("token_cost")),
    )
    expected: dict[str, Any] = {"facts": {}}
    for told in ("expected_output", "expected_outcome"):
        if golden.get(told) is not None:
            expected["facts"][told] = golden[told]
    if tools := [call["name"] for call in dictionaries(golden.get("expected_tools")) if call.get("name")]:
        expected["must_call_tools"] = tools
    extra = {given: golden[given] for given in ("retrieval_context", "context") if golden.get(given) is not None}
    extra["imported_from"] = {"file": file.name, "format": "deepeval", **place.origin()}
    name = golden.get("name")
    return Imported(
        file,
        str(name) if name else f"golden-{number}",
        {"user_message": asked or ""},
        talk.trace("recorded", extra) if answered else None,
        expected=expected,
        metadata=_metadata(golden),
        record=place.value,
        line=place.line,
        key=place.key,
        authored=True,
    )


def _turns(talk: Transcript, golden: dict[str, Any]) -> tuple[Any, bool]:
    """What a conversational golden begins with, and whether it has answers."""
    answered = False
    for turn in dictionaries(golden.get("turns")):
        text = str(turn.get("content") or "")
        if turn.get("role") == "user":
            talk.user(text)
        else:
            talk.say(text)
            answered = True
    return golden.get("scenario") or talk.user_message, answered


def _answer(talk: Transcript, golden: dict[str, Any]) -> bool:
    if not isinstance(golden.get("actual_output"), str):
        return False
    turn = talk.turn()
    turn.say(golden["actual_output"])
    for call in dictionaries(golden.get("tools_called")):
        given = call.get("input_parameters", call.get("inputParameters"))
        talk.calls_in(turn, str(call.get("name", "tool")), None, arguments_of(given))
    return True


def _metadata(golden: dict[str, Any]) -> dict[str, Any]:
    given = golden.get("additional_metadata")
    found = dict(given) if isinstance(given, dict) else {}
    for name in ("comments", "source_file"):
        if golden.get(name) is not None:
            found[name] = golden[name]
    return found


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else round(number)


class DeepEval(TraceImporter):
    """Goldens of deepeval, as JSON, JSON Lines or CSV."""

    read: ClassVar[Read] = staticmethod(read)
