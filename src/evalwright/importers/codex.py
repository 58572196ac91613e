"""Sessions of Codex: rollout files, with those of their subagents, and what `codex exec --json` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from evalwright.importers.agent_sessions import agent_sessions, imported_sessions
from evalwright.importers.codex_session import CODEX_LINES, CodexSession
from evalwright.importers.codex_threads import ThreadFiles
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript

__all__ = ["Codex"]


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions in the files."""
    threads = ThreadFiles(files)
    for file in threads.main:
        new = partial(CodexSession, file, reading.notes, partial(_agents, threads.of(file), reading))
        yield from imported_sessions(file, "codex", new, reading, CODEX_LINES)
    reading.lose_agents(threads.alone, with_sessions=bool(threads.main))


def _agents(files: list[tuple[str, Path]], reading: ImportFindings) -> Iterator[tuple[str, Transcript]]:
    for name, file in files:
        for session in agent_sessions(file, partial(CodexSession, file, reading.notes), reading, CODEX_LINES):
            talk = session.finished()
            if talk.silent:
                reading.note_empty()
            else:
                yield name, talk


class Codex(TraceImporter):
    """Rollout files of Codex, with those of their subagents, and what `codex exec --json` prints."""

    read: ClassVar[Read] = staticmethod(read)
