"""Reads the output of `cursor-agent --output-format stream-json` and `--output-format json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.agent_sessions import imported_sessions
from evalwright.importers.agent_turns import AgentTurn
from evalwright.importers.blocks import texts_of
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.sources import ImportNotes, record_key
from evalwright.importers.token_counts import (
    Tokens,
    recorded_dollars,
    recorded_milliseconds,
    recorded_time,
    token_count,
)
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of, shallow
from evalwright.model.trace import TraceError

__all__ = ["Cursor"]

_CALL = "ToolCall"
_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions in the files."""
    for file in files:
        yield from imported_sessions(file, "cursor", partial(_Session, file, reading.notes), reading)


class _Session:
    def __init__(self, file: Path, notes: ImportNotes) -> None:
        self.id: str | None = None
        self._file, self._notes = file, notes
        self._talk = Transcript()
        self._turn: AgentTurn | None = None
        """The turn that the next text or call belongs to, until a call of it has ended."""
        self._turns: dict[str, AgentTurn] = {}
        """Turns by the id of their model call."""
        self._open_turns: list[AgentTurn] = []
        """The turns with a text in the current run."""
        self._all: list[AgentTurn] = []
        self._thought = ""

    def ends_before(self, record: dict[str, Any]) -> bool:
        key = record_key(record.get("session_id"))
        return record.get("type") == "system" and self.id is not None and key not in (None, self.id)

    def read(self, number: int, record: dict[str, Any] | None) -> None:
        if record is None:
            self._talk.breaks_off(self._file, number, self._notes)
            return
        self.id = self.id or record_key(record.get("session_id"))
        at = recorded_time(record.get("timestamp_ms"), self._notes, per_second=1000)
        self._talk.at(at)
        match record.get("type"):
            case "system":
                self._talk.extra["model"] = shallow(record.get("model"))
            case "user":
                self._turn = None
                self._talk.user(self._text(record))
            case "thinking":
                self._thought += str(record.get("text") or "")
            case "assistant":
                self._assistant(record, at)
            case "tool_call":
                self._call(record, at)
            case "result":
                self._result(record)
            case "interaction_query":
                pass  # a question about permission and its answer
            case kind:
                self._notes.lose(f"lines of type {kind!r}")

    def _text(self, record: Mapping[str, Any]) -> str:
        message = record.get("message")
        return texts_of(message.get("content") if isinstance(message, dict) else None, self._notes)

    def _turn_of(self, record: Mapping[str, Any], at: datetime | None) -> AgentTurn:
        id = record_key(record.get("model_call_id"))
        turn = self._turns.get(id) if id is not None else None
        if turn is None:
            turn = self._turn or self._talk.turn(None, at)
        if id is not None:
            self._turns[id] = turn
        if self._thought.strip():
            turn.think(self._thought)
        self._thought = ""
        self._turn = turn
        return turn

    def _assistant(self, record: Mapping[str, Any], at: datetime | None) -> None:
        """Add a text. It comes whole, or in pieces that are repeated as a whole, after which all texts may follow."""
        text = self._text(record)
        is_piece = at is not None and record.get("model_call_id") is None
        known = self._turn.text or "" if self._turn is not None else ""
        if not is_piece and text in (known, "".join(turn.text or "" for turn in self._open_turns)):
            self._turn_of(record, at)
            return
        turn = self._turn_of(record, at)
        known = turn.text or ""
        if known and not is_piece and at is not None and not text.startswith(known):
            self._turn = None  # a whole text after another one
            turn, known = self._turn_of({}, at), ""
        turn.texts = [text if not is_piece and text.startswith(known) else known + text]
        if turn not in self._open_turns:
            self._open_turns.append(turn)
            self._all.append(turn)

    def _call(self, record: Mapping[str, Any], at: datetime | None) -> None:
        tool_call = record.get("tool_call")
        parts = tool_call if isinstance(tool_call, dict) else {}
        name, call = next(
            ((key, value) for key, value in parts.items() if key.endswith(_CALL) and isinstance(value, dict)),
            next(((key, value) for key, value in parts.items() if isinstance(value, dict)), ("tool", {})),
        )
        name, id = str(call.get("name") or name.removesuffix(_CALL)), record_key(record.get("call_id"))
        if not self._talk.knows(id):
            arguments = arguments_of(call.get("args", call.get("arguments")))
            self._talk.calls_in(self._turn_of(record, at), name, id, arguments, at)
        if record.get("subtype") == "completed":
            self._turn = None
            self._outcome(id, name, call.get("result"), at)

    def _outcome(self, id: str | None, name: str, result: Any, at: datetime | None) -> None:
        shown, failed = result, False
        if isinstance(result, dict) and len(result) == 1:
            kind, shown = next(iter(result.items()))
            failed = kind != "success"
        code = shown.get("exitCode") if isinstance(shown, dict) else None
        failed = failed or (type(code) is int and code > 0)
        self._talk.result(id, shown if isinstance(shown, dict) else texts_of(shown, self._notes), name, at, failed)

    def _result(self, record: Mapping[str, Any]) -> None:
        """Take the end of a run; a session that is continued has several."""
        usage = record.get("usage")
        if isinstance(usage, dict):
            sent, written, cached, stored = (token_count(usage.get(key), self._notes) for key in _COUNTS)
            parts = [part for part in (sent, cached, stored) if part is not None]
            cost = recorded_dollars(usage.get("totalCost", usage.get("cost")), self._notes)
            self._talk.tokens += Tokens(sum(parts) if parts else None, written, None, cached, stored, cost)
        if (lasted := recorded_milliseconds(record.get("duration_ms"), self._notes)) is not None:
            self._talk.latency_ms = lasted + (self._talk.latency_ms or 0)
        text = record.get("result")
        if isinstance(text, str) and not self._open_turns:
            self._talk.add_text(text)  # of `--output-format json`; else it repeats all texts of the run
        self._turn, self._open_turns = None, []
        failed = bool(record.get("is_error"))
        self._talk.error = TraceError("agent_error", str(text or "the agent ended with an error")) if failed else None

    def finished(self) -> Transcript:
        for turn in self._all:
            turn.texts = [(turn.text or "").strip()]
        return self._talk


class Cursor(TraceImporter):
    """The output of `cursor-agent --output-format stream-json` or `json`."""

    read: ClassVar[Read] = staticmethod(read)
