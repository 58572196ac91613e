"""Sessions of OpenCode: what `opencode run --format json` prints and `opencode export` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.agent_sessions import imported_session, imported_sessions
from evalwright.importers.agent_turns import AgentTurn
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.placed_records import placed_records
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes, json_value, lines, record_key
from evalwright.importers.token_counts import Tokens, recorded_dollars, recorded_time, token_count
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.trace import TraceError

__all__ = ["OpenCode"]

_BOOKKEEPING = ("snapshot", "patch", "agent", "retry", "compaction", "subtask")
"""Types of parts that are not part of the conversation."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions in the files."""
    for file in files:
        if _has_events(file):
            yield from imported_sessions(file, "opencode", partial(_Session, file, reading.notes), reading)
            continue
        for record in placed_records(file, reading.mistakes):
            messages = record.value.get("messages") if isinstance(record.value, dict) else None
            if not isinstance(messages, list):
                problem = f"expected the messages of a session, found {described(messages)}"
                reading.mistakes.add(file, problem, record.line, record.below("messages"))
                continue
            session = _Session(file, reading.notes)
            session.id = record_key(mapping_or_empty(record.value.get("info")).get("id"))
            for message in dictionaries(messages):
                session.message(message)
            if session.finished().silent:
                reading.note_empty()
            else:
                yield imported_session(file, "opencode", session.id, session.finished())


def _has_events(file: Path) -> bool:
    """Whether it has an event on each line, instead of being an exported session."""
    _, first = next(iter(lines(file)), (1, b""))
    try:
        value = json_value(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "type" in value


class _Session:
    def __init__(self, file: Path, notes: ImportNotes) -> None:
        self.id: str | None = None
        self._file, self._notes = file, notes
        self._moment = partial(recorded_time, notes=notes, per_second=1000)
        self._talk = Transcript()
        self._turn: AgentTurn | None = None
        """The turn of the current step."""
        self._model: str | None = None

    def ends_before(self, record: dict[str, Any]) -> bool:
        return self.id is not None and record_key(record.get("sessionID")) not in (None, self.id)

    def read(self, number: int, record: dict[str, Any] | None) -> None:
        """Take an event."""
        if record is None:
            self._talk.breaks_off(self._file, number, self._notes)
            return
        self.id = self.id or record_key(record.get("sessionID"))
        at = self._moment(record.get("timestamp"))
        self._talk.at(at)
        kind, part = record.get("type"), mapping_or_empty(record.get("part"))
        if kind == "user":
            self._user(record.get("parts"))
        elif kind == "error":
            self._fails(record.get("error"))
        elif part:
            self._part(part, at)
            if part.get("type") == "step-finish":
                self._add_usage(part)
        elif kind not in ("step_start", "step_finish"):
            self._notes.lose(f"events of type {kind!r}")

    def message(self, message: Mapping[str, Any]) -> None:
        """Take a message of an exported session."""
        info = mapping_or_empty(message.get("info"))
        times = mapping_or_empty(info.get("time"))
        at = self._moment(times.get("created"))
        for time in (at, self._moment(times.get("completed"))):
            self._talk.at(time)
        self._turn = None
        if info.get("role") == "user":
            self._user(message.get("parts"))
            return
        name = info.get("modelID")
        self._model = name if isinstance(name, str) else None
        for part in dictionaries(message.get("parts")):
            self._part(part, at)
        self._add_usage(info)  # the sum of its steps
        if info.get("error"):
            self._fails(info["error"])

    def _user(self, parts: Any) -> None:
        for part in dictionaries(parts):
            if part.get("type") == "text" and not part.get("ignored"):
                self._talk.user(str(part.get("text") or ""), asks=not part.get("synthetic"))
            elif part.get("type") == "file":
                self._notes.lose("files")

    def _part(self, part: Mapping[str, Any], at: datetime | None) -> None:
        kind, text = part.get("type"), part.get("text")
        if kind in ("step-start", "step-finish"):
            self._turn = None
        elif kind in ("text", "reasoning"):
            if isinstance(text, str) and text.strip():
                turn = self._turn_at(at)
                (turn.add_text if kind == "text" else turn.think)(text.strip())
                self._talk.error = None
        elif kind == "tool":
            self._call(part, at)
        elif kind == "file":
            self._notes.lose("files")
        elif kind not in _BOOKKEEPING:
            self._notes.lose(f"parts of type {kind!r}")

    def _turn_at(self, at: datetime | None) -> AgentTurn:
        if self._turn is None:
            self._turn = self._talk.turn(None, at, self._model)
        return self._turn

    def _call(self, part: Mapping[str, Any], at: datetime | None) -> None:
        """A call with its result; it has none if the session ended before."""
        id, name = record_key(part.get("callID")), str(part.get("tool") or "tool")
        state = mapping_or_empty(part.get("state"))
        times = mapping_or_empty(state.get("time"))
        begun, ended = self._moment(times.get("start")) or at, self._moment(times.get("end")) or at
        for time in (begun, ended):
            self._talk.at(time)
        self._talk.calls_in(self._turn_at(at), name, id, arguments_of(state.get("input")), begun)
        code = mapping_or_empty(state.get("metadata")).get("exit")
        if state.get("status") == "error":
            self._talk.result(id, str(state.get("error") or ""), name, ended, failed=True)
        elif state.get("status") == "completed":
            self._talk.result(id, str(state.get("output") or ""), name, ended, type(code) is int and code > 0)

    def _add_usage(self, holder: Mapping[str, Any]) -> None:
        """Tokens and cost of a step or a message; cached tokens and reasoning are counted apart."""
        tokens = mapping_or_empty(holder.get("tokens"))
        cache = mapping_or_empty(tokens.get("cache"))
        sent, written, thought, cached, stored = (
            token_count(value, self._notes)
            for value in (
                tokens.get("input"), tokens.get("output"), tokens.get("reasoning"), cache.get("read"),
                cache.get("write"),
            )
        )  # fmt: skip
        inputs = [part for part in (sent, cached, stored) if part is not None]
        outputs = [part for part in (written, thought) if part is not None]
        self._talk.tokens += Tokens(
            sum(inputs) if inputs else None,
            sum(outputs) if outputs else None,
            thought,
            cached,
            stored,
            # 0 is also what is written for a model whose price is not known
            recorded_dollars(holder.get("cost"), self._notes) or None,
        )

    def _fails(self, error: Any) -> None:
        fields = mapping_or_empty(error)
        message = mapping_or_empty(fields.get("data")).get("message", fields.get("message"))
        self._talk.error = TraceError(str(fields.get("name") or "agent_error"), str(message or error))

    def finished(self) -> Transcript:
        return self._talk


class OpenCode(TraceImporter):
    """Sessions of OpenCode: `opencode run --format json` and `opencode export`."""

    read: ClassVar[Read] = staticmethod(read)
