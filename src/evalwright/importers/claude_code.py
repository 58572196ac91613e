"""Sessions of Claude Code: the JSON Lines that it keeps, and what `claude -p --output-format stream-json` prints.

The format is internal to the tool: lines of other types are counted and left out. This module decides
which lines belong to one session.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.importers.claude_agents import AgentFiles
from evalwright.importers.claude_lines import SESSION_LINES, SESSION_NAMES, SessionLine
from evalwright.importers.claude_session import CUT, ClaudeSession
from evalwright.importers.imported_records import Imported, ImportFindings, Read, StartOver
from evalwright.importers.json_lines import records
from evalwright.importers.sources import Mistakes, stem
from evalwright.importers.spool import RecordSpool
from evalwright.importers.traces import TraceImporter

__all__ = ["ClaudeCode"]

_Placed = tuple[str, int, SessionLine | None]
"""The session of a line, its number, and its content; None for one that breaks off."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions in the files, one record each."""
    agents = AgentFiles(files)
    for file in agents.main:
        yield from _sessions(file, agents.of(file, _names_in), reading)
    reading.lose_agents(agents.alone, with_sessions=bool(agents.main))


def _sessions(file: Path, agents: list[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions of one file, with the files of their subagents."""
    is_session = False
    for key, session in _read_sessions(file, agents, reading):
        talk = session.finished()
        if talk.silent:
            continue
        is_session = True
        yield Imported(
            file, key, {"user_message": talk.user_message or ""}, talk.trace("recorded", session.origin())
        )  # fmt: skip
    if not is_session:
        reading.note_empty()


def _read_sessions(file: Path, agents: list[Path], reading: ImportFindings) -> Iterator[tuple[str, ClaudeSession]]:
    """The sessions of a file. Where their lines are mixed, or subagents have lines for several, lines are set aside."""
    if reading.may_start_over and not agents:
        yield from _one_by_one(file, reading)
        return
    names, mixed = _session_names(file)
    lines = _placed_lines(file, agents, names, reading)
    for key, its in _set_aside(lines) if mixed or (agents and len(names) > 1) else groupby(lines, itemgetter(0)):
        session = ClaudeSession(file, reading.mistakes, reading.notes)
        for _, number, line in its:
            session.read(number, line)
        yield key, session


def _one_by_one(file: Path, reading: ImportFindings) -> Iterator[tuple[str, ClaudeSession]]:
    """The sessions of a file, each released before the next. Raises StartOver if one continues after another began."""
    current, session = stem(file), ClaudeSession(file, reading.mistakes, reading.notes)
    ended = set()
    for number, line in records(file, reading.mistakes, SESSION_LINES, may_be_cut=True):
        name = line and (line.sessionId or line.session_id)
        if name and name != current and isinstance(name, str):
            yield current, session
            ended.add(current)
            if name in ended:
                raise StartOver
            current, session = name, ClaudeSession(file, reading.mistakes, reading.notes)
        session.read(number, line)
    yield current, session


def _names_in(file: Path) -> list[str]:
    return _session_names(file)[0]


def _session_names(file: Path) -> tuple[list[str], bool]:
    """The sessions of a file, and whether their lines are mixed."""
    names: dict[str, None] = {}
    current, mixed = stem(file), False
    for _, line in records(file, Mistakes(), SESSION_NAMES):
        name = line.sessionId or line.session_id
        if name and isinstance(name, str) and (name != current or not names):
            current = name
            mixed = mixed or name in names
            names[name] = None
    return [*names] or [current], mixed


def _placed_lines(file: Path, agents: list[Path], names: Collection[str], reading: ImportFindings) -> Iterator[_Placed]:
    current = stem(file)
    for number, line in records(file, reading.mistakes, SESSION_LINES, may_be_cut=True):
        if line is not None:
            name = line.sessionId or line.session_id
            if name and isinstance(name, str):
                current = name
        yield current, number, line
    only = next(iter(names)) if len(names) == 1 else None
    for agent in agents:
        for number, line in records(agent, reading.mistakes, SESSION_LINES, may_be_cut=True):
            if line is None:
                reading.notes.add_text(f"{agent.name}:{number}: {CUT}")
                continue
            name = line.sessionId if line.sessionId in names else only
            if name is None:
                reading.notes.lose("lines of subagents of other sessions")
                continue
            line.isSidechain, line.agentId = True, str(line.agentId or stem(agent).removeprefix("agent-"))
            yield name, number, line


def _set_aside(lines: Iterator[_Placed]) -> Iterator[tuple[str, Iterator[_Placed]]]:
    """The lines of each session, in the order of the sessions; they are kept on disk."""
    # not MessagePack, which lacks integers of more than 64 bits
    encode = msgspec.json.Encoder().encode
    decode: Callable[[bytes], _Placed] = msgspec.json.Decoder(_Placed).decode

    def placed(encoded: bytes) -> _Placed:
        try:
            return decode(encoded)
        except msgspec.ValidationError:  # of a line whose parts have other types, as when it was read
            key, number, line = msgspec.json.decode(encoded, type=tuple[str, int, dict[str, Any]])
            return key, number, SESSION_LINES.lenient(line)

    with closing(RecordSpool()) as spool:
        for line in lines:
            spool.add(line[0], encode(line))
        for key, its in spool:
            yield key, map(placed, its)


class ClaudeCode(TraceImporter):
    """Sessions of Claude Code, and what `claude -p --output-format stream-json` prints."""

    read: ClassVar[Read] = staticmethod(read)
