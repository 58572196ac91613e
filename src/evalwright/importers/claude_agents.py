"""The files of subagents of Claude Code, and the sessions to which they belong.

They are in `SESSION/subagents/`, also in folders below it, one for each workflow; older versions put them beside the
session, in `agent-ID.jsonl`. A folder `subagents` beside several sessions may have those of any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import islice
from pathlib import Path

from evalwright.importers.claude_lines import AGENT_LINES
from evalwright.importers.json_lines import records
from evalwright.importers.sources import Mistakes, stem

__all__ = ["AgentFiles"]

_NAMES = "agent-*.jsonl"
_FIRST_LINES = 20
"""Lines of bookkeeping may come before the first message."""


class AgentFiles:
    """The files of subagents among `files` and beside the sessions."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._beside: dict[Path, dict[str, list[Path]]] = {}
        """By folder, those in it by the session that they name."""
        self._in_shared: dict[Path, dict[str | None, list[Path]]] = {}
        self.main: list[Path] = [file for file in files if not self._is_agent(file)]
        """The files of sessions."""
        self.alone: set[Path] = set(files).difference(self.main)
        """Those given that no session has claimed so far."""

    def of(self, file: Path, names: Callable[[Path], Collection[str]]) -> list[Path]:
        """The files of the subagents of a session's file; `names` finds the sessions in it, if that is needed."""
        below = {*_below(file.parent / stem(file) / "subagents")}
        shared, beside = self._shared_files(file.parent / "subagents"), self._named_in(file.parent)
        if shared or beside:
            for name in names(file):
                below |= {*shared.get(name, ()), *beside.get(name, ())}
            below |= {*shared.get(None, ())}
        self.alone -= below
        return sorted(below)

    def _is_agent(self, file: Path) -> bool:
        if not file.name.startswith("agent-"):
            return False
        return _is_below_subagents(file) or any(file in paths for paths in self._named_in(file.parent).values())

    def _shared_files(self, folder: Path) -> dict[str | None, list[Path]]:
        """By the session that they name, if they name one, those in a folder and below."""
        if folder not in self._in_shared:
            sessions = self._in_shared[folder] = {}
            for file in _below(folder):
                sessions.setdefault(_session_of(file), []).append(file)
        return self._in_shared[folder]

    def _named_in(self, folder: Path) -> dict[str, list[Path]]:
        if folder not in self._beside:
            sessions = self._beside[folder] = {}
            for file in [] if folder.name == "subagents" else folder.glob(_NAMES):
                if (session := _session_of(file)) is not None:
                    sessions.setdefault(session, []).append(file)
        return self._beside[folder]


def _below(folder: Path) -> list[Path]:
    return [*folder.rglob(_NAMES)] if folder.is_dir() else []


def _is_below_subagents(file: Path) -> bool:
    return any(folder.name == "subagents" for folder in file.parents)


def _session_of(file: Path) -> str | None:
    """The session that the first message of a subagent names; None for a file of something else."""
    for _, line in islice(records(file, Mistakes(), AGENT_LINES, may_be_cut=True), _FIRST_LINES):
        if line is not None and line.isSidechain is not None:
            session = line.isSidechain is True and line.sessionId
            return session if session and isinstance(session, str) else None
    return None
