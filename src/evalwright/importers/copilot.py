"""Reads the output of `copilot --output-format json`, in either of its two shapes.

Flat lines are `message`, `tool_use`, `tool_result` and `usage`; lines of events are `assistant.message`,
`user.message`, `tool.execution_start` and `tool.execution_complete`, with `data`. Both end with `result`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.agent_sessions import imported_sessions
from evalwright.importers.blocks import dictionaries, texts_of
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.recordings import moment
from evalwright.importers.sources import ImportNotes, record_key
from evalwright.importers.token_counts import Tokens, token_count
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.trace import TraceError

__all__ = ["Copilot"]


_BEGIN = ("message", "assistant.message", "user.message", "session.start")
"""Lines with which another session begins after the result of one."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions in the files."""
    for file in files:
        yield from imported_sessions(file, "copilot", partial(_Session, file, reading.notes), reading)


class _Session:
    def __init__(self, file: Path, notes: ImportNotes) -> None:
        self.id: str | None = None
        self._talk = Transcript()
        self._file, self._notes = file, notes
        self._ended = False

    def ends_before(self, record: dict[str, Any]) -> bool:
        return self._ended and record.get("type") in _BEGIN

    def finished(self) -> Transcript:
        return self._talk

    def read(self, number: int, value: dict[str, Any] | None) -> None:
        if value is None:
            self._talk.breaks_off(self._file, number, self._notes)
            return
        self.id = record_key(value.get("session_id") or value.get("sessionId")) or self.id
        self._ended = self._ended or value.get("type") == "result"
        _line(self._talk, value, self._notes)


def _line(talk: Transcript, value: dict[str, Any], notes: ImportNotes) -> None:
    at = moment(value.get("timestamp"))
    talk.at(at)
    data = value.get("data")
    data = data if isinstance(data, dict) else value
    kind = value.get("type")
    id = data.get("toolCallId") or data.get("tool_call_id") or data.get("id")
    match kind:
        case "message" | "assistant.message" | "user.message":
            role = data.get("role") or str(kind).partition(".")[0]
            _message(talk, role, data, notes, at)
        case "tool_use" | "tool.execution_start":
            name = data.get("toolName") or data.get("tool_name") or data.get("name") or "tool"
            if id is None or not talk.knows(id):
                talk.call(str(name), id, arguments_of(data.get("arguments") or data.get("input")), at)
        case "tool_result" | "tool.execution_complete":
            result = data.get("result", data.get("output", data.get("content")))
            if isinstance(result, dict) and isinstance(result.get("content"), str | list):
                result = result["content"]
            shown = result if isinstance(result, dict) else texts_of(result, notes)
            talk.result(id, shown, at=at, failed=data.get("success") is False or bool(data.get("is_error")))
        case "usage" | "assistant.usage":
            talk.tokens += _tokens(data, notes)
        case "result":
            _result(talk, value, notes)
        case "session.error" | "error":
            talk.error = TraceError("agent_error", str(data.get("message") or "error"))
        case _:
            notes.lose(f"lines of type {kind!r}")


def _message(talk: Transcript, role: Any, data: dict[str, Any], notes: ImportNotes, at: Any) -> None:
    text = texts_of(data.get("content"), notes)
    if role == "user":
        talk.user(text)
    elif role == "system":
        talk.system(text)
    else:
        if text:
            talk.say(text, at)
        for request in dictionaries(data.get("toolRequests")):
            id = request.get("toolCallId")
            talk.call(str(request.get("name", "tool")), id, arguments_of(request.get("arguments")), at)


def _result(talk: Transcript, value: dict[str, Any], notes: ImportNotes) -> None:
    usage = value.get("usage")
    if isinstance(usage, dict) and (tokens := _tokens(usage, notes)) != Tokens():
        talk.tokens = tokens
    code = value.get("exitCode", value.get("exit_code"))
    if value.get("status") == "error" or (isinstance(code, int) and code != 0):
        said = value.get("error") or value.get("message") or f"the agent ended with code {code}"
        talk.error = TraceError("agent_error", str(said))


def _tokens(usage: dict[str, Any], notes: ImportNotes) -> Tokens:
    def number(*keys: str) -> int | None:
        return next((token_count(usage[key], notes) for key in keys if usage.get(key) is not None), None)

    return Tokens(number("input_tokens", "inputTokens"), number("output_tokens", "outputTokens"))


class Copilot(TraceImporter):
    """The output of `copilot --output-format json`."""

    read: ClassVar[Read] = staticmethod(read)
