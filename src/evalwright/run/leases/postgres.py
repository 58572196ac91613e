"""A ledger in the tables of a schema of a PostgreSQL database, in which runs may be stored, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from evalwright.run.leases.ledger import LEDGER_TABLES, Execute, Ledger, LedgerUnreachable
from evalwright.stores.postgres.database import Connection, Database

__all__ = ["PostgresLedger"]


class PostgresLedger(Ledger):
    """Keeps a connection, and makes it again once it is lost. The server's clock is that of all shards."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None

    def __str__(self) -> str:
        return f"postgres:{self._database.schema}"

    def prepare(self) -> None:
        with self._live_connection() as connection:
            self._database.check_rights(connection)

            def create() -> None:
                for table, columns in LEDGER_TABLES.items():
                    connection.execute(f"CREATE TABLE {table} ({columns})".encode())

            self._database.make(connection, next(reversed(LEDGER_TABLES)), create)

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        with self._live_connection() as connection, connection.transaction():

            def execute(statement: str, *values: Any) -> list[tuple[Any, ...]]:
                cursor = connection.execute(statement.replace("?", "%s").encode(), values)
                return cursor.fetchall() if cursor.description else []

            execute("LOCK TABLE lease_limits IN EXCLUSIVE MODE")
            yield execute

    def _now(self, execute: Execute) -> int:
        return int(execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0]) * 1000

    @contextmanager
    def _live_connection(self) -> Iterator[Connection]:
        try:
            if self._connection is None:
                self._connection = self._database.connect()
            yield self._connection
        except psycopg.Error as error:
            self.close()
            raise LedgerUnreachable(self._database.why(error)) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
