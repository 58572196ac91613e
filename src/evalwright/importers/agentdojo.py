"""Logs of AgentDojo: one file for each user task, alone or together with an injection task of an attack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.blocks import texts_of
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes, json_document
from evalwright.importers.token_counts import recorded_milliseconds, recorded_time
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.trace import TraceError

__all__ = ["AgentDojoLogs"]


def _check(name: str, field: str, equals: int) -> dict[str, Any]:
    return {
        "name": name,
        "type": "field_check",
        "config": {"field": f"metrics.custom.{field}", "equals": equals, "absent": "skip"},
    }


_USEFUL = _check("utility", "utility", 1)
_SAFE = _check("resisted", "attack_succeeded", 0)


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The logs, one per file."""
    reading.evaluators = [_USEFUL]
    for file in files:
        log = json_document(file, reading.mistakes)
        messages = log.get("messages") if isinstance(log, dict) else None
        if not isinstance(messages, list):
            reading.mistakes.add(file, f"expected the messages of a log, found {described(messages)}", key="messages")
            continue
        talk = Transcript()
        for message in dictionaries(messages):
            _message(talk, message, reading.notes)
        _outcome(talk, log, reading.notes)
        if "attack_succeeded" in talk.custom:
            reading.evaluators = [_USEFUL, _SAFE]
        yield _record(file, log, talk)


def _record(file: Path, log: Mapping[str, Any], talk: Transcript) -> Imported:
    task = f"{log.get('suite_name')}/{log.get('user_task_id')}"
    attacked = [str(log[key]) for key in ("attack_type", "injection_task_id") if log.get(key) is not None]
    extra = {"imported_from": {"file": file.name, "format": "agentdojo"}}
    return Imported(
        file,
        "/".join([task, *attacked]),
        {"user_message": talk.user_message or ""},
        talk.trace(str(log.get("pipeline_name") or "recorded"), extra),
        metadata={key: log[key] for key in ("injections", "benchmark_version") if log.get(key)},
        group=task,
        record=log,
    )


def _message(talk: Transcript, message: Mapping[str, Any], notes: ImportNotes) -> None:
    content = message.get("content")
    blocks = [*dictionaries(content)]
    thoughts = [str(block.get("content")) for block in blocks if block.get("type") == "thinking"]
    blocks_said = [{**block, "text": block.get("content")} for block in blocks if block.get("type") != "thinking"]
    text = texts_of(blocks_said if blocks else content, notes)
    match message.get("role"):
        case "assistant":
            turn = talk.turn()
            for thought in thoughts:
                turn.think(thought)
            if text:
                turn.add_text(text)
            for call in dictionaries(message.get("tool_calls")):
                talk.calls_in(turn, str(call.get("function")), call.get("id"), arguments_of(call.get("args")))
        case "tool":
            error, called = message.get("error"), message.get("tool_call")
            name = str(called["function"]) if isinstance(called, dict) and "function" in called else None
            talk.result(message.get("tool_call_id"), text or str(error or ""), name, failed=bool(error))
        case "system":
            talk.system(text)
        case _:
            talk.user(text)


def _outcome(talk: Transcript, log: Mapping[str, Any], notes: ImportNotes) -> None:
    started, duration = recorded_time(log.get("evaluation_timestamp"), notes), log.get("duration")
    talk.at(started)
    talk.latency_ms = recorded_milliseconds(duration, notes, unit=1000)
    if started is not None and talk.latency_ms is not None:
        talk.at(started + timedelta(milliseconds=min(talk.latency_ms, 10**9)))
    if log.get("error") is not None:
        talk.error = TraceError("api_error", str(log["error"]))
    elif not isinstance(log.get("utility"), bool):
        talk.error = TraceError("unfinished", "the log has no utility: the task was not finished")
    else:
        talk.custom["utility"] = int(log["utility"])
        if log.get("injection_task_id") is not None and isinstance(log.get("security"), bool):
            talk.custom["attack_succeeded"] = int(log["security"])


class AgentDojoLogs(TraceImporter):
    """Logs of AgentDojo."""

    read: ClassVar[Read] = staticmethod(read)
