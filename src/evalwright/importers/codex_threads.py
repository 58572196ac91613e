"""How the sessions of Codex belong together: what the first line of a rollout file says, and the files of subagents.

Each subagent has a rollout file of its own, beside that of the session that started it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from evalwright.importers.json_lines import LineForm, records
from evalwright.importers.record_values import moment
from evalwright.importers.sources import Mistakes

__all__ = ["CopiedHistory", "ThreadFiles", "ThreadMeta"]

_NAMES = "rollout-*.jsonl*"
_TIMED_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}(?=-7[0-9a-f]{3}-)")
"""The time of its creation, with which an id begins."""


class ThreadMeta(msgspec.Struct, gc=False):
    """The fields of `session_meta` that say where a session comes from; each may have any type."""

    id: Any = None
    forked_from_id: Any = None
    parent_thread_id: Any = None
    source: Any = None
    timestamp: Any = None

    @property
    def thread(self) -> str | None:
        return _text(self.id)

    @property
    def parent(self) -> str | None:
        """The session that started this one as its subagent."""
        return _text(self.parent_thread_id) or _text(self._spawn.get("parent_thread_id"))

    @property
    def name(self) -> str:
        """What a subagent is called."""
        spawn = self._spawn
        return _text(spawn.get("agent_nickname")) or _text(spawn.get("agent_role")) or self.thread or "agent"

    @property
    def continues(self) -> bool:
        """Whether the file may begin with a copy of another session."""
        return self.parent is not None or _text(self.forked_from_id) is not None

    @property
    def _spawn(self) -> dict[str, Any]:
        path = self.source
        for key in ("subagent", "thread_spawn"):
            path = path.get(key) if isinstance(path, dict) else None
        return path if isinstance(path, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


class CopiedHistory:
    """The part of a file that was copied from another session, and what had been used until then.

    Copied lines may have the time of the copy, so turns are recognised by their ids, which begin with the time of their
    creation; those of older versions, by the times of their lines.
    """

    def __init__(self, meta: ThreadMeta) -> None:
        self.here: bool = meta.continues
        """Whether the line that is being read was copied."""
        self._continues = meta.continues
        self._since = _TIMED_ID.match(meta.thread or "")
        self._at = moment(meta.timestamp)
        self._before: dict[str, Any] | None = None

    def turn_begins(self, turn_id: Any, at: datetime | None) -> None:
        """After copied lines, a turn begins: another one of the copied session, or the first of this one."""
        begun = _TIMED_ID.match(turn_id) if isinstance(turn_id, str) else None
        if begun and self._since:
            self.here = begun[0] < self._since[0]
        else:
            self.here = at is not None and self._at is not None and at < self._at

    def own(self, total: dict[str, Any], last: Any) -> dict[str, Any]:
        """The part of a running total that this session used; `last` is what its last call used."""
        if not self._continues:
            return total
        if self._before is None:
            self._before = _less(total, last) if isinstance(last, dict) else {}
        return _less(total, self._before)


def _less(total: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Counts without a part of them. A count that is smaller than the part was reset since, so it stays."""
    counts = dict(total)
    for key, count in total.items():
        less = part.get(key)
        if type(count) is int and type(less) is int and 0 <= less <= count:
            counts[key] = count - less
    return counts


class _FirstLine(msgspec.Struct, gc=False):
    type: Any = None
    payload: ThreadMeta | None = None


_FIRST = LineForm(msgspec.json.Decoder(_FirstLine).decode, partial(msgspec.convert, type=_FirstLine))


def _meta_of(file: Path) -> ThreadMeta | None:
    """What the first line of a file says about its session; None for a file of something else."""
    for _, line in records(file, Mistakes(), _FIRST, may_be_cut=True):
        return line.payload if line is not None and line.type == "session_meta" else None
    return None


class ThreadFiles:
    """The files of subagents among `files` and beside the sessions."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._started: dict[str, dict[Path, ThreadMeta]] = {}
        """By session, the files of the subagents that it started."""
        self._searched: set[Path] = set()
        self.alone: set[Path] = {file for file in files if self._is_agent(file)}
        """Subagents among those given that no session has claimed so far."""
        self.main: list[Path] = [file for file in files if file not in self.alone]
        """The files of sessions."""

    def of(self, file: Path) -> list[tuple[str, Path]]:
        """The name and file of each subagent of a file's session, with those that they started in turn."""
        meta = _meta_of(file)
        if meta is None:
            return []
        if file.match(_NAMES) and file.parent not in self._searched:
            self._searched.add(file.parent)
            for beside in file.parent.glob(_NAMES):
                self._is_agent(beside)
        files = [*self._below(meta.thread, {file})]
        self.alone.difference_update(path for _, path in files)
        return files

    def _below(self, thread: str | None, seen: set[Path]) -> Iterator[tuple[str, Path]]:
        for path, meta in sorted(self._started.get(thread or "", {}).items(), key=itemgetter(0)):
            if path not in seen:
                seen.add(path)
                yield meta.name, path
                yield from self._below(meta.thread, seen)

    def _is_agent(self, file: Path) -> bool:
        meta = _meta_of(file)
        if meta is None or meta.parent is None:
            return False
        self._started.setdefault(meta.parent, {})[file] = meta
        return True
