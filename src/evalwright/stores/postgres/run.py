"""One run in a PostgreSQL database: its statements, and what happens when the server goes away."""

from __future__ import annotations

import hashlib
import math
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from evalwright.errors import RunLockedError, StorageError
from evalwright.files.user_folder import user_folder
from evalwright.model.protocols import Part
from evalwright.model.summary import RunSummary
from evalwright.stores.postgres.database import Connection, Database, is_lost, persist
from evalwright.stores.postgres.lock import lock_run
from evalwright.stores.postgres.rows import INSERTS, NOT_IN_JSONB, Numbered, column_arrays, for_jsonb, row_key
from evalwright.stores.tables.rows import Batch, Row, batched
from evalwright.stores.tables.statements import Rows

__all__ = ["PostgresRun"]

T = TypeVar("T")

_PATIENCE = 60.0
"""Seconds that a run being written waits for its server to come back: enough for a restart."""
_PAGE = 200
"""Rows fetched at once: cases and traces may be large."""
_BATCH = 5000
_LAST = (1 << 63) - 1
_NO_JSONB = ("22", "54")
"""SQLSTATE classes of what JSONB does not accept: bad data, too large, too deep."""


class PostgresRun:
    """The rows of one run. With `writer`, a connection that holds its lock, it can be written."""

    pace: float = math.inf
    # Each write is a round trip and waits for the server's disk, so only `sync` and full batches write.

    def __init__(self, database: Database, run_id: str, runs: Path, writer: Connection | None = None) -> None:
        self._database, self._run_id, self._connection = database, run_id, writer
        self.location: str = f"postgres:{database.schema}/{run_id}"
        self.artifacts: Path = runs / run_id / "artifacts"
        self._writes = writer is not None
        self._idle: list[tuple[int, Connection]] = []
        # after a lost session, it shows whether another process has written meanwhile
        self._token = os.urandom(8).hex()
        self._last: dict[str, int] = {}
        if writer is not None:
            _writers.add(self)
            self._take_over(writer)

    def _take_over(self, writer: Connection) -> None:
        with self._database.writing():
            writer.execute("UPDATE runs SET writer = %s WHERE run_id = %s", (self._token, self._run_id))
            row = writer.execute("SELECT namespace::text FROM runs WHERE run_id = %s", (self._run_id,)).fetchone()
            self._namespace = row and row[0]
            for table in ("traces", "results", "verdicts"):
                query = sql.SQL(f"SELECT coalesce(max(seq), 0) FROM {table} WHERE run_id = %s")
                self._last[table] = writer.execute(query, (self._run_id,)).fetchall()[0][0]

    # reading

    def plan(self) -> bytes | None:
        return self._line("SELECT plan FROM runs WHERE run_id = %s")

    def summary(self) -> bytes | None:
        return self._line("SELECT line FROM summaries WHERE run_id = %s")

    def document(self, name: str) -> bytes | None:
        rows = self._fetch_all("SELECT content FROM documents WHERE run_id = %s AND name = %s", name)
        return bytes(rows[0][0]) if rows else None

    def artifact_lines(self) -> Iterator[bytes]:
        return (line.encode() for (line,) in self._fetch_all("SELECT line FROM artifacts WHERE run_id = %s"))

    def _line(self, query: str, *values: object) -> bytes | None:
        rows = self._fetch_all(query, *values)
        return rows[0][0].encode() + b"\n" if rows else None

    def cases(self, start: int, most: int) -> list[tuple[int, bytes]]:
        query = "SELECT position, line FROM cases WHERE run_id = %s AND position >= %s ORDER BY position LIMIT %s"
        return [(position, line.encode() + b"\n") for position, line in self._fetch_all(query, start, most)]

    def parts(self, count: int) -> list[Part]:
        query = (
            "SELECT min(seq), max(seq) + 1 FROM (SELECT seq, ntile(%s) OVER (ORDER BY seq) AS part "
            "FROM traces WHERE run_id = %s) AS numbered GROUP BY part ORDER BY part"
        )
        with self._reading() as connection:
            return connection.execute(query, (count, self._run_id)).fetchall()

    def lines(self, table: str, part: Part | None) -> Iterator[tuple[int, bytes]]:
        start, end = part or (0, _LAST)
        query = sql.SQL(
            f"SELECT seq, convert_to(line, 'UTF8') FROM {table} "
            "WHERE run_id = %s AND seq >= %s AND seq < %s ORDER BY seq"
        )
        # A named cursor stays on the server: a plain one would load all rows of the run into memory.
        with self._reading() as connection, connection.transaction():
            cursor = connection.cursor(name="lines")
            cursor.itersize = _PAGE
            with cursor:
                cursor.execute(query, (self._run_id, start, end), binary=True)
                for number, line in cursor:
                    yield number, line + b"\n"

    def span(self, table: str, until: int | None = None) -> tuple[int, int]:
        query = f"SELECT coalesce(max(seq), 0), count(*) FROM {table} WHERE run_id = %s AND seq <= %s"
        [(greatest, count)] = self._fetch_all(query, _LAST if until is None else until)
        return greatest, count

    def rows(self, table: str, numbers: Sequence[int]) -> list[bytes]:
        query = f"SELECT line FROM {table} WHERE run_id = %s AND seq = ANY(%s) ORDER BY seq"
        return [line.encode() + b"\n" for (line,) in self._fetch_all(query, list(numbers))]

    def index_place(self) -> Path:
        """In the user's cache: the server's disk is not ours."""
        name = hashlib.blake2b(f"{self._database.name}/{self.location}".encode()).hexdigest()[:32]
        return user_folder("indexes", name)

    def _fetch_all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        def fetch() -> list[tuple[Any, ...]]:
            with self._pooled_connection() as connection:
                return connection.execute(query, (self._run_id, *values)).fetchall()

        with self._database.reading():
            return persist(fetch, is_lost, self._patience)

    def _patience(self) -> float:
        return self._database.patience(_PATIENCE) if self._writes else 0.0

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._database.reading(), self._pooled_connection() as connection:
            yield connection

    @contextmanager
    def _pooled_connection(self) -> Iterator[Connection]:
        """An idle connection of this process or a new one; afterwards it is kept for the next time."""
        # After a fork these are the parent's: closing them would end the parent's sessions.
        while self._idle and self._idle[-1][0] != os.getpid():
            _inherited.append(self._idle.pop())
        connection = self._idle.pop()[1] if self._idle else self._database.connect()
        try:
            yield connection
        except BaseException:  # also if a generator is closed half-way: the state of the connection is then unknown
            connection.close()
            raise
        if len(self._idle) < self._database.pool_size:
            self._idle.append((os.getpid(), connection))
        else:
            connection.close()

    # writing

    def write(self, batch: Batch) -> None:
        tables = [(table, self._numbered_rows(table, rows)) for table, rows in batch.tables() if rows]
        self._write_with_lock(lambda connection: self._write_all(connection, tables))

    def _numbered_rows(self, table: str, rows: list[Row]) -> list[Numbered]:
        """Rows with their keys and numbers, which stay the same if the rows are written again.

        Only the last row of each key is kept, as ON CONFLICT DO UPDATE fails if one statement changes a row twice.
        """
        kept: dict[bytes, Numbered] = {}
        for row in rows:
            key = row_key(row)
            self._last[table] += 1
            kept[key] = (key, self._last[table], row)
        return list(kept.values())

    def _write_all(self, connection: Connection, tables: list[tuple[str, list[Numbered]]]) -> None:
        try:
            with connection.pipeline(), connection.transaction():
                for table, rows in tables:
                    connection.execute(INSERTS[table], self._values_of(rows))
        except psycopg.Error as error:
            if is_lost(error, connection) or not (error.sqlstate or "").startswith(_NO_JSONB):
                raise
            self._write_one_by_one(connection, tables)

    def _write_one_by_one(self, connection: Connection, tables: list[tuple[str, list[Numbered]]]) -> None:
        """If JSONB rejects a record, its `payload` says so; `line` has the record all the same."""
        with connection.transaction():
            for table, rows in tables:
                for row in rows:
                    try:
                        with connection.transaction():
                            connection.execute(INSERTS[table], self._values_of([row]))
                    except psycopg.Error as error:
                        if is_lost(error, connection) or not (error.sqlstate or "").startswith(_NO_JSONB):
                            raise
                        connection.execute(INSERTS[table], self._values_of([row], plain=NOT_IN_JSONB))

    def _values_of(self, rows: list[Numbered], plain: str | None = None) -> dict[str, Any]:
        return {"run_id": self._run_id, "namespace": self._namespace, **column_arrays(rows, plain)}

    def hurry(self) -> None:
        self._database.hurried = True

    def make_durable(self) -> None:
        """Nothing to do: a transaction is durable when its commit returns."""

    def put_plan(self, line: bytes) -> None:
        query = "UPDATE runs SET plan = %s WHERE run_id = %s"
        self._write_with_lock(lambda connection: connection.execute(query, (line.decode(), self._run_id)))

    def put_summary(self, summary: RunSummary, line: bytes) -> None:
        text = line.decode()
        query = (
            "INSERT INTO summaries (run_id, namespace, started_at, payload, line) "
            "VALUES (%s, %s::jsonb, %s, %s::jsonb, %s) ON CONFLICT (run_id) DO UPDATE SET "
            "namespace = excluded.namespace, started_at = excluded.started_at, payload = excluded.payload, "
            "line = excluded.line"
        )
        values = (self._run_id, self._namespace, summary.started_at, for_jsonb(text) or text, text)
        self._write_with_lock(lambda connection: connection.execute(query, values))

    def put_artifact(self, row: Row) -> None:
        # One key for all attempts: only the newest artifact of a cell is kept.
        rows = [(row_key(row._replace(attempt=0)), 0, row)]
        self._write_with_lock(lambda connection: self._write_all(connection, [("artifacts", rows)]))

    def replace_judgements(self, results: Rows, verdicts: Rows) -> None:
        def replace(connection: Connection) -> None:
            with connection.transaction():
                for table, rows in (("results", results), ("verdicts", verdicts)):
                    query = sql.SQL(f"DELETE FROM {table} WHERE run_id = %s")
                    connection.execute(query, (self._run_id,))
                    self._insert_stream(connection, table, rows())

        self._write_with_lock(replace)

    def _insert_stream(self, connection: Connection, table: str, rows: Iterable[Row]) -> None:
        for batch in batched(rows, _BATCH):
            with connection.transaction():
                self._write_all(connection, [(table, self._numbered_rows(table, batch))])

    def _write_with_lock(self, work: Callable[[Connection], object]) -> None:
        """Do `work` with the connection that holds the lock, and do it again if the server goes away meanwhile."""

        def attempt() -> None:
            if self._connection is None or self._connection.closed:
                self._connection = self._locked_again()
            work(self._connection)

        def gone(error: psycopg.Error) -> bool:
            if not is_lost(error, self._connection):
                return False
            self._drop_connection()
            return True

        with self._database.writing():
            persist(attempt, gone, self._patience)

    def _drop_connection(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    def _locked_again(self) -> Connection:
        """A new connection with the lock. Raises StorageError if another process has written to the run meanwhile, or
        deleted it."""
        connection = self._database.connect()
        try:
            lock_run(connection, self._database.schema, self._run_id)
            row = connection.execute("SELECT writer FROM runs WHERE run_id = %s", (self._run_id,)).fetchone()
            if row is None:
                raise StorageError(f"{self.location}: it was deleted while the server was away")
            if row[0] != self._token:
                raise StorageError(f"{self.location}: another process has written to it while the server was away")
        except RunLockedError as error:  # possibly our own last session, which the server still believes alive
            connection.close()
            raise psycopg.OperationalError(str(error)) from error
        except BaseException:  # a session that is not closed would hold the lock on the run
            connection.close()
            raise
        return connection

    def prepare_to_fork(self) -> None:
        for owner, connection in self._idle:
            if owner == os.getpid():
                connection.close()
        self._idle = []

    def leave_to_parent(self) -> None:
        """In a forked child: give up the session without ending it."""
        if self._connection is not None and not self._connection.closed:
            with suppress(OSError, psycopg.Error):
                # The bare descriptor: closing the connection would tell the server to end the parent's session.
                os.close(self._connection.fileno())

    def close(self) -> None:
        self.prepare_to_fork()
        if self._connection is not None:
            # The server notices a closed connection, and releases its lock, only some time later.
            with suppress(psycopg.Error):
                self._connection.execute("SELECT pg_advisory_unlock_all()")
        self._drop_connection()


_inherited: list[object] = []
"""Connections of a parent process, which must be neither used nor closed."""
_writers: weakref.WeakSet[PostgresRun] = weakref.WeakSet()


def _leave_to_parents() -> None:
    """Close the locks' connections in a forked worker, which would otherwise keep them open after its parent's
    death."""
    for run in list(_writers):
        run.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parents)
