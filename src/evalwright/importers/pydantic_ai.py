"""Message histories of Pydantic AI: what `all_messages_json()` and `ModelMessagesTypeAdapter` write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.files.numbers import finite_number_in
from evalwright.files.plain import mapping_or_empty
from evalwright.importers.agent_turns import AgentTurn
from evalwright.importers.blocks import lost_with, texts_of
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.placed_conversations import imported_conversation
from evalwright.importers.placed_records import placed_records
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes
from evalwright.importers.token_counts import Tokens, recorded_dollars, recorded_time, token_count
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of

__all__ = ["PydanticAI"]

_OUTPUT = "final_result"
"""The beginning of the names of the tools by which agents return what is no text."""
_CALLS = ("tool-call", "builtin-tool-call")
_RESULTS = ("tool-return", "builtin-tool-return")
_ATTACHED = {"image-url": "image", "audio-url": "audio", "video-url": "video", "document-url": "document"}
_FINISHED = (None, "stop", "tool_call")


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The histories in the files: lists of messages, or records with one below `messages`."""
    for file in files:
        for place in placed_records(file, reading.mistakes, items_are_one=_is_message):
            report = partial(_report, reading, file, place.line)
            record = place.value
            in_record = isinstance(record, dict) and "messages" in record
            messages, key = (record["messages"], place.below("messages")) if in_record else (record, place.key)
            if not isinstance(messages, list) or not messages:
                report(key, f"expected a list of messages, found {described(messages)}")
                continue
            history = _History(reading.notes)
            for number, message in enumerate(messages):
                if isinstance(message, dict) and isinstance(message.get("parts"), list):
                    history.read(message)
                else:
                    report(f"{key}[{number}]", f"expected a message with its parts, found {described(message)}")
            yield imported_conversation(history.finished(), file, place, "pydantic-ai")


def _report(reading: ImportFindings, file: Path, line: int | None, key: str, message: str) -> None:
    reading.mistakes.add(file, message, line, key)


def _is_message(value: Any) -> bool:
    """Whether it is a message of a history; a list of messages is one record."""
    return isinstance(value, dict) and "parts" in value


class _History:
    """One history, message by message."""

    def __init__(self, notes: ImportNotes) -> None:
        self._talk, self._notes = Transcript(), notes
        self._instructions: str | None = None
        self._requested_at: datetime | None = None
        """When the last request was sent."""
        self._output: tuple[str | None, dict[str, Any]] | None = None
        """The id and the arguments of the last call that returns the agent's output."""

    def read(self, message: Mapping[str, Any]) -> None:
        at = self._time(message)
        for key in ("run_id", "conversation_id"):
            if isinstance(message.get(key), str):
                self._talk.extra[key] = message[key]
        if message.get("kind") == "response":
            self._response(message, at)
        else:
            self._request(message, at)

    def finished(self) -> Transcript:
        if self._output is not None:
            self._talk.structured = self._output[1]
            self._talk.answer = msgspec.json.encode(self._output[1]).decode()
        return self._talk

    def _time(self, holder: Mapping[str, Any]) -> datetime | None:
        at = recorded_time(holder.get("timestamp"), self._notes)
        self._talk.at(at)
        return at

    def _request(self, message: Mapping[str, Any], at: datetime | None) -> None:
        instructions = message.get("instructions")
        if isinstance(instructions, str) and instructions and instructions != self._instructions:
            self._instructions = instructions
            self._talk.system(instructions)
        for part in dictionaries(message["parts"]):
            own = self._time(part)
            at = at or own
            match part.get("part_kind"):
                case "system-prompt":
                    self._talk.system(self._text(part.get("content")))
                case "user-prompt":
                    self._talk.user(self._text(part.get("content")))
                    self._output = None
                case "retry-prompt" if part.get("tool_name") is None:
                    self._talk.user(self._value(part.get("content")), asks=False)
                case "retry-prompt":
                    self._result(part, own, failed=True)
                case kind if kind in _RESULTS:
                    self._result(part, own, failed=part.get("outcome") not in (None, "success"))
                case kind:
                    self._notes.lose(f"parts of type {kind!r}")
        self._requested_at = at

    def _response(self, message: Mapping[str, Any], at: datetime | None) -> None:
        model = message.get("model_name")
        turn = self._talk.turn(None, self._requested_at or at, model if isinstance(model, str) else None)
        turn.finished_at = at
        for part in dictionaries(message["parts"]):
            self._part(turn, part, at)
        self._talk.tokens += _tokens(mapping_or_empty(message.get("usage")), self._notes)
        self._talk.extra.pop("stopped", None)
        ended = message.get("finish_reason")
        if ended not in _FINISHED:
            self._talk.extra["stopped"] = ended
        elif message.get("state") not in (None, "complete"):
            self._talk.extra["stopped"] = message["state"]

    def _part(self, turn: AgentTurn, part: Mapping[str, Any], at: datetime | None) -> None:
        kind, content = part.get("part_kind"), part.get("content")
        if kind == "text":
            turn.add_text(self._text(content))
        elif kind == "thinking":
            if isinstance(content, str) and content:
                turn.think(content)
        elif kind in _CALLS:
            call_id, name = _id_and_name(part)
            arguments = arguments_of(part.get("args"))
            self._talk.calls_in(turn, name or "tool", call_id, arguments, at)
            if name is not None and name.startswith(_OUTPUT):
                self._output = call_id, arguments
        elif kind in _RESULTS:
            self._result(part, at, failed=part.get("outcome") not in (None, "success"))
        elif kind == "file":
            turn.add_text(self._text([content]))
        else:
            self._notes.lose(f"parts of type {kind!r}")

    def _result(self, part: Mapping[str, Any], at: datetime | None, *, failed: bool) -> None:
        call_id, name = _id_and_name(part)
        if failed and self._output is not None and call_id == self._output[0]:
            self._output = None  # it did not hold the schema, and the model is asked again
        content = part.get("content")
        self._talk.result(call_id, content if isinstance(content, dict) else self._value(content), name, at, failed)

    def _value(self, content: Any) -> str:
        """What a tool returned, or what was wrong with a reply, as text: parts of a prompt, or JSON."""
        if isinstance(content, str):
            return content
        if isinstance(content, list) and content and all(isinstance(p, str) or _attached(p) for p in content):
            return self._text(content)
        return msgspec.json.encode(content).decode()

    def _text(self, content: Any) -> str:
        parts = content if isinstance(content, list) else [content]
        texts = []
        for part in parts:
            kind = _attached(part)
            if kind is not None:
                self._notes.lose(lost_with(kind))
            texts.append(texts_of(part, self._notes) if kind is None else f"[{kind}]")
        return "\n".join(texts)


def _id_and_name(part: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The id of a call and the name of its tool, in the call or in its result."""
    call_id, name = part.get("tool_call_id"), part.get("tool_name")
    return call_id if isinstance(call_id, str) else None, name if isinstance(name, str) else None


def _attached(part: Any) -> str | None:
    """The type of a part of a prompt that is no text: `image`, `audio`, ...; None for anything else."""
    if not isinstance(part, dict):
        return None
    kind = part.get("kind")
    if kind in ("binary", "uploaded-file"):
        family = str(part.get("media_type")).partition("/")[0]
        return family if family in _ATTACHED.values() else "document"
    return _ATTACHED.get(kind) if isinstance(kind, str) else None


def _tokens(usage: Mapping[str, Any], notes: ImportNotes) -> Tokens:
    """What a response used. A request that nobody counted has zeros, and so has a part that the provider lacks."""

    def count(*keys: str) -> int | None:
        counts = (token_count(usage.get(key), notes) for key in keys)
        return next((number for number in counts if number), None)

    details = mapping_or_empty(usage.get("details"))
    thinking = count("output_reasoning_tokens") or token_count(details.get("reasoning_tokens"), notes) or None
    read, written = count("input_tokens", "request_tokens"), count("output_tokens", "response_tokens")
    cost = usage.get("cost")
    cost = finite_number_in(cost) if isinstance(cost, str) else cost
    return Tokens(read, written, thinking, count("cache_read_tokens"), count("cache_write_tokens"),
                  recorded_dollars(cost, notes))  # fmt: skip


class PydanticAI(TraceImporter):
    """Message histories of Pydantic AI."""

    read: ClassVar[Read] = staticmethod(read)
