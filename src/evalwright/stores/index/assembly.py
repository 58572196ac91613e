"""The index of a run that is assembled from cells of indexed runs: their rows with other places."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalwright.model.plan import Plan
from evalwright.stores.index.codes import Profile
from evalwright.stores.index.file import create_index, remove_index
from evalwright.stores.index.rows import moved_row
from evalwright.stores.index.sources import RECORDS, FolderSource
from evalwright.stores.index.table import RowTable

__all__ = ["JoinedIndex"]

_log = logging.getLogger(__name__)
_BATCH = 1000
"""Rows that are written together."""


class JoinedIndex:
    """Written beside the records, cell by cell. A failure ends the index, but not the run."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._rows: list[tuple[Any, ...]] = []
        self._cells = self._trace_at = self._results_at = self._verdict_at = 0
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = create_index(folder, plan)
            self._connection.execute("BEGIN IMMEDIATE")
            self._table = RowTable(self._connection)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def add(
        self,
        row: Sequence[Any],
        profile: Profile,
        numbers: bytes | None,
        trace: int,
        results: Sequence[int],
        verdict: int,
    ) -> None:
        """Add the row of a cell whose records have these lengths and follow those of the cell before."""
        if self._connection is None:
            return
        try:
            number, _ = self._table.profile(profile)
            trace_place, verdict_place = (self._trace_at, trace), (self._verdict_at if verdict else 0, verdict)
            self._rows.append(moved_row(row, number, numbers, trace_place, (self._results_at, results), verdict_place))
            if len(self._rows) >= _BATCH:
                self._write()
        except sqlite3.Error as error:
            self._give_up(error)
        self._trace_at += trace
        self._results_at += sum(results)
        self._verdict_at += verdict

    def _write(self) -> None:
        self._table.insert(self._rows)
        self._cells += len(self._rows)
        self._rows.clear()

    def finish(self) -> None:
        """Commit, once the records are completely written."""
        if self._connection is None:
            return
        try:
            self._write()
            self._table.name_cells()
            with FolderSource(self._folder).moment() as moment:
                self._table.note({name: moment.covered(name, moment.ends[name]) for name in RECORDS}, self._cells, ())
            self._connection.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)
        self.close()

    def close(self) -> None:
        """Close the file, also after a failure."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _give_up(self, error: Exception) -> None:
        _log.warning("%s: no index is made of the merged run: %s", self._folder, error)
        self.close()
        with suppress(OSError):
            remove_index(self._folder)
