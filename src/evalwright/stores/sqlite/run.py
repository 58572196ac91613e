"""One run in a SQLite file: its statements, its connections, and what makes it durable."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, StorageError
from evalwright.files.durable import PRIVATE_FOLDER, storage_error
from evalwright.files.paths import safe_id
from evalwright.model.protocols import Part
from evalwright.model.summary import RunSummary
from evalwright.stores.lock import RunLock
from evalwright.stores.sqlite.schema import must_be_runs, prepare, read_only
from evalwright.stores.tables.rows import Batch, Row, batched
from evalwright.stores.tables.statements import Rows

__all__ = ["SqliteRun", "connect", "reading", "writing"]

_PATIENCE = 30.0
"""Seconds to wait for another process that is writing to the same file."""
_BATCH = 5000
_CHECKPOINT = 16 << 20
"""Bytes of write-ahead log after which it is moved into the database."""

_DAMAGED = (sqlite3.Error, ValueError, TypeError, OverflowError)
"""What reading a damaged file can raise: messages of SQLite that are not UTF-8, values of a wrong type."""

_DISK = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}
"""Errors of the disk and not of what the file holds; finer codes stand above the lowest byte."""

_inherited: list[object] = []
"""Connections of a parent process, which must be neither used nor closed."""

_COLUMNS = (
    *("run_id", "namespace"),
    *("case_id", "variant_name", "trial", "attempt", "evaluator", "started_at", "payload"),  # those of a Row
)
_WITHOUT: dict[str, tuple[str, ...]] = {
    "traces": ("evaluator",),
    "results": (),
    "verdicts": ("evaluator", "started_at"),
    "artifacts": ("evaluator",),
}
"""For each table, the columns that it lacks."""


class _Insertion:
    """The statement for one table, and the parts of a record that it takes."""

    def __init__(self, table: str) -> None:
        places = [i for i, column in enumerate(_COLUMNS) if column not in _WITHOUT[table]]
        names = ", ".join(_COLUMNS[i] for i in places)
        self.statement: str = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({', '.join('?' * len(places))})"
        self.pick = itemgetter(*places)


_INSERTIONS = {table: _Insertion(table) for table in _WITHOUT}


def connect(path: Path) -> sqlite3.Connection:
    """A connection to an existing or new file, brought up to date if it can be written. Raises sqlite3.Error and
    InputError."""
    must_be_runs(path)
    # a reader writes as well, into files beside it, unless it knows that no process does
    writes = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    place = path if writes else read_only(path)
    connection = sqlite3.connect(
        place, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, uri=not writes
    )
    try:
        if writes:
            connection.execute("PRAGMA journal_mode = WAL")  # readers and the writer do not wait for each other
            connection.execute("PRAGMA synchronous = NORMAL")  # no fsync per commit: `make_durable` syncs in batches
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # no checkpoint either, which would delay a cell
            connection.execute(f"PRAGMA journal_size_limit = {_CHECKPOINT}")
            prepare(connection, str(path))
        connection.text_factory = bytes  # damaged text must reach our decoder, which names the line
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns SQLite's errors while reading into an InputError, or a StorageError for the disk, that names the file."""
    try:
        yield
    except _DAMAGED as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK:
            raise StorageError(f"cannot read {path}: {error}") from error
        raise InputError(Problem(str(path), f"cannot be read: {error}")) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns SQLite's errors while writing into a StorageError that names the file."""
    try:
        yield
    except _DAMAGED as error:
        raise StorageError(f"cannot write {path}: {error}") from error


class SqliteRun:
    """The rows of one run. A connection belongs to the process that made it: after a fork, each process makes its
    own."""

    pace: float = 0.01  # a transaction is cheap, and what is written early is less easily lost

    def __init__(self, path: Path, run_id: str, namespace: str | None = None, lock: RunLock | None = None) -> None:
        self._path, self._run_id, self._namespace, self._lock = path, run_id, namespace, lock
        self.location: str = str(path / run_id)
        self.artifacts: Path = path.with_name(f"{path.name}.artifacts") / run_id
        self._reader: tuple[int, sqlite3.Connection] | None = None
        self._writer: tuple[int, sqlite3.Connection] | None = None
        self._written: tuple[int, int] | None = None if lock is None else self._identity()

    def plan(self) -> bytes | None:
        return self._value("SELECT payload FROM runs WHERE run_id = ?")

    def summary(self) -> bytes | None:
        return self._value("SELECT payload FROM summaries WHERE run_id = ?")

    def document(self, name: str) -> bytes | None:
        return self._value("SELECT content FROM documents WHERE run_id = ? AND name = ?", name)

    def artifact_lines(self) -> Iterator[bytes]:
        return (payload for (payload,) in self._fetch_all("SELECT payload FROM artifacts WHERE run_id = ?"))

    def cases(self, start: int, most: int) -> list[tuple[int, bytes]]:
        rows = self._fetch_all(
            "SELECT position, payload FROM cases WHERE run_id = ? AND position >= ? ORDER BY position LIMIT ?",
            start,
            most,
        )
        return [(position, _line(payload)) for position, payload in rows]

    def parts(self, count: int) -> list[Part]:
        rows = self._fetch_all(
            "WITH ours AS (SELECT seq FROM traces WHERE run_id = ?) SELECT min(seq), max(seq) + 1 "
            "FROM (SELECT seq, ntile(?) OVER (ORDER BY seq) AS part FROM ours) GROUP BY part ORDER BY part",
            count,
        )
        return list(rows)

    def lines(self, table: str, part: Part | None) -> Iterator[tuple[int, bytes]]:
        start, end = part or (0, (1 << 63) - 1)
        with reading(self._path):
            # The index is named because the planner might walk the rows of all runs instead, to save the sorting.
            cursor = self._reading().execute(
                f"SELECT seq, payload FROM {table} INDEXED BY {table}_of_run "
                "WHERE run_id = ? AND seq >= ? AND seq < ? ORDER BY seq",
                (self._run_id, start, end),
            )
            try:
                for number, payload in cursor:
                    yield number, _line(payload)
            finally:
                # an error may hold a reference to this until the file is closed
                with suppress(sqlite3.ProgrammingError):
                    cursor.close()

    def span(self, table: str, until: int | None = None) -> tuple[int, int]:
        last = (1 << 63) - 1 if until is None else until
        columns = f"SELECT coalesce(max(seq), 0), count(*) FROM {table} INDEXED BY {table}_of_run"
        [(greatest, count)] = self._fetch_all(f"{columns} WHERE run_id = ? AND seq <= ?", last)
        return greatest, count

    def rows(self, table: str, numbers: Sequence[int]) -> list[bytes]:
        query = (
            f"SELECT payload FROM {table} WHERE run_id = ? AND seq IN ({', '.join('?' * len(numbers))}) ORDER BY seq"
        )
        return [_line(payload) for (payload,) in self._fetch_all(query, *numbers)]

    def index_place(self) -> Path:
        place = self._path.with_name(f"{self._path.name}.indexes") / safe_id(self._run_id)
        place.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        return place

    def _value(self, query: str, *values: object) -> bytes | None:
        rows = self._fetch_all(query, *values)
        value: bytes | None = rows[0][0] if rows else None
        return value

    def _fetch_all(self, query: str, *values: object) -> list[Any]:
        with reading(self._path):
            return self._reading().execute(query, (self._run_id, *values)).fetchall()

    def _reading(self) -> sqlite3.Connection:
        if self._reader is None or self._reader[0] != os.getpid():
            _inherited.append(self._reader)  # kept: after a fork, SQLite allows neither using nor closing a connection
            self._reader = (os.getpid(), connect(self._path))
        return self._reader[1]

    def write(self, batch: Batch) -> None:
        with self._transaction() as connection:
            for table, rows in batch.tables():
                self._insert(connection, table, rows)

    def _insert(self, connection: sqlite3.Connection, table: str, rows: Iterable[Row]) -> None:
        insertion = _INSERTIONS[table]
        pick, run = insertion.pick, (self._run_id, self._namespace)
        connection.executemany(
            insertion.statement,
            [pick((*run, *row[:5], row.started_at and row.started_at.isoformat(), row.line)) for row in rows],
        )

    def hurry(self) -> None:
        """Nothing to do: a file answers."""

    def make_durable(self) -> None:
        """Sync the write-ahead log, and checkpoint it (move it into the database) if it is long. Raises StorageError,
        also if the file is gone: its connection would go on, and no reader would find what was written."""
        if self._written != (now := self._identity()):
            gone = FileNotFoundError(str(self._path)) if now is None else None
            raise StorageError(f"cannot sync {self._path}: it was deleted, moved or replaced") from gone
        log = self._path.with_name(f"{self._path.name}-wal")
        try:
            descriptor = os.open(log, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
                size = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error("sync", log, error) from error
        if size > _CHECKPOINT:
            self._checkpoint()

    def _identity(self) -> tuple[int, int] | None:
        """What tells the file from another one at its path; None if there is none."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error("look at", self._path, error) from error
        return found.st_dev, found.st_ino

    def _checkpoint(self) -> None:
        """Move the log into the database on a separate connection, so that writers do not have to wait."""
        with writing(self._path):
            connection = sqlite3.connect(self._path, timeout=0, isolation_level=None)
            try:
                with suppress(sqlite3.OperationalError):  # another process is doing it
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                connection.close()

    def put_plan(self, line: bytes) -> None:
        with self._transaction() as connection:
            connection.execute("UPDATE runs SET payload = ? WHERE run_id = ?", (line.decode(), self._run_id))

    def put_summary(self, summary: RunSummary, line: bytes) -> None:
        row = (self._run_id, self._namespace, summary.started_at.isoformat(), line.decode())
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO summaries (run_id, namespace, started_at, payload) VALUES (?, ?, ?, ?)", row
            )

    def put_artifact(self, row: Row) -> None:
        with self._transaction() as connection:
            self._insert(connection, "artifacts", [row])

    def replace_judgements(self, results: Rows, verdicts: Rows) -> None:
        with self._transaction() as connection:
            for table, rows in (("results", results), ("verdicts", verdicts)):
                # The old rows go last: while they are there, SQLite gives the new ones higher numbers.
                query = f"SELECT max(seq) FROM {table}"
                [(last,)] = connection.execute(query).fetchall()
                for batch in batched(rows(), _BATCH):
                    self._insert(connection, table, batch)
                connection.execute(f"DELETE FROM {table} WHERE run_id = ? AND seq <= ?", (self._run_id, last))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with writing(self._path):
            if self._writer is None:
                self._writer = (os.getpid(), connect(self._path))
            connection = self._writer[1]
            # Takes the write lock at once: a transaction that requests it later may fail without waiting for others.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:  # an open transaction would lock out every other process that writes to the file
                with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                    connection.execute("ROLLBACK")
                raise

    def prepare_to_fork(self) -> None:
        for held in (self._reader, self._writer):
            if held is not None and held[0] == os.getpid():
                held[1].close()
        self._reader = self._writer = None

    def close(self) -> None:
        self.prepare_to_fork()
        if self._lock is not None:
            self._lock.release()


def _line(payload: object) -> bytes:
    """A payload as a line; `null` if it is not text, so that the decoder reports it with its number."""
    return payload + b"\n" if isinstance(payload, bytes) and payload.strip() else b"null\n"
