"""Reads the output of `gemini --output-format stream-json` and `--output-format json`, and the sessions it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.importers.agent_sessions import imported_session, imported_sessions
from evalwright.importers.blocks import texts_of
from evalwright.importers.gemini_chats import GeminiChat, is_chat, tokens_of_model
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.sources import ImportNotes, json_document, lines, record_key
from evalwright.importers.token_counts import Tokens, recorded_milliseconds, recorded_time, token_count
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of, shallow
from evalwright.model.trace import TraceError

__all__ = ["Gemini"]

_TYPES = {"init", "message", "tool_use", "tool_result", "error", "result"}


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions in the files; one of a subagent is part of the session that started it, if that is there."""
    parts: list[Path] = []
    claimed: set[Path] = set()
    for file in files:
        if is_chat(file):
            chat = GeminiChat(file, reading)
            claimed |= {*chat.parts}
            if chat.is_part:
                parts.append(file)
            else:
                yield from _kept_chat(file, chat, reading)
        elif _is_document(file):
            session = _Session(file, reading.notes)
            session.answer(json_document(file, reading.mistakes))
            if (talk := session.finished()).silent:
                reading.note_empty()
            else:
                yield imported_session(file, "gemini", session.id, talk)
        else:
            yield from imported_sessions(file, "gemini", partial(_Session, file, reading.notes), reading)
    for file in parts:
        if file not in claimed:
            yield from _kept_chat(file, GeminiChat(file, reading), reading)


def _kept_chat(file: Path, chat: GeminiChat, reading: ImportFindings) -> Iterator[Imported]:
    if chat.talk.silent:
        reading.note_empty()
    elif not len(reading.mistakes):
        yield imported_session(file, "gemini", chat.id, chat.talk)


def _is_document(file: Path) -> bool:
    """Whether it is the one object of `--output-format json`, which has no type."""
    first = next((text for _, text in lines(file)), b"")
    try:
        value = msgspec.json.decode(first)
    except (ValueError, RecursionError):
        return b'"type"' not in first and first.lstrip().startswith(b"{")
    return isinstance(value, dict) and "type" not in value


class _Session:
    def __init__(self, file: Path, notes: ImportNotes) -> None:
        self.id: str | None = None
        self._file, self._notes = file, notes
        self._talk = Transcript()
        self._delta: tuple[str, list[str], Any] | None = None
        """The role, the pieces so far and the time of a message that comes in pieces."""

    def ends_before(self, record: dict[str, Any]) -> bool:
        return record.get("type") == "init" and self.id is not None and record_key(record.get("session_id")) != self.id

    def answer(self, document: Any) -> None:
        """An answer without its messages."""
        if not isinstance(document, dict):
            return
        self.id = record_key(document.get("session_id"))
        if isinstance(document.get("response"), str):
            self._talk.add_text(document["response"])
        self._result({"stats": document.get("stats"), "error": document.get("error")})

    def read(self, number: int, value: dict[str, Any] | None) -> None:
        if value is None:
            self._talk.breaks_off(self._file, number, self._notes)
            return
        kind = value.get("type")
        at = recorded_time(value.get("timestamp"), self._notes)
        self._talk.at(at)
        if kind == "message":
            self._message(value, at)
            return
        self._flush()
        if kind == "init":
            self.id = record_key(value.get("session_id")) or self.id
            self._talk.extra["model"] = shallow(value.get("model"))
        elif kind == "tool_use":
            id = value.get("tool_id")
            self._talk.call(str(value.get("tool_name", "tool")), id, arguments_of(value.get("parameters")), at)
        elif kind == "tool_result":
            self._tool_result(value, at)
        elif kind == "error":
            self._talk.extra.setdefault("warnings", []).append(str(value.get("message")))
        elif kind == "result":
            self._result(value)
        elif str(kind) not in _TYPES:
            self._notes.lose(f"lines of type {kind!r}")

    def _message(self, value: dict[str, Any], at: Any) -> None:
        role, text = str(value.get("role")), texts_of(value.get("content"), self._notes)
        if self._delta is not None and self._delta[0] == role and value.get("delta"):
            self._delta[1].append(text)
            return
        self._flush()
        self._delta = (role, [text], at)
        if not value.get("delta"):
            self._flush()

    def _flush(self) -> None:
        if self._delta is None:
            return
        role, pieces, at = self._delta
        self._delta = None
        if role == "user":
            self._talk.user("".join(pieces))
        elif role == "system":
            self._talk.system("".join(pieces))
        else:
            self._talk.add_text("".join(pieces), at)

    def _tool_result(self, value: dict[str, Any], at: Any) -> None:
        error = value.get("error")
        failed = value.get("status") == "error"
        message = error.get("message") if isinstance(error, dict) else error
        output = value.get("output")
        content = message if failed and output in (None, "") else output
        shown = content if isinstance(content, dict) else texts_of(content, self._notes)
        self._talk.result(value.get("tool_id"), shown, at=at, failed=failed)

    def _result(self, value: dict[str, Any]) -> None:
        stats = value.get("stats")
        stats = stats if isinstance(stats, dict) else {}
        # a session that is continued reports each part at its end
        self._talk.tokens += self._counted(stats)
        if (lasted := recorded_milliseconds(stats.get("duration_ms"), self._notes)) is not None:
            self._talk.latency_ms = lasted + (self._talk.latency_ms or 0)
        error = value.get("error")
        self._talk.error = None
        if value.get("status") == "error" or error:
            message = error.get("message") if isinstance(error, dict) else error
            self._talk.error = TraceError("agent_error", str(message or "the agent ended with an error"))

    def _counted(self, stats: dict[str, Any]) -> Tokens:
        """The sums in a stream, or those of each model in a document."""
        sent, written, cached = (
            token_count(stats.get(key), self._notes) for key in ("input_tokens", "output_tokens", "cached")
        )
        thinking = self._thoughts(stats, sent, written)
        tokens = Tokens(sent, written if written is None else written + (thinking or 0), thinking, cached)
        models = stats.get("models")
        if tokens != Tokens() or not isinstance(models, dict):
            return tokens
        for name, model in models.items():
            if isinstance(model, dict) and isinstance(counts := model.get("tokens"), dict):
                self._talk.models.add(name)
                tokens += tokens_of_model(counts, "prompt", "candidates", self._notes)
        return tokens

    def _thoughts(self, stats: dict[str, Any], sent: int | None, written: int | None) -> int | None:
        """The tokens of thoughts in a stream, which has no count of them: what the total has beside input and output,
        as `output_tokens` leaves them out."""
        total = token_count(stats.get("total_tokens"), self._notes)
        if total is None or sent is None or written is None:
            return None
        return total - sent - written if total > sent + written else None

    def finished(self) -> Transcript:
        self._flush()
        return self._talk


class Gemini(TraceImporter):
    """The output of `gemini --output-format stream-json` or `json`, and the sessions that Gemini CLI keeps."""

    read: ClassVar[Read] = staticmethod(read)
