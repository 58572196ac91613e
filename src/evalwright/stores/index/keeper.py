"""The index of a run that is being written."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from evalwright.model.plan import Plan
from evalwright.stores.index.file import create_index, lock_file, locked, meta_of, remove_index, usable_index
from evalwright.stores.index.follow import Follower
from evalwright.stores.index.numbering import PlanNumbering
from evalwright.stores.index.sources import FolderSource, RecordsReplaced
from evalwright.stores.index.written_cells import Stretch

__all__ = ["IndexKeeper"]

_log = logging.getLogger(__name__)
_LOG = 1000
"""Pages of the log of changes from which it is moved into the file: what SQLite does by itself."""


class IndexKeeper:
    """Keeps the index of a run up to date while the run is written. A failure ends the index, never the run."""

    def __init__(self, folder: Path, plan: Plan | None) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._follower: Follower | None = None
        self._source: FolderSource | None = None
        try:
            self._open(plan)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def _open(self, plan: Plan | None) -> None:
        descriptor = lock_file(self._folder)
        if not locked(descriptor):  # a reader is building it; that reader, or the next one, continues
            os.close(descriptor)
            return
        self._descriptor = descriptor
        source = self._source = FolderSource(self._folder)
        self._connection = usable_index(self._folder, source, plan) or create_index(self._folder, plan)
        self._follower = Follower(self._connection, source, None if plan is None else PlanNumbering(plan))

    def follow(self, *, last: bool = False, written: Sequence[Stretch] = (), may_wait: bool = True) -> None:
        """Read what was appended since the last time, except `written` stretches; at the `last` time, the index is
        completed. A long log of changes is moved into the file where that `may_wait` for the disk."""
        if self._follower is None or self._connection is None:
            return
        try:
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG if may_wait else 0}")
            self._follower.follow_or_note(trusted=True, last=last, written=written)
            if meta_of(self._connection, "odd"):
                self._follower = None
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def rejudge(self, notes: Iterable[BinaryIO]) -> bool:
        """Take over new judgements from their notes; False if the index must be rebuilt."""
        if self._connection is None or self._source is None:
            return False
        from evalwright.stores.index.cell_notes import rejudge

        try:
            return rejudge(self._connection, self._source, notes)
        except (OSError, sqlite3.Error, ValueError, LookupError, OverflowError, RecordsReplaced):
            return False  # it shows by itself that it is not of the new records

    def close(self) -> None:
        """Close the file, with its log of changes moved into it, and let other processes have it."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = self._follower = None
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _give_up(self, error: Exception) -> None:
        _log.warning("%s: no index is kept of this run: %s", self._folder, error)
        self.close()
        with suppress(OSError):
            remove_index(self._folder)
