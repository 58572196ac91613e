"""Sessions of Claude Code: the JSON Lines that it keeps, and what `claude -p --output-format stream-json` prints.

The format is internal to the tool: lines of other types are counted and left out. Lines with one `message.id` are one
turn, as the tool writes a line for each block and, in a stream, the same block again; usage counts once for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.importers.blocks import Content, assistant_blocks, blocks_in, tokens_of, user_blocks
from evalwright.importers.json_lines import LineForm, records
from evalwright.importers.recordings import described, in_utc, moment, too_deep
from evalwright.importers.sources import ImportNotes, Mistakes, record_key, stem
from evalwright.importers.spool import RecordSpool
from evalwright.importers.token_counts import recorded_dollars
from evalwright.importers.traces import Imported, ImportFindings, Read, StartOver, TraceImporter
from evalwright.importers.transcript import AgentTurn, Transcript
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


class _Named(msgspec.Struct, gc=False):
    """The session of a line."""

    sessionId: Any = None
    session_id: Any = None


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: Content = None
    usage: Any = None


class _Line(_Named, gc=False):
    """What is read of a line."""

    type: Any = None
    subtype: Any = None
    uuid: str | None = None
    parentUuid: str | None = None
    timestamp: datetime | None = None
    message: _Message | None = None
    isMeta: Any = None
    isSidechain: Any = None
    agentId: Any = None
    parent_tool_use_id: Any = None
    isApiErrorMessage: Any = None
    costUSD: Any = None
    model: Any = msgspec.UNSET
    cwd: Any = msgspec.UNSET
    tools: Any = msgspec.UNSET
    result: Any = None
    usage: Any = None
    total_cost_usd: Any = None
    duration_ms: Any = None
    num_turns: Any = msgspec.UNSET
    permission_denials: Any = msgspec.UNSET
    is_error: Any = None
    errors: Any = None


def _of_any_object(value: dict[str, Any]) -> _Line:
    """A line whose parts have other types than the tool gives them."""
    line = _Line(**{name: value[name] for name in _Line.__struct_fields__ if name in value})
    line.timestamp = moment(line.timestamp)
    line.uuid, line.parentUuid = record_key(line.uuid), record_key(line.parentUuid)
    said = value.get("message")
    said = said if isinstance(said, dict) else {"content": said}
    id, model = said.get("id"), said.get("model")
    line.message = _Message(
        id if isinstance(id, str) else None,
        model if isinstance(model, str) else None,
        blocks_in(said.get("content")),
        said.get("usage"),
    )
    return line


_LINES = LineForm(msgspec.json.Decoder(_Line).decode, _of_any_object)
_NAMES = LineForm(msgspec.json.Decoder(_Named).decode, partial(msgspec.convert, type=_Named))
_Placed = tuple[str, int, _Line | None]
"""The session of a line, its number, and what it has; None for one that breaks off."""


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
    """The sessions of one file, with the files of their subagents."""
    found = 0
    for key, session in _read_sessions(file, agents, reading):
        talk = session.finished()
        if talk.empty and talk.error is None:
            continue
        found += 1
        yield Imported(
            file, key, {"user_message": talk.user_message or ""}, talk.trace("recorded", session.origin())
        )  # fmt: skip
    if not found and not len(reading.mistakes):
        reading.mistakes.add(file, "has no messages of a session of Claude Code")


def _read_sessions(file: Path, agents: list[Path], reading: ImportFindings) -> Iterator[tuple[str, _Session]]:
    """The sessions of a file. Where their lines are mixed, or subagents have lines for several, lines are set aside."""
    if reading.may_start_over and not agents:
        yield from _one_by_one(file, reading)
        return
    names, mixed = _session_names(file)
    lines = _placed_lines(file, agents, names, reading)
    for key, its in _set_aside(lines) if mixed or (agents and len(names) > 1) else groupby(lines, itemgetter(0)):
        session = _Session(file, reading.mistakes, reading.notes)
        for _, number, line in its:
            session.read(number, line)
        yield key, session


def _one_by_one(file: Path, reading: ImportFindings) -> Iterator[tuple[str, _Session]]:
    """The sessions of a file, each let go before the next. Raises StartOver where one goes on behind another."""
    current, session = stem(file), _Session(file, reading.mistakes, reading.notes)
    ended = set()
    for number, line in records(file, reading.mistakes, _LINES, may_be_cut=True):
        name = line and (line.sessionId or line.session_id)
        if name and name != current and isinstance(name, str):
            yield current, session
            ended.add(current)
            if name in ended:
                raise StartOver
            current, session = name, _Session(file, reading.mistakes, reading.notes)
        session.read(number, line)
    yield current, session


def _session_names(file: Path) -> tuple[list[str], bool]:
    """The sessions of a file, and whether their lines are mixed."""
    names: dict[str, None] = {}
    current, mixed = stem(file), False
    for _, line in records(file, Mistakes(), _NAMES):
        name = line.sessionId or line.session_id
        if name and name != current and isinstance(name, str):
            current = name
            mixed = mixed or name in names
            names[name] = None
    return [*names] or [current], mixed


def _placed_lines(file: Path, agents: list[Path], names: Collection[str], reading: ImportFindings) -> Iterator[_Placed]:
    current = stem(file)
    for number, line in records(file, reading.mistakes, _LINES, may_be_cut=True):
        if line is not None:
            name = line.sessionId or line.session_id
            if name and isinstance(name, str):
                current = name
        yield current, number, line
    for agent in agents:
        for number, line in records(agent, reading.mistakes, _LINES, may_be_cut=True):
            if line is not None and (line.sessionId or current) in names:
                line.isSidechain, line.agentId = True, str(line.agentId or stem(agent).removeprefix("agent-"))
                yield line.sessionId or current, number, line


def _set_aside(lines: Iterator[_Placed]) -> Iterator[tuple[str, Iterator[_Placed]]]:
    """The lines of each session, in the order of the sessions; they are kept on disk."""
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(_Placed).decode
    with closing(RecordSpool()) as spool:
        for line in lines:
            spool.add(line[0], encode(line))
        for key, its in spool:
            yield key, map(decode, its)


class _Conversation:
    """One conversation of a session: the main one, or that of a subagent."""

    def __init__(self) -> None:
        self.talk = Transcript()
        self.turns: dict[str, AgentTurn] = {}
        self.usage: dict[str, Any] = {}
        """The last usage of each message."""
        self.costs: dict[str, float] = {}

    def counted(self, notes: ImportNotes) -> Transcript:
        """The conversation with what all of its calls used."""
        self.talk.tokens = tokens_of(notes, *self.usage.values())
        if self.costs:
            self.talk.tokens.cost = sum(self.costs.values())
        return self.talk


class _Session:
    """The lines of one session, in their order."""

    def __init__(self, file: Path, mistakes: Mistakes, notes: ImportNotes) -> None:
        self._file, self._mistakes, self._notes = file, mistakes, notes
        self._lines: list[tuple[int, _Line]] = []
        self._seen: set[str] = set()
        self._parents: set[str] = set()
        """Lines that a line of a user follows."""
        self._forks = False
        """Whether two of them follow one line: the session may have been rewound there."""
        self._extra: dict[str, Any] = {}
        self._at: list[datetime | None] = []
        self._number = 0

    def read(self, number: int, line: _Line | None) -> None:
        if line is None:
            self._extra.setdefault("warnings", []).append(_CUT)
            self._notes.say(f"{self._file.name}:{number}: {_CUT}")
            return
        uuid, kind = line.uuid, line.type
        if uuid is not None:
            if uuid in self._seen:
                return
            self._seen.add(uuid)
        if kind == "user" or kind == "assistant" or kind == _RESULT:
            if not line.isMeta:
                self._lines.append((number, line))
                if kind == "user" and (parent := line.parentUuid) is not None:
                    self._forks = self._forks or parent in self._parents
                    self._parents.add(parent)
        elif kind == "system" and line.subtype == "init":
            self._keep(self._extra, line, number, ("model", "cwd", "tools"))
        elif str(kind) not in _LEFT_OUT:
            self._notes.lose(f"lines of type {kind!r}")
            self._at.append(line.timestamp and in_utc(line.timestamp))  # something happened then, whatever it was

    def _keep(self, extra: dict[str, Any], line: _Line, number: int, names: Sequence[str]) -> None:
        for name in names:
            value = getattr(line, name)
            if value is not msgspec.UNSET:
                extra[name] = value
                if too_deep(value):
                    self._mistakes.add_depth(self._file, number)

    def origin(self) -> dict[str, Any]:
        return {"imported_from": {"file": self._file.name, "format": "claude-code"}, **self._extra}

    def finished(self) -> Transcript:
        main, others, error, outcome = self._conversations(self._abandoned() if self._forks else set())
        for at in self._at:
            main.talk.at(at)
        talk = main.counted(self._notes)
        talk.error = error
        for name, other in others.items():
            talk.subagent(name, other.counted(self._notes))
        if outcome is not None:
            self._end(talk, *outcome)
        return talk

    def _conversations(
        self, abandoned: set[Any]
    ) -> tuple[_Conversation, dict[str, _Conversation], TraceError | None, tuple[int, _Line] | None]:
        main = _Conversation()
        others: dict[str, _Conversation] = {}
        error: TraceError | None = None
        outcome: tuple[int, _Line] | None = None
        complain, doubt = self._complain, self._doubt
        for number, line in self._lines:
            if abandoned and line.uuid in abandoned:
                continue
            if line.type == _RESULT:
                outcome = number, line
                continue
            talk = main
            if line.isSidechain is True or line.parent_tool_use_id is not None:
                agent = _agent_of(line) or ""
                talk = others[agent] = others.get(agent) or _Conversation()
            at = line.timestamp
            if at is not None:
                at = at if at.tzinfo is UTC else in_utc(at)
                talk.talk.at(at)
            message = line.message
            if message is None:
                self._notes.lose(f"lines of type {line.type!r} without a message")
                message = _NOTHING
            if line.isApiErrorMessage:
                error = TraceError("api_error", "\n".join(_texts(message.content)))
                continue
            try:
                if line.type == "user":
                    self._number = number
                    user_blocks(talk.talk, message.content, self._notes, complain, at, doubt)
                else:
                    error = None
                    self._said(talk, message, line, number, at)
            except RecursionError:
                self._mistakes.add_depth(self._file, number)
        return main, others, error, outcome

    def _said(self, talk: _Conversation, message: _Message, line: _Line, number: int, at: datetime | None) -> None:
        key = message.id or f"line {number}"
        turn = talk.turns.get(key)
        if turn is None:
            turn = talk.turns[key] = talk.talk.turn(key, at, message.model)
        turn.finished_at = at
        if message.usage is not None:
            talk.usage[key] = message.usage
            if line.costUSD is not None and (cost := recorded_dollars(line.costUSD, self._notes)) is not None:
                talk.costs[key] = cost
        content = message.content
        if content is not None and not isinstance(content, str | list):
            self._number = number
            self._complain(f"expected text or blocks, found {described(content)}")
        assistant_blocks(talk.talk, turn, content, self._notes, at)

    def _complain(self, what: str) -> None:
        self._mistakes.add(self._file, what, self._number, "message.content")

    def _doubt(self, what: str) -> None:
        # a session that was compacted, or copied in part, begins behind its calls
        self._extra.setdefault("warnings", []).append(f"line {self._number}: {what}")

    def _end(self, talk: Transcript, number: int, outcome: _Line) -> None:
        """What the last line of a stream says of the whole."""
        if isinstance(outcome.result, str):
            talk.answer = outcome.result
        if isinstance(outcome.usage, dict):
            talk.tokens = tokens_of(self._notes, outcome.usage)
        if (cost := recorded_dollars(outcome.total_cost_usd, self._notes)) is not None:
            talk.tokens.cost = cost
        if isinstance(outcome.duration_ms, int | float):
            talk.latency_ms = round(outcome.duration_ms)
        self._keep(talk.extra, outcome, number, ("num_turns", "permission_denials"))
        subtype = outcome.subtype
        if subtype in _STOPPED:
            talk.extra["stopped"] = str(subtype).removeprefix("error_")
        elif outcome.is_error or subtype == "error_during_execution":
            errors = outcome.errors
            said = "; ".join(map(str, errors)) if isinstance(errors, list) and errors else outcome.result
            talk.error = TraceError("agent_error", str(said or subtype or "the agent ended with an error"))

    def _abandoned(self) -> set[str | None]:
        """The lines below a request that was taken back: a later one has the same parent.

        Forks of parallel calls and their results are no branches, so only lines with text count as requests.
        """
        asked: dict[str, str | None] = {}
        found: set[str | None] = set()
        for _, line in self._lines:
            parent = line.parentUuid
            if parent is not None and line.type == "user" and _is_request(line):
                if parent in asked:
                    found.add(asked[parent])
                asked[parent] = line.uuid
        if not found:
            return found
        for _, line in self._lines:  # a line comes after its parent
            if line.parentUuid in found and _agent_of(line) is None:
                found.add(line.uuid)
        self._notes.say(f"{len(found)} abandoned lines were left out: the session was rewound")
        return found


_NOTHING = _Message()


def _agent_of(line: _Line) -> str | None:
    if line.isSidechain is True or line.parent_tool_use_id is not None:
        return str(line.agentId or line.parent_tool_use_id or "subagent")
    return None


def _is_request(line: _Line) -> bool:
    """Whether the user wrote a text to the main agent."""
    content = line.message.content if line.message else None
    if isinstance(content, list):
        kinds = [block.type for block in content]
        return "text" in kinds and "tool_result" not in kinds and _agent_of(line) is None
    return isinstance(content, str) and _agent_of(line) is None


def _texts(content: Content) -> list[str]:
    if isinstance(content, list):
        return [block.text if block.text is not None else f"[{block.type}]" for block in content]
    return [content or ""]


class ClaudeCode(TraceImporter):
    """Sessions of Claude Code, and what `claude -p --output-format stream-json` prints."""

    read: ClassVar[Read] = staticmethod(read)
