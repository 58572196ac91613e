"""The sessions in the output of a coding agent that may have been started several times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from evalwright.importers.imported_records import Imported, ImportFindings
from evalwright.importers.json_lines import OBJECTS, LineForm, records
from evalwright.importers.transcript import Transcript

__all__ = ["AgentSession", "agent_sessions", "imported_session", "imported_sessions"]


class AgentSession(Protocol):
    """One session while it is being read."""

    @property
    def id(self) -> str | None: ...

    def ends_before(self, record: Any) -> bool:
        """Whether this record belongs to another session, which begins with it."""

    def read(self, number: int, record: Any) -> None:
        """Take a record, or None for a last line that breaks off. Raises RecursionError for one that is too deep."""

    def finished(self) -> Transcript: ...


def imported_sessions(
    file: Path, format: str, new: Callable[[], AgentSession], reading: ImportFindings, form: LineForm[Any] = OBJECTS
) -> Iterator[Imported]:
    """The sessions with messages in a file of JSON Lines, each before the next is read."""
    is_first = False
    for session in agent_sessions(file, new, reading, form):
        talk = session.finished()
        if not talk.silent and not len(reading.mistakes):
            is_first = True
            yield imported_session(file, format, session.id, talk)
    if not is_first:
        reading.note_empty()


def agent_sessions(
    file: Path, new: Callable[[], AgentSession], reading: ImportFindings, form: LineForm[Any] = OBJECTS
) -> Iterator[AgentSession]:
    """The sessions in a file of JSON Lines, each as soon as its last line was read."""
    session = new()
    for number, record in records(file, reading.mistakes, form, may_be_cut=True):
        if record is not None and session.ends_before(record):
            yield session
            session = new()
        try:
            session.read(number, record)
        except RecursionError:
            reading.mistakes.add_depth(file, number)
    yield session


def imported_session(file: Path, format: str, id: str | None, talk: Transcript) -> Imported:
    origin = {"imported_from": {"file": file.name, "format": format}}
    return Imported(file, id, {"user_message": talk.user_message or ""}, talk.trace("recorded", origin))
