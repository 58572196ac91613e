"""Conversations in the form of Anthropic's Messages API, and responses of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.blocks import assistant_blocks, blocks_in, texts_of, user_blocks
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.placed_conversations import imported_conversation
from evalwright.importers.placed_records import ImportRecord, placed_records
from evalwright.importers.record_values import described
from evalwright.importers.token_counts import anthropic_tokens
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript
from evalwright.model.trace import TraceError

__all__ = ["AnthropicMessages"]


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The conversations in the files."""
    for file in files:
        for place in placed_records(file, reading.mistakes, items_are_one=_is_message):
            record = _Record(file, place, reading)
            before = len(reading.mistakes)
            talk = record.read()
            if talk.empty:
                if len(reading.mistakes) == before:
                    record.report("", "expected a conversation or a response, found no message")
                continue
            yield imported_conversation(talk, file, place, "anthropic-messages")


def _is_message(value: Any) -> bool:
    """Whether it is a message of a conversation; a list of messages is one record."""
    return isinstance(value, dict) and "role" in value and value.get("type") != "message"


class _Record:
    """One conversation: `{system, messages, response, usage}`, a response alone, or a list of messages."""

    def __init__(self, file: Path, place: ImportRecord, reading: ImportFindings) -> None:
        self._file, self._place, self._reading = file, place, reading
        self._talk = Transcript()

    def report(self, key: str, message: str) -> None:
        self._reading.mistakes.add(self._file, message, self._place.line, self._place.below(key))

    def read(self) -> Transcript:
        value = self._place.value
        if isinstance(value, list):
            self._messages(value, "")
        elif not isinstance(value, dict):
            self.report("", f"expected a conversation, found {described(value)}")
        elif value.get("type") == "message":
            self._response(value)
        else:
            if value.get("system"):
                self._talk.system(texts_of(value["system"], self._reading.notes))
            self._messages(value.get("messages"), "messages")
            if isinstance(value.get("response"), dict):
                self._response(value["response"])
            if value.get("usage") is not None:
                self._talk.tokens = anthropic_tokens(self._reading.notes, value["usage"])
        return self._talk

    def _response(self, response: dict[str, Any]) -> None:
        error = response.get("error")
        if response.get("type") == "error" and isinstance(error, dict):
            self._talk.error = TraceError(str(error.get("type") or "api_error"), str(error.get("message") or "failed"))
            return
        model = response.get("model")
        turn = self._talk.turn(None, None, model if isinstance(model, str) else None)
        assistant_blocks(self._talk, turn, blocks_in(response.get("content")), self._reading.notes)
        self._talk.tokens += anthropic_tokens(self._reading.notes, response.get("usage"))
        self._talk.extra.pop("stopped", None)  # an earlier response was continued
        if response.get("stop_reason") not in (None, "end_turn", "tool_use", "stop_sequence"):
            self._talk.extra["stopped"] = response["stop_reason"]

    def _messages(self, messages: Any, key: str) -> None:
        if not isinstance(messages, list):
            self.report(key, f"expected a list of messages, found {described(messages)}")
            return
        for number, message in enumerate(messages):
            at = f"{key}[{number}]"
            if not isinstance(message, dict):
                self.report(at, f"expected a message, found {described(message)}")
                continue
            content = message.get("content")
            blocks = blocks_in(content)
            match message.get("role"):
                case "assistant" if message.get("type") == "message":  # a response that was appended as it came
                    self._response(message)
                case "assistant":
                    assistant_blocks(self._talk, self._talk.turn(), blocks, self._reading.notes)
                case "user":
                    user_blocks(self._talk, blocks, self._reading.notes, partial(self.report, f"{at}.content"))
                case "system":
                    self._talk.system(texts_of(content, self._reading.notes))
                case role:
                    self.report(f"{at}.role", f"expected user or assistant, found {described(role)}")


class AnthropicMessages(TraceImporter):
    """Requests and responses of Anthropic's Messages API."""

    read: ClassVar[Read] = staticmethod(read)
