"""The index of a run: a table of its cells in `index.sqlite`, derived from the records.

Promise. An index answers what a scan of the records would have answered. Deleting the file, at any time, changes no
answer. A crash, a torn tail, records appended by an older program, a copied folder, a damaged file or one of another
version: all are found when the index is opened, which is then brought up to date or rebuilt.

Steps. For each file of records the index notes how far it was read, its last bytes there, and when it was changed. If
the file is shorter, has other bytes, or has another time at the same length, the index is rebuilt; if it is longer, the
rest is read. Rows of a database never get earlier numbers again, so the last row and the number of rows serve the same
purpose there.

Limits. A run with unreadable lines, or with records that contradict each other (two verdicts on one attempt, results
without their trace), has no index and is scanned. A change in the middle of a file that has grown since, or of a row,
is found only when a record is read and is not the one that was noted.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from evalwright.files.user_folder import user_folder
from evalwright.model.cell_index import DamagedIndex
from evalwright.model.plan import Plan
from evalwright.stores.index.connection import connected, sound
from evalwright.stores.index.file import INDEX, covered_by, create_index, lock_file, locked, meta_of, usable_index
from evalwright.stores.index.follow import Follower
from evalwright.stores.index.numbering import PlanNumbering
from evalwright.stores.index.reading import RunIndex
from evalwright.stores.index.schema import created
from evalwright.stores.index.sources import FolderSource, RecordsReplaced, Source
from evalwright.stores.local_files.judgements import COMMITTED

__all__ = ["index_at", "opened_index"]

_PATIENCE = 5.0
"""Seconds that a reader waits for another process that builds the index, before it scans instead."""
_WORTH_SAYING = 2.0
"""Seconds of work after which the user is told the reason for the wait."""


def opened_index(folder: Path, plan: Plan | None, *, keep: bool = True) -> RunIndex | None:
    """The index of a run folder, created or brought up to date; None if there can be none, or if another process is
    busy with it.

    It is kept in the folder; in the user's cache if the folder cannot be written, else in memory. Without `keep`, a new
    one is created in memory.
    """
    if (folder / COMMITTED).is_dir():
        return None  # a crash between two renames: the records are in two places
    kept = keep or (folder / INDEX).exists()
    return index_at([lambda: folder, lambda: _cache_of(folder)] if kept else [], FolderSource(folder), plan)


def index_at(places: Sequence[Callable[[], Path]], source: Source, plan: Plan | None) -> RunIndex | None:
    """The index of these records in the first folder that can be written, else in memory; closes the source."""
    attempts = [partial(_kept_index, place, source, plan) for place in places]
    for attempt in (*attempts, partial(_in_memory, source, plan)):
        try:
            if (index := attempt()) is not None:
                return index
            break
        except (_IndexBusy, RecordsReplaced):
            break
        except (OSError, sqlite3.Error):
            continue
    source.close()
    return None


def _in_memory(source: Source, plan: Plan | None) -> RunIndex | None:
    connection = connected(":memory:")
    created(connection)
    return _fresh(connection, source, plan)


class _IndexBusy(Exception):
    """Another process is building the index, which takes longer than is worth waiting for."""


def _cache_of(folder: Path) -> Path:
    """The folder for the index of a run folder that cannot be written."""
    status = folder.stat()
    return user_folder("indexes", f"{status.st_dev}-{status.st_ino}")


def _kept_index(find: Callable[[], Path], source: Source, plan: Plan | None) -> RunIndex | None:
    """The index in a folder. Raises OSError and sqlite3.Error if it cannot be there."""
    place = find()
    descriptor = lock_file(place)
    try:
        # The writer of a run holds its index for the whole run: waiting for it would lead nowhere.
        if source.is_written() and not locked(descriptor) and (index := _as_kept(place, source, plan)) is not None:
            return index
        if not locked(descriptor, _PATIENCE):
            if (index := _as_kept(place, source, plan)) is None:
                raise _IndexBusy
            return index
        if (connection := usable_index(place, source, plan)) is not None:
            with suppress(DamagedIndex):  # it is removed then
                return _fresh(connection, source, plan)
        return _fresh(create_index(place, plan), source, plan)
    finally:
        os.close(descriptor)


def _fresh(connection: sqlite3.Connection, source: Source, plan: Plan | None) -> RunIndex | None:
    """The index on a connection, brought up to the present records."""
    try:
        if meta_of(connection, "odd"):
            connection.close()
            return None
        with sound(connection), _reporting_if_long(source.location):
            follower = Follower(connection, source, None if plan is None else PlanNumbering(plan))
            follower.follow_or_note()
        if meta_of(connection, "odd") or not source.whole(follower.covered):
            connection.close()
            return None
        connection.execute("BEGIN")
        return RunIndex(connection, source)
    except BaseException:  # Ctrl-C too: building the index of a long run takes seconds
        connection.close()
        raise


def _as_kept(place: Path, source: Source, plan: Plan | None) -> RunIndex | None:
    """The index that another process keeps up to date, as far as it has got, if that is close to the end."""
    connection = usable_index(place, source, plan)
    if connection is None:
        return None
    connection.execute("BEGIN")
    if meta_of(connection, "odd") or not source.near(covered_by(connection)):
        connection.close()
        return None
    return RunIndex(connection, source)


@contextmanager
def _reporting_if_long(location: str) -> Iterator[None]:
    start = time.monotonic()
    yield
    seconds = time.monotonic() - start
    if seconds > _WORTH_SAYING:
        print(f"made the index of {location} in {seconds:.1f} s", file=sys.stderr)
