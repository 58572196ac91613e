"""The index of a run: a table of its cells in `index.sqlite`, derived from the records.

Promise. What is answered from an index is what a scan of the records would have said. Deleting the file, at any time,
changes no answer. A crash, a torn tail, records that an older program appended, a copied folder, a file that is damaged
or of another version: found when the index is opened, which is then brought up to date or made anew.

Steps. The index notes of each file of records how far it was read, its last bytes there and when it was changed. A
shorter file, other bytes, or another time at the same length: made anew. A longer one: the rest is read. Rows of a
database are never numbered as others were before, so there the last row and the number of rows say the same.

Limits. A run with lines that cannot be read, and one whose records contradict each other (two verdicts on one attempt,
results without their trace), has no index, and is scanned. A change in the middle of a file that is longer afterwards,
or of a row, is not found until a record is read that is not the one that was noted.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from evalwright.files.durable import PRIVATE
from evalwright.model.plan import Plan
from evalwright.stores.index.cells import Odd
from evalwright.stores.index.follow import Follower
from evalwright.stores.index.reading import RunIndex
from evalwright.stores.index.schema import VERSION, connected, created, is_ours
from evalwright.stores.index.sources import Covered, FolderSource, Replaced, Source
from evalwright.stores.local_files.judgements import COMMITTED
from evalwright.stores.places import cache_for

__all__ = ["INDEX", "IndexKeeper", "index_at", "opened_index"]

_log = logging.getLogger(__name__)

INDEX = "index.sqlite"
_LOCK = "index.lock"
_PATIENCE = 5.0
"""Seconds for which a reader waits for another process that makes the index, before it scans."""
_LOOK = 0.05
_WORTH_SAYING = 2.0
"""Seconds of work after which a person is shown what they wait for."""


class _Grid:
    """The cells of a plan, numbered by case, then variant, then trial."""

    def __init__(self, plan: Plan) -> None:
        self.trials = [variant.trials or plan.run.trials for variant in plan.variants]
        self.names = [variant.name for variant in plan.variants]
        self._first = {name: sum(self.trials[:i]) for i, name in enumerate(self.names)}
        self._trials = dict(zip(self.names, self.trials, strict=True))
        self._cases, self._per_case = plan.cases_total, sum(self.trials)

    def place(self, case_index: int | None, variant: str, trial: int) -> tuple[int, int] | None:
        first = self._first.get(variant)
        if first is None or case_index is None or not 0 <= case_index < self._cases:
            return None
        if not 0 <= trial < self._trials[variant]:
            return None
        return case_index * self._per_case + first + trial, first + trial


def _signature(plan: Plan | None) -> str:
    """What an index depends on beside the records: the run, and the numbering of the cells."""
    if plan is None:
        return "-"
    grid = _Grid(plan)
    return repr((plan.started_at.isoformat(), plan.cases_total, grid.names, grid.trials))


def opened_index(folder: Path, plan: Plan | None, *, keep: bool = True) -> RunIndex | None:
    """The index of a run folder, brought up to date or made; None if there can be none, or others are busy with it.

    It is kept in the folder; in the user's cache where that cannot be written, else in memory. Without `keep` one that
    is not there is made in memory.
    """
    if (folder / COMMITTED).is_dir():
        return None  # a crash between two renames: the records are in two places
    kept = keep or (folder / INDEX).exists()
    return index_at([lambda: folder, lambda: _cache_of(folder)] if kept else [], FolderSource(folder), plan)


def index_at(places: Sequence[Callable[[], Path]], source: Source, plan: Plan | None) -> RunIndex | None:
    """The index of these records in the first folder that can be written, in memory if none can; closes the source."""
    attempts = [partial(_kept, place, source, plan) for place in places]
    for attempt in (*attempts, partial(_in_memory, source, plan)):
        try:
            if (index := attempt()) is not None:
                return index
            break
        except (_Busy, Replaced):
            break
        except (OSError, sqlite3.Error):
            continue
    source.close()
    return None


def _in_memory(source: Source, plan: Plan | None) -> RunIndex | None:
    connection = connected(":memory:")
    created(connection)
    return _fresh(connection, source, plan)


class _Busy(Exception):
    """Another process makes the index, and takes longer than is worth waiting for."""


def _cache_of(folder: Path) -> Path:
    """Where the index of a folder is that cannot be written."""
    found = folder.stat()
    return cache_for(f"{found.st_dev}-{found.st_ino}")


def _kept(find: Callable[[], Path], source: Source, plan: Plan | None) -> RunIndex | None:
    """The index in a folder. Raises OSError and sqlite3.Error where it cannot be there."""
    place = find()
    with _lock(place, _PATIENCE) as alone:
        if not alone:
            return _of_a_live_run(place, source, plan)
        connection = _usable(place, source, plan) or _made(place, plan)
        return _fresh(connection, source, plan)


def _fresh(connection: sqlite3.Connection, source: Source, plan: Plan | None) -> RunIndex | None:
    """The index of a connection, with everything that is there now."""
    try:
        if _meta(connection, "odd"):
            connection.close()
            return None
        follower = Follower(connection, source, None if plan is None else _Grid(plan))
        with _said_if_long(source.location):
            _followed(connection, follower)
        if _meta(connection, "odd") or not source.whole(follower.covered):
            connection.close()
            return None
        connection.execute("BEGIN")
        return RunIndex(connection, source)
    except BaseException:
        connection.close()
        raise


def _followed(connection: sqlite3.Connection, follower: Follower, *, trusted: bool = False) -> None:
    """Read what is new; a run that cannot have an index is noted as one, so that the next reader scans at once."""
    try:
        follower.follow(trusted=trusted)
    except Odd as odd:
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('odd', ?)", (str(odd) or "odd",))


def _of_a_live_run(place: Path, source: Source, plan: Plan | None) -> RunIndex | None:
    """The index that another process keeps up to date: as far as it is, if that is close."""
    connection = _usable(place, source, plan)
    if connection is None:
        raise _Busy
    connection.execute("BEGIN")
    if _meta(connection, "odd") or not source.near(_covered(connection)):
        connection.close()
        raise _Busy
    return RunIndex(connection, source)


def _usable(place: Path, source: Source, plan: Plan | None) -> sqlite3.Connection | None:
    """The index that is there, if it is one of these records; it may end before they do."""
    path = place / INDEX
    if not path.is_file():
        return None
    connection = None
    try:
        connection = connected(path.as_uri())
        connection.execute("PRAGMA synchronous = NORMAL")
        known = is_ours(connection) and _meta(connection, "version") == VERSION
        if known and _meta(connection, "grid") == _signature(plan) and source.matches(_covered(connection)):
            return connection
    except sqlite3.Error:
        pass
    if connection is not None:
        connection.close()
    return None


def _made(place: Path, plan: Plan | None) -> sqlite3.Connection:
    """An empty index in the place of what is there."""
    path = place / INDEX
    for name in (INDEX, f"{INDEX}-wal", f"{INDEX}-shm", f"{INDEX}-journal"):
        (place / name).unlink(missing_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))
    connection = connected(path.as_uri())
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        created(connection)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [("version", VERSION), ("grid", _signature(plan))])
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _covered(connection: sqlite3.Connection) -> dict[str, Covered]:
    rows = connection.execute("SELECT file, bytes, tail, changed FROM covered")
    return {name: Covered(*rest) for name, *rest in rows}


def _meta(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


@contextmanager
def _lock(place: Path, patience: float) -> Iterator[bool]:
    """The right to write the index of a folder; yields False if another process keeps it. Raises OSError."""
    descriptor = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    try:
        yield _locked(descriptor, time.monotonic() + patience)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK)


@contextmanager
def _said_if_long(location: str) -> Iterator[None]:
    start = time.monotonic()
    yield
    seconds = time.monotonic() - start
    if seconds > _WORTH_SAYING:
        print(f"made the index of {location} in {seconds:.1f} s", file=sys.stderr)


class IndexKeeper:
    """Keeps the index of a run up to date while the run is written. A failure ends the index, never the run."""

    def __init__(self, folder: Path, plan: Plan | None) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._follower: Follower | None = None
        try:
            self._open(plan)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def _open(self, plan: Plan | None) -> None:
        descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        if not _locked(descriptor, time.monotonic()):  # a reader makes it just now: it, or the next one, goes on
            os.close(descriptor)
            return
        self._descriptor = descriptor
        source = FolderSource(self._folder)
        self._connection = _usable(self._folder, source, plan) or _made(self._folder, plan)
        self._follower = Follower(self._connection, source, None if plan is None else _Grid(plan))

    def follow(self) -> None:
        """Read what was appended since the last time."""
        if self._follower is None or self._connection is None:
            return
        try:
            _followed(self._connection, self._follower, trusted=True)
            if _meta(self._connection, "odd"):
                self._follower = None
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file, with its log of changes moved into it, and let others have it."""
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
        for name in (INDEX, f"{INDEX}-wal", f"{INDEX}-shm"):
            with suppress(OSError):
                (self._folder / name).unlink()
