"""Conversations of OpenHands: its folders of events, lists of events, and `output.jsonl` of its benchmarks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.openhands_actions import OpenHandsActions
from evalwright.importers.openhands_conversation import OpenHandsConversation
from evalwright.importers.openhands_events import OpenHandsEvents, active_branch
from evalwright.importers.placed_records import ImportRecord, placed_records
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import json_document, stem
from evalwright.importers.traces import TraceImporter

__all__ = ["OpenHands"]

_STATE = "base_state.json"
_NUMBER = re.compile(r"\d+")


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The conversations in the files: one for each record with a `history`, each other file, and each folder whose
    files have one event each."""
    folders: dict[Path, list[Path]] = {}
    for file in files:
        if file.name == _STATE:
            continue  # read with the events beside it
        events: list[dict[str, Any]] = []
        alone = False
        for record in placed_records(file, reading.mistakes):
            if not isinstance(record.value, dict):
                message = f"expected an event, found {described(record.value)}"
                reading.mistakes.add(file, message, record.line, record.key)
            elif "history" in record.value:
                if (benchmark_record := _benchmark_record(file, record, reading)) is not None:
                    yield benchmark_record
            else:
                events.append(record.value)
                alone = record.line is None and not record.key
        if alone:
            folders.setdefault(file.parent, []).append(file)
        elif events:
            yield from _imported_talk(file, stem(file), _conversation(events, {}, reading), reading)
    if folders:
        reading.name = "openhands"  # the first file's name says nothing
    for folder, parts in folders.items():
        parts.sort(key=lambda file: ([int(number) for number in _NUMBER.findall(file.name)[:1]], file.name))
        events = [json_document(file, reading.mistakes) for file in parts]
        home = folder.parent if folder.name == "events" else folder
        state = home / _STATE
        known = mapping_or_empty(json_document(state, reading.mistakes)) if state.exists() else {}
        id = known.get("id")
        talk = _conversation(events, known, reading)
        yield from _imported_talk(parts[0], id if isinstance(id, str) and id else home.name, talk, reading)


def _imported_talk(file: Path, id: str, talk: OpenHandsConversation, reading: ImportFindings) -> Iterator[Imported]:
    """The conversation, if anything was said in it."""
    if talk.silent:
        reading.note_empty()
    else:
        yield _imported(file, id, talk)


def _conversation(
    events: list[dict[str, Any]], state: Mapping[str, Any], reading: ImportFindings
) -> OpenHandsConversation:
    """The events as a conversation. Releases before 1.0 have events without a `kind`."""
    if any("kind" in event for event in events):
        talk: OpenHandsConversation = OpenHandsEvents(reading.notes)
        events = active_branch(events, state.get("leaf_event_id"), reading.notes)
    else:
        talk = OpenHandsActions(reading.notes)
    for event in events:
        talk.read(event)
    talk.read_state(state)
    talk.finish()
    return talk


def _benchmark_record(file: Path, record: ImportRecord, reading: ImportFindings) -> Imported | None:
    """A record of a benchmark. The events of old ones are in pairs of an action and its observation."""
    fields, history = record.value, record.value["history"]
    if not isinstance(history, list):
        message = f"expected a list of events, found {described(history)}"
        reading.mistakes.add(file, message, record.line, record.below("history"))
        return None
    pairs = (part for part in history if isinstance(part, list))
    events = [*dictionaries(history)] or [event for pair in pairs for event in dictionaries(pair)]
    instruction = fields.get("instruction")
    metadata = mapping_or_empty(fields.get("metadata"))
    talk = _conversation(events, {}, reading)
    talk.read_usage(fields.get("metrics"))
    talk.read_outcome(fields.get("error"))
    if isinstance(instruction, str):
        talk.user_message = instruction  # the history of some benchmarks has no message of the user
    result = mapping_or_empty(fields.get("test_result"))
    patch = result.get("git_patch")
    if isinstance(patch, str):
        talk.structured = {"git_patch": patch}
    for verdict in (fields, fields.get("report"), result, result.get("report")):
        resolved = mapping_or_empty(verdict).get("resolved")
        if isinstance(resolved, bool):
            talk.custom["reward"] = float(resolved)
    for config in (metadata.get("llm"), metadata.get("llm_config")):
        talk.name_model(mapping_or_empty(config).get("model"))
    id = fields.get("instance_id")
    return _imported(file, None if id is None else str(id), talk, record)


def _imported(
    file: Path,
    id: str | None,
    talk: OpenHandsConversation,
    record: ImportRecord | None = None,
) -> Imported:
    place = record.origin() if record else {}
    origin = {"imported_from": {"file": file.name, "format": "openhands", **place}}
    return Imported(
        file,
        id,
        {"user_message": talk.user_message or ""},
        talk.trace(talk.model or "recorded", origin),
        record=record and record.value,
        line=record.line if record else None,
        key=record.key if record else "",
    )


class OpenHands(TraceImporter):
    """Conversations of OpenHands, and `output.jsonl` of its benchmarks."""

    read: ClassVar[Read] = staticmethod(read)
