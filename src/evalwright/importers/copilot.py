"""Reads the output of `copilot --output-format json`, in either of its two shapes, and the sessions that it keeps.

Flat lines are `message`, `tool_use`, `tool_result` and `usage`; lines of events are `assistant.message`,
`user.message`, `tool.execution_start` and `tool.execution_complete`, with `data`. Both end with `result`. The kept
sessions, `~/.copilot/session-state/ID/events.jsonl`, have the same events, those of subagents among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.agent_sessions import imported_sessions
from evalwright.importers.blocks import texts_of
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import ImportNotes, record_key
from evalwright.importers.token_counts import Tokens, recorded_time, token_count
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.trace import TraceError

__all__ = ["Copilot"]


_KEPT = "events.jsonl"
"""The name of each kept session's file."""
_BEGIN = ("message", "assistant.message", "user.message", "session.start")
"""Lines with which another session begins after the result of one."""
_COUNTS = ("inputTokens", "outputTokens", "reasoningTokens", "cacheReadTokens", "cacheWriteTokens")
"""In the order of the fields of `Tokens`; the input is with what was cached."""
_BOOKKEEPING = (
    "session.", "assistant.turn_", "assistant.message_", "assistant.reasoning_", "permission.", "hook.", "subagent.",
    "skill.", "tool.execution_p",
)  # fmt: skip
"""Beginnings of types that are not part of the conversation, or pieces of what follows as a whole."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions in the files."""
    if files and all(file.name == _KEPT for file in files):
        reading.name = "copilot"
    for file in files:
        yield from imported_sessions(file, "copilot", partial(_Session, file, reading.notes), reading)


class _Session:
    def __init__(self, file: Path, notes: ImportNotes) -> None:
        self.id: str | None = None
        self._talk = Transcript()
        self._file, self._notes = file, notes
        self._ended = False
        self._agents: dict[str, Transcript] = {}
        """Subagents by the id of the call that started them."""
        self._names: dict[str, str] = {}
        self._prompts: dict[str, str] = {}
        """Prompts that calls have given to subagents that were not started yet."""
        self._thought = ""
        self._written: int | None = None
        self._totals = Tokens()

    def ends_before(self, record: dict[str, Any]) -> bool:
        return self._ended and record.get("type") in _BEGIN

    def finished(self) -> Transcript:
        for id, agent in self._agents.items():
            self._talk.subagent(self._names.get(id, id), agent)
        self._agents = {}
        if self._totals != Tokens():
            self._talk.tokens = self._totals
        elif self._talk.tokens == Tokens() and self._written is not None:
            self._talk.tokens = Tokens(None, self._written)
        return self._talk

    def read(self, number: int, value: dict[str, Any] | None) -> None:
        if value is None:
            self._talk.breaks_off(self._file, number, self._notes)
            return
        data = value.get("data")
        data = data if isinstance(data, dict) else value
        kind, at = value.get("type"), recorded_time(value.get("timestamp"), self._notes)
        self.id = record_key(value.get("session_id") or value.get("sessionId")) or self.id
        self._ended = self._ended or kind == "result"
        self._talk.at(at)
        if kind == "session.start":
            self._start(data)
        elif kind == "session.shutdown":
            self._count(data.get("modelMetrics"))
        elif kind == "subagent.started":
            for id in (data.get("toolCallId"), value.get("agentId")):  # lines may name either
                self._names[str(id)] = str(data.get("agentDisplayName") or data.get("agentName") or id)
        else:
            self._line(self._speaker(value, data, at), kind, value, data, at)

    def _start(self, data: dict[str, Any]) -> None:
        self.id = record_key(data.get("sessionId")) or self.id
        model = data.get("selectedModel")
        if isinstance(model, str):
            self._talk.extra["model"] = model

    def _count(self, metrics: Any) -> None:
        """The tokens of all models since the session was started or resumed."""
        for metric in metrics.values() if isinstance(metrics, dict) else ():
            usage = metric.get("usage") if isinstance(metric, dict) else None
            if isinstance(usage, dict):
                counts = [token_count(usage.get(key), self._notes) for key in _COUNTS]
                self._totals += Tokens(*counts)

    def _speaker(self, value: dict[str, Any], data: dict[str, Any], at: Any) -> Transcript:
        """The conversation that a line is part of. The prompt of a subagent does not name it in every release."""
        id = value.get("agentId") or data.get("parentToolCallId")
        if id is None and value.get("type") == "user.message":
            content = data.get("content")
            id = next(
                (name for name, prompt in self._prompts.items() if name in self._names and prompt == content), None
            )
        if id is None:
            return self._talk
        self._prompts.pop(str(id), None)
        talk = self._agents.setdefault(str(id), Transcript())
        talk.at(at)
        return talk

    def _line(self, talk: Transcript, kind: Any, value: dict[str, Any], data: dict[str, Any], at: Any) -> None:
        id = record_key(data.get("toolCallId") or data.get("tool_call_id") or data.get("id"))
        match kind:
            case "assistant.message":
                self._assistant(talk, data, at)
            case "assistant.reasoning":
                self._thought = str(data.get("content") or "")
            case "message" | "user.message" | "system.message":
                role = data.get("role") or str(kind).partition(".")[0]
                text = texts_of(data.get("content"), self._notes)
                if role == "user":
                    talk.user(text)
                elif role == "system":
                    talk.system(text)
                elif text:
                    talk.add_text(text, at)
            case "tool_use" | "tool.execution_start":
                name = data.get("toolName") or data.get("tool_name") or data.get("name") or "tool"
                arguments = arguments_of(data.get("arguments") or data.get("input"))
                self._may_start(id, arguments)
                if id is None or not talk.knows(id):
                    talk.call(str(name), id, arguments, at)
            case "tool_result" | "tool.execution_complete":
                self._outcome(talk, id, data, at)
            case "usage" | "assistant.usage":
                talk.tokens += _tokens(data, self._notes)
            case "result":
                _result(talk, value, self._notes)
            case "session.error" | "error":
                talk.error = TraceError("agent_error", str(data.get("message") or "error"))
            case "abort":
                talk.error = TraceError("aborted", str(data.get("reason") or "the agent was stopped"))
            case _ if not str(kind).startswith(_BOOKKEEPING):
                self._notes.lose(f"lines of type {kind!r}")

    def _assistant(self, talk: Transcript, data: dict[str, Any], at: Any) -> None:
        model, thought = data.get("model"), data.get("reasoningText") or self._thought
        turn = talk.turn(None, at, model if isinstance(model, str) else None)
        self._thought = ""
        if thought:
            turn.think(str(thought))
        if text := texts_of(data.get("content"), self._notes):
            turn.add_text(text)
        for request in dictionaries(data.get("toolRequests")):
            id, arguments = record_key(request.get("toolCallId")), arguments_of(request.get("arguments"))
            self._may_start(id, arguments)
            talk.calls_in(turn, str(request.get("name", "tool")), id, arguments, at)
        if not turn.empty:
            talk.error = None
        written = token_count(data.get("outputTokens"), self._notes)
        if written is not None:
            self._written = (self._written or 0) + written

    def _may_start(self, id: str | None, arguments: dict[str, Any]) -> None:
        if id is not None and isinstance(arguments.get("prompt"), str):
            self._prompts[id] = arguments["prompt"]

    def _outcome(self, talk: Transcript, id: str | None, data: dict[str, Any], at: Any) -> None:
        result = data.get("result", data.get("output", data.get("content")))
        error = data.get("error")
        if result is None and error is not None:
            result = error.get("message") if isinstance(error, dict) else error
        if isinstance(result, dict) and isinstance(result.get("content"), str | list):
            result = result["content"]
        code = result.get("exitCode") if isinstance(result, dict) else None
        failed = data.get("success") is False or bool(data.get("is_error")) or (type(code) is int and code > 0)
        talk.result(id, result if isinstance(result, dict) else texts_of(result, self._notes), at=at, failed=failed)


def _result(talk: Transcript, value: dict[str, Any], notes: ImportNotes) -> None:
    usage = value.get("usage")
    if isinstance(usage, dict) and (tokens := _tokens(usage, notes)) != Tokens():
        talk.tokens = tokens
    code = value.get("exitCode", value.get("exit_code"))
    if value.get("status") == "error" or (isinstance(code, int) and code != 0):
        message = value.get("error") or value.get("message") or f"the agent ended with code {code}"
        talk.error = TraceError("agent_error", str(message))


def _tokens(usage: dict[str, Any], notes: ImportNotes) -> Tokens:
    def number(*keys: str) -> int | None:
        return next((token_count(usage[key], notes) for key in keys if usage.get(key) is not None), None)

    return Tokens(number("input_tokens", "inputTokens"), number("output_tokens", "outputTokens"))


class Copilot(TraceImporter):
    """The output of `copilot --output-format json`, and the sessions that Copilot keeps."""

    read: ClassVar[Read] = staticmethod(read)
