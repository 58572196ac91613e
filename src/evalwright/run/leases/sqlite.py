"""A ledger in a SQLite file on a disk that all shards share, whose file system has to lock for all of its machines."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files.durable import must_be_a_file, private_file
from evalwright.run.leases.ledger import LEDGER_TABLES, Execute, Ledger, LedgerUnreachable

__all__ = ["LEDGER", "SqliteLedger"]

LEDGER = ".leases.sqlite"
"""The name of the file. A glob that is meant for run folders does not match it."""
_PATIENCE = 5.0
"""Seconds for other processes to finish their transactions."""


class SqliteLedger(Ledger):
    """A file with a journal and no log of later changes, which only the processes of one machine could share.

    It is opened for each transaction: a connection would continue to use a file that was removed or replaced.
    """

    def __init__(self, folder: Path) -> None:
        self._file: Path = folder.absolute() / LEDGER

    def __str__(self) -> str:
        return str(self._file)

    def prepare(self) -> None:
        must_be_a_file(self._file)
        try:
            private_file(self._file)
            with self._transaction() as execute:
                tables = {name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
                if not tables:
                    for table, columns in LEDGER_TABLES.items():
                        execute(f"CREATE TABLE {table} ({columns})")
                elif not tables >= LEDGER_TABLES.keys():
                    raise InputError(Problem(str(self._file), "is a database of another program"))
        except (FileExistsError, NotADirectoryError):
            raise InputError(Problem(str(self._file.parent), "is not a folder: --lease expects one")) from None
        except OSError as error:
            raise LedgerUnreachable(str(error)) from error
        except LedgerUnreachable as error:
            if isinstance(error.__cause__, sqlite3.DatabaseError) and _is_damaged(error.__cause__):
                raise InputError(Problem(str(self._file), f"is not a ledger: {error}")) from error
            raise

    def close(self) -> None:
        """Nothing is kept open."""

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        try:
            address = f"{self._file.as_uri()}?mode=rw"  # a file that was removed is not made again
            with closing(sqlite3.connect(address, timeout=_PATIENCE, isolation_level=None, uri=True)) as connection:
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("BEGIN IMMEDIATE")

                def execute(statement: str, *values: Any) -> list[tuple[Any, ...]]:
                    return connection.execute(statement, values).fetchall()

                yield execute
                connection.execute("COMMIT")  # otherwise closing takes everything back
        except sqlite3.Error as error:
            raise LedgerUnreachable(str(error)) from error


def _is_damaged(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorname", "") in ("SQLITE_NOTADB", "SQLITE_CORRUPT")
