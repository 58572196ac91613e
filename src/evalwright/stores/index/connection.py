"""Connections to the file of an index. A damaged one is removed: it can be rebuilt from the records.

SQLite notices damage only where it reads, and not all of it, so an index that was opened may still fail at any row.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from evalwright.model.cell_index import DamagedIndex

__all__ = ["connected", "damaged", "in_memory", "index_files", "remove_files", "sound"]

T = TypeVar("T")

_FILES = ("", "-wal", "-shm", "-journal")


class _Damaged(DamagedIndex, sqlite3.DatabaseError):
    """Code that opens an index catches it as an SQLite error, and code that reads from one as damage."""


def connected(address: str) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time. Raises sqlite3.Error; for damage, DamagedIndex."""
    connection = sqlite3.connect(
        address, isolation_level=None, check_same_thread=False, uri=True, timeout=5, factory=_Connection
    )
    connection.execute("PRAGMA trusted_schema = OFF")  # the file came with the run, which may come from anyone
    return connection


def remove_files(path: Path) -> None:
    """Remove a database and the files that SQLite keeps beside it. Raises OSError."""
    for end in _FILES:
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


def _raising_damaged(ask: Callable[..., T]) -> Callable[..., T]:
    """A method of a cursor that raises DamagedIndex."""

    def guarded(cursor: _Cursor, *arguments: Any) -> T:
        try:
            return ask(cursor, *arguments)
        except sqlite3.DatabaseError as error:
            raise cursor.failure(error) from error

    return guarded


class _Cursor(sqlite3.Cursor):
    execute = _raising_damaged(sqlite3.Cursor.execute)
    executemany = _raising_damaged(sqlite3.Cursor.executemany)
    fetchone = _raising_damaged(sqlite3.Cursor.fetchone)
    fetchmany = _raising_damaged(sqlite3.Cursor.fetchmany)
    fetchall = _raising_damaged(sqlite3.Cursor.fetchall)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        try:
            yield from iter(super().fetchone, None)
        except sqlite3.DatabaseError as error:
            raise self.failure(error) from error

    def failure(self, error: sqlite3.DatabaseError) -> sqlite3.DatabaseError:
        """The error to raise instead: the same one, unless it reports damage."""
        # Subclasses report locks, full disks or mistakes of ours; and texts that are no UTF-8, which we never wrote.
        if type(error) is not sqlite3.DatabaseError and not str(error).startswith("Could not decode"):
            return error
        return damaged(self.connection, error)


def damaged(connection: sqlite3.Connection, error: object) -> _Damaged:
    """The error to raise for a damaged index, which is removed."""
    removed = []
    with suppress(sqlite3.Error, OSError):
        for file in index_files(connection):
            remove_files(file)
            removed.append(str(file))
    return _Damaged(f"{' and '.join(removed)}: {error}")


@contextmanager
def sound(connection: sqlite3.Connection) -> Iterator[None]:
    """What is read here is used as it was written: if that fails, a bit has changed that SQLite does not look at.

    Raises DamagedIndex, unless the index is in memory.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
        if in_memory(connection):
            raise
        raise damaged(connection, error) from error


def in_memory(connection: sqlite3.Connection) -> bool:
    """Whether no file contains the index."""
    return not index_files(connection)


def index_files(connection: sqlite3.Connection) -> list[Path]:
    """The files of an index, its own before attached ones; none for one in memory."""
    # as bytes: their names need not be UTF-8
    listed = "SELECT CAST(file AS BLOB) FROM pragma_database_list ORDER BY seq"
    return [Path(os.fsdecode(file)) for (file,) in sqlite3.Cursor(connection).execute(listed).fetchall() if file]


class _Connection(sqlite3.Connection):
    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        cursor = self.cursor(_Cursor)
        cursor.execute(sql, values)
        return cursor

    def executemany(self, sql: str, values: Any, /) -> sqlite3.Cursor:
        cursor = self.cursor(_Cursor)
        cursor.executemany(sql, values)
        return cursor
