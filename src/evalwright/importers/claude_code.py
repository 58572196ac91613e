"""Sessions of Claude Code: the JSON Lines that it keeps, and what `claude -p --output-format stream-json` prints.

The format is internal to the tool: lines of other types are counted and left out. Lines with one `message.id` are one
turn, as the tool writes a line for each block and, in a stream, the same block again; usage counts once for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.importers.blocks import assistant_blocks, dictionaries, texts_of, tokens_of, user_blocks
from evalwright.importers.recordings import moment
from evalwright.importers.sources import ImportNotes, Mistakes, record_key, records, stem
from evalwright.importers.spool import RecordSpool
from evalwright.importers.traces import Imported, ImportFindings, Read, TraceImporter
from evalwright.importers.transcript import AgentTurn, Tokens, Transcript
from evalwright.model.trace import TraceError

__all__ = ["ClaudeCode"]

_LEFT_OUT = {
    "summary", "file-history-snapshot", "queue-operation", "progress", "stream_event", "system", "attachment",
    "last-prompt", "custom-title", "agent-name", "permission-mode",
}  # fmt: skip
"""Lines that hold nothing of the conversation: bookkeeping, hooks, parts of what a later line has whole."""
_STOPPED = ("error_max_turns", "error_max_budget_usd")
_RESULT = "result"
_CUT = "the last line breaks off and was left out"


class _Line(msgspec.Struct):
    """A line of a session, set aside with the others of its session."""

    number: int
    value: dict[str, Any] | None
    agent: str | None = None
    """The subagent whose file it is in."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions in the files, one record each."""
    main = [file for file in files if not _of_subagent(file)]
    given = {file for file in files if _of_subagent(file)}
    beside = {agent for file in main for agent in _agents_of(file)}
    agents = sorted(given | beside)
    for file in main or agents:
        yield from _sessions(file, [agent for agent in agents if _belongs(agent, file)] if main else [], reading)


def _of_subagent(file: Path) -> bool:
    return file.parent.name == "subagents" and file.name.startswith("agent-")


def _agents_of(file: Path) -> list[Path]:
    return sorted((file.parent / stem(file) / "subagents").glob("agent-*.jsonl"))


def _belongs(agent: Path, file: Path) -> bool:
    return agent.parent.parent in (file.parent, file.parent / stem(file))


def _sessions(file: Path, agents: list[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions of one file, whose lines may be mixed, with the files of their subagents."""
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(_Line).decode
    with closing(RecordSpool()) as spool:
        current = stem(file)
        for number, value in records(file, reading.mistakes, may_be_cut=True):
            named = value and (value.get("sessionId") or value.get("session_id"))
            current = named if isinstance(named, str) and named else current
            spool.add(current, encode(_Line(number, value)))
        sessions = {key for key, _ in spool} if agents else set()
        for agent in agents:
            for number, value in records(agent, reading.mistakes, may_be_cut=True):
                if value is not None and value.get("sessionId", current) in (sessions or {current}):
                    name = str(value.get("agentId") or stem(agent).removeprefix("agent-"))
                    spool.add(value.get("sessionId", current), encode(_Line(number, value, name)))
        if len(reading.mistakes):
            return
        found = 0
        for key, lines in spool:
            session = _Session(file, reading.mistakes, reading.notes)
            for line in map(decode, lines):
                session.read(line)
            talk = session.finished()
            if talk.empty and talk.error is None:
                continue
            found += 1
            yield Imported(
                file, key, {"user_message": talk.user_message or ""}, talk.trace("recorded", session.origin())
            )  # fmt: skip
        if not found:
            reading.mistakes.add(file, "has no messages of a session of Claude Code")


@dataclass(slots=True)
class _Conversation:
    """One conversation of a session: the main one, or that of a subagent."""

    talk: Transcript = field(default_factory=Transcript)
    turns: dict[str, AgentTurn] = field(default_factory=dict)
    usage: dict[str, Tokens] = field(default_factory=dict)
    """The last usage of each message."""


class _Session:
    """The lines of one session, in their order."""

    def __init__(self, file: Path, mistakes: Mistakes, notes: ImportNotes) -> None:
        self._file, self._mistakes, self._notes = file, mistakes, notes
        self._lines: list[_Line] = []
        self._seen: set[str] = set()
        self._extra: dict[str, Any] = {}
        self._at: list[Any] = []

    def read(self, line: _Line) -> None:
        value = line.value
        if value is None:
            self._extra.setdefault("warnings", []).append(_CUT)
            self._notes.say(f"{self._file.name}:{line.number}: {_CUT}")
            return
        uuid = value.get("uuid")
        if isinstance(uuid, str):
            if uuid in self._seen:
                return
            self._seen.add(uuid)
        kind = value.get("type")
        if kind in ("user", "assistant", _RESULT):
            if not value.get("isMeta"):
                self._lines.append(line)
        elif kind == "system" and value.get("subtype") == "init":
            for name in ("model", "cwd", "tools"):
                if name in value:
                    self._extra[name] = value[name]
        elif str(kind) not in _LEFT_OUT:
            self._notes.lose(f"lines of type {kind!r}")
            self._at.append(moment(value.get("timestamp")))  # something happened then, whatever it was

    def origin(self) -> dict[str, Any]:
        return {"imported_from": {"file": self._file.name, "format": "claude-code"}, **self._extra}

    def finished(self) -> Transcript:
        abandoned = self._abandoned()
        if abandoned:
            self._notes.say(f"{len(abandoned)} abandoned lines were left out: the session was rewound")
        talks: dict[str | None, _Conversation] = {None: _Conversation()}
        error: TraceError | None = None
        outcome: dict[str, Any] | None = None
        for line in self._lines:
            value = line.value or {}
            if record_key(value.get("uuid")) in abandoned:
                continue
            if value["type"] == _RESULT:
                outcome = value
                continue
            talk = talks.setdefault(_agent_of(line), _Conversation())
            at = moment(value.get("timestamp"))
            talk.talk.at(at)
            if value.get("isApiErrorMessage"):
                error = TraceError("api_error", texts_of(_message(value).get("content"), self._notes))
                continue
            error = None if value["type"] == "assistant" else error
            self._say(talk, value, line.number, at)
        main = talks.pop(None)
        for at in self._at:
            main.talk.at(at)
        _count(main)
        main.talk.error = error
        for name, other in talks.items():
            _count(other)
            main.talk.subagent(str(name), other.talk)
        if outcome is not None:
            self._end(main.talk, outcome)
        return main.talk

    def _say(self, talk: _Conversation, value: dict[str, Any], number: int, at: Any) -> None:
        message = _message(value)

        def complain(what: str) -> None:
            self._mistakes.add(self._file, what, number, "message.content")

        def doubt(what: str) -> None:
            # a session that was compacted, or copied in part, begins behind its calls
            self._extra.setdefault("warnings", []).append(f"line {number}: {what}")

        if value["type"] == "user":
            user_blocks(talk.talk, message.get("content"), self._notes, complain, at, doubt=doubt)
            return
        id = message.get("id")
        key = id if isinstance(id, str) else f"line {number}"
        if key not in talk.turns:
            model = message.get("model")
            talk.turns[key] = talk.talk.turn(key, at, model if isinstance(model, str) else None)
        talk.turns[key].finished_at = at
        if message.get("usage") is not None:
            talk.usage[key] = tokens_of(message["usage"])
            if isinstance(value.get("costUSD"), int | float):
                talk.usage[key].cost = value["costUSD"]
        assistant_blocks(talk.talk, talk.turns[key], message.get("content"), self._notes, at)

    def _end(self, talk: Transcript, outcome: dict[str, Any]) -> None:
        """What the last line of a stream says of the whole."""
        if isinstance(outcome.get("result"), str):
            talk.answer = outcome["result"]
        if isinstance(outcome.get("usage"), dict):
            talk.tokens = tokens_of(outcome["usage"])
        if isinstance(outcome.get("total_cost_usd"), int | float):
            talk.tokens.cost = outcome["total_cost_usd"]
        if isinstance(outcome.get("duration_ms"), int | float):
            talk.latency_ms = round(outcome["duration_ms"])
        for name in ("num_turns", "permission_denials"):
            if name in outcome:
                talk.extra[name] = outcome[name]
        subtype = outcome.get("subtype")
        if subtype in _STOPPED:
            talk.extra["stopped"] = str(subtype).removeprefix("error_")
        elif outcome.get("is_error") or subtype == "error_during_execution":
            errors = outcome.get("errors")
            said = "; ".join(map(str, errors)) if isinstance(errors, list) and errors else outcome.get("result")
            talk.error = TraceError("agent_error", str(said or subtype or "the agent ended with an error"))

    def _abandoned(self) -> set[Any]:
        """The lines below a request that was taken back: a later one has the same parent.

        Forks of parallel calls and their results are no branches, so only lines with text count as requests.
        """
        parents: dict[Any, Any] = {}
        asked: dict[str, Any] = {}
        roots: set[Any] = set()
        for line in self._lines:
            value = line.value or {}
            if _agent_of(line) is not None:
                continue
            uuid, parent = record_key(value.get("uuid")), record_key(value.get("parentUuid"))
            parents[uuid] = parent
            if value["type"] == "user" and isinstance(parent, str) and _has_text(_message(value).get("content")):
                if parent in asked:
                    roots.add(asked[parent])
                asked[parent] = uuid
        found = set(roots)
        for uuid, parent in parents.items():  # a line comes after its parent
            if parent in found:
                found.add(uuid)
        return found


def _agent_of(line: _Line) -> str | None:
    value = line.value or {}
    if line.agent is not None:
        return line.agent
    if value.get("isSidechain") is True or value.get("parent_tool_use_id") is not None:
        return str(value.get("agentId") or value.get("parent_tool_use_id") or "subagent")
    return None


def _message(value: dict[str, Any]) -> dict[str, Any]:
    message = value.get("message")
    return message if isinstance(message, dict) else {"content": message}


def _has_text(content: Any) -> bool:
    if isinstance(content, str):
        return True
    kinds = [block.get("type") for block in dictionaries(content)]
    return "text" in kinds and "tool_result" not in kinds


def _count(talk: _Conversation) -> None:
    for tokens in talk.usage.values():
        talk.talk.tokens += tokens


class ClaudeCode(TraceImporter):
    """Sessions of Claude Code, and what `claude -p --output-format stream-json` prints."""

    read: ClassVar[Read] = staticmethod(read)
