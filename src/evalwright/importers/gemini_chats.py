"""Sessions that Gemini CLI keeps in `~/.gemini/tmp/PROJECT/chats`: one document, or lines in newer releases.

A message of the lines is written again whenever it has grown: the last one counts. Sessions of subagents are in a
folder beside the session that is named by its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from os.path import isdir
from pathlib import Path
from typing import Any

from evalwright.importers.file_heads import head_of
from evalwright.importers.imported_records import ImportFindings
from evalwright.importers.json_lines import records
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import ImportNotes, record_key
from evalwright.importers.token_counts import Tokens, recorded_time, token_count
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.trace import TraceError

__all__ = ["GeminiChat", "is_chat", "tokens_of_model"]

_SUFFIXES = (".json", ".jsonl")
_CONTEXT = "<session_context>"
"""The beginning of a message that the tool wrote in the user's name."""
_FAILED = ("error", "cancelled")


def is_chat(file: Path) -> bool:
    """Whether it is a session that was kept, and no printed output."""
    return head_of(file).any(lambda record: {"sessionId", "projectHash"} <= record.keys())


class GeminiChat:
    """One session."""

    def __init__(self, file: Path, reading: ImportFindings) -> None:
        self.talk: Transcript = Transcript()
        self.parts: list[Path] = []
        """The files of its subagents."""
        self._notes = reading.notes
        about: dict[str, Any] = {}
        messages: dict[str, Mapping[str, Any]] = {}
        for number, record in records(file, reading.mistakes, may_be_cut=True):
            if record is None:
                self.talk.breaks_off(file, number, reading.notes)
            elif "$rewindTo" in record:
                _rewind(messages, record["$rewindTo"], reading.notes)
            elif isinstance(changed := record.get("$set"), dict):
                if isinstance(changed.get("messages"), list):
                    messages = _by_id(changed["messages"])
                about |= changed
            elif "sessionId" in record:
                messages |= _by_id(record.get("messages"))
                about |= record
            else:
                messages |= _by_id([record], number)
        self.id: str | None = record_key(about.get("sessionId"))
        self.is_part: bool = about.get("kind") == "subagent"
        for message in messages.values():
            try:
                self._take(message)
            except RecursionError:
                reading.mistakes.add_depth(file)
        home = file.parent / (self.id or "")
        # an id may be too long for a name: `home.is_dir()` raises then
        if self.id and not self.is_part and Path(self.id).name == self.id and isdir(home):
            self.parts = sorted(part for part in home.iterdir() if part.suffix in _SUFFIXES)
            for part in self.parts:
                other = GeminiChat(part, reading)
                self.talk.subagent(other.id or part.stem, other.talk)

    def _take(self, message: Mapping[str, Any]) -> None:
        at = recorded_time(message.get("timestamp"), self._notes)
        self.talk.at(at)
        text = _text(message.get("content"), self._notes)
        match message.get("type"):
            case "user":
                if text:  # else results, which are beside their calls
                    self.talk.user(text, asks=not text.startswith(_CONTEXT))
            case "gemini":
                self.talk.error = None
                self._turn(message, text, at)
            case "error":
                self.talk.error = TraceError("agent_error", text or "the agent ended with an error")
            case "warning":
                self.talk.extra.setdefault("warnings", []).append(text)
            case "info":
                pass  # what the program showed its user
            case kind:
                self._notes.lose(f"messages of type {kind!r}")

    def _turn(self, message: Mapping[str, Any], text: str, at: Any) -> None:
        model = message.get("model")
        turn = self.talk.turn(None, at, model if isinstance(model, str) else None)
        for thought in dictionaries(message.get("thoughts")):
            thought_parts = [str(thought[key]) for key in ("subject", "description") if thought.get(key)]
            if thought_parts:
                turn.think(": ".join(thought_parts))
        if text:
            turn.add_text(text)
        calls = [*dictionaries(message.get("toolCalls"))]
        for call in calls:
            name, id = str(call.get("name") or "tool"), record_key(call.get("id"))
            self.talk.calls_in(turn, name, id, arguments_of(call.get("args")), at)
        for call in calls:
            self._result(call)
        counts = message.get("tokens")
        if isinstance(counts, dict):
            self.talk.tokens += tokens_of_model(counts, "input", "output", self._notes)

    def _result(self, call: Mapping[str, Any]) -> None:
        at, id = recorded_time(call.get("timestamp"), self._notes), record_key(call.get("id"))
        self.talk.at(at)
        result = call.get("result")
        responses = [part.get("functionResponse") for part in dictionaries(result)]
        responses_found = [
            dictionary["response"]
            for dictionary in dictionaries(responses)
            if isinstance(dictionary.get("response"), dict)
        ]
        failed = call.get("status") in _FAILED or any("error" in response for response in responses_found)
        texts = [response.get("output", response.get("error")) for response in responses_found]
        if responses_found and not all(isinstance(text, str) for text in texts):
            shown: Any = responses_found[0]
        elif responses_found:
            shown = "\n".join(texts)
        elif result is None and not failed:
            return  # the session ended before
        else:
            display = call.get("resultDisplay")
            shown = _text(result, self._notes) or (display if isinstance(display, str) else "")
        self.talk.result(id, shown, str(call.get("name") or "tool"), at, failed)


def _by_id(messages: Any, line: int = 0) -> dict[str, Mapping[str, Any]]:
    return {
        str(dictionary.get("id", f"#{number}")): dictionary
        for number, dictionary in enumerate(dictionaries(messages), line)
    }


def _rewind(messages: dict[str, Mapping[str, Any]], to: Any, notes: ImportNotes) -> None:
    """Leave out a message and all after it; all messages if it is not known, as Gemini CLI does."""
    ids = [*messages]
    left = ids[ids.index(to) :] if to in ids else ids
    notes.lose("messages that were rewound", len(left))
    for id in left:
        del messages[id]


def _text(content: Any, notes: ImportNotes) -> str:
    """The texts of a message's parts; calls and results among them are kept apart."""
    if isinstance(content, str):
        return content
    messages = []
    for part in [content] if isinstance(content, dict) else content if isinstance(content, list) else []:
        if isinstance(part, str):
            messages.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            if not part.get("thought"):
                messages.append(part["text"])
        elif isinstance(part, dict) and not part.keys() & {"functionCall", "functionResponse"}:
            notes.lose("images and files")
    return "\n".join(messages)


def tokens_of_model(counts: Mapping[str, Any], prompt: str, answer: str, notes: ImportNotes) -> Tokens:
    """The tokens of a model, counted apart for what tools gave it and what it thought; `prompt` and `answer` are the
    names of the other counts."""
    sent, tool, written, thinking, cached = (
        token_count(counts.get(key), notes) for key in (prompt, "tool", answer, "thoughts", "cached")
    )
    tokens = Tokens(sent, written, thinking, cached)
    tokens += Tokens(tool, thinking)
    return tokens
