"""The output of an import format while it reads: records, and findings about the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from evalwright.importers.sources import ImportNotes, Mistakes
from evalwright.model.trace import Trace

__all__ = ["ImportFindings", "Imported", "Read", "StartOver"]


class Imported(msgspec.Struct, gc=False):
    """One record: a recording of a case, or only a case if `trace` is None."""

    file: Path
    case_id: str | None
    """None for a format without ids: the file's name."""
    input: dict[str, Any]
    trace: Trace | None = None
    trial: int | None = None
    """Orders the recordings of a case, if the record has a trial number."""
    expected: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    group: str | None = None
    record: Any = None
    """The record to which the user's mapping is applied, in formats of records."""
    line: int | None = None
    key: str = ""
    """The place within a file that is one document."""
    evaluators: list[Any] | None = None
    """The evaluators that judge the case, if its format states them for each: names from the suite, those with some
    keys of their configuration changed, or evaluators of its own. Only for cases without recordings."""
    authored: bool = False
    """Whether it was written as a case: another one of that name is a recording of the same case, or a mistake."""


@dataclass(slots=True)
class ImportFindings:
    """The input of a format while it reads, and its findings about the suite."""

    mistakes: Mistakes = field(default_factory=Mistakes)
    notes: ImportNotes = field(default_factory=ImportNotes)
    name: str | None = None
    """The suite's name, if the format has one."""
    evaluators: list[dict[str, Any]] = field(default_factory=list)
    """The suite's evaluators, if the format has some that ours can stand in for."""
    warnings: list[str] = field(default_factory=list)
    """Reported whenever the suite is validated or run."""
    may_start_over: bool = False
    """Whether a format may raise `StartOver` instead of looking through the files before reading them."""
    variants: dict[str, str] = field(default_factory=dict)
    """Names of systems that are known only at the end of reading, by the names that recordings have until then."""

    def note_empty(self) -> None:
        """Note a file without anything to import; if all files are like that, the import is a mistake."""
        self.notes.lose("files without messages")

    def lose_agents(self, files: Iterable[Path], *, with_sessions: bool) -> None:
        """Files of subagents without the file of their session: a mistake, unless there are sessions of others."""
        for file in sorted(files):
            if with_sessions:
                self.notes.lose("files of subagents without the file of their session")
            else:
                self.mistakes.add(file, "is of a subagent: import the file of its session")

    def lose_check(self, kind: str) -> None:
        """Note a check of the original that has no equivalent here; every run of the suite reports it."""
        self.notes.lose(kind)
        warning = f"lost in the import: {kind}"
        if warning not in self.warnings:
            self.warnings.append(warning)


class StartOver(Exception):
    """Everything read so far is to be discarded and read again; it cannot be raised a second time."""


Read = Callable[[Sequence[Path], ImportFindings], Iterator[Imported]]
