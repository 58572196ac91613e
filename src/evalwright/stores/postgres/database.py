"""Connections to a PostgreSQL database and its tables of runs."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict

from evalwright.errors import InputError, Problem, StorageError
from evalwright.files.masker import masked_in
from evalwright.stores.documents import newer_version

__all__ = ["Connection", "Database", "is_lost", "persist"]

T = TypeVar("T")
V = TypeVar("V")

# Without a handler, Python prints what psycopg notes of lost connections, which are made again.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_VERSION = 1
_MAKING = 0x6576616C77726967
"""Key of the advisory lock of the process that makes the tables: `evalwrig` in ASCII, unlikely to be used elsewhere."""
_LONGEST_NAME = 63
"""Bytes of a schema's name."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds. Most lost connections come back at once, and a restarting server needs no more than one try per second."""

_ALIVE = {"tcp_user_timeout": 20_000, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 2}
"""Settings of libpq after which a machine that has vanished is given up within 20 seconds. By default a run would wait
for up to two hours, and not connect to the machine that has taken its place."""
_ALIVE_THERE = "".join(f"SET tcp_{name.removeprefix('tcp_')} = {value}; " for name, value in _ALIVE.items())
"""The same for the server: it gives up the session of a machine that has vanished, and with it the lock on a run."""

_SILENCE = 20.0
"""Seconds without a byte from the server after which it is asked, over another connection, whether it still answers."""
_TO_CONNECT = 10
"""Seconds that a server may take to accept a connection."""
_HURRIED = 5.0
"""Seconds for the same, and for a server to come back, once the user wants to stop now: a slow server needs no more."""

_CELL = "case_id text NOT NULL, variant_name text NOT NULL, trial integer NOT NULL, attempt integer NOT NULL"
_RECORD = (
    "run_id text NOT NULL, key bytea NOT NULL, seq bigint NOT NULL, {cell}{more}, "
    "namespace jsonb, payload jsonb, line text NOT NULL, PRIMARY KEY (run_id, key)"
)
_STARTED = ", started_at timestamptz"
_TABLES = {
    "runs": "seq bigint GENERATED ALWAYS AS IDENTITY, run_id text PRIMARY KEY, started_at timestamptz NOT NULL, "
    "namespace jsonb, plan text NOT NULL, writer text",
    "cases": "run_id text NOT NULL, position integer NOT NULL, line text NOT NULL, PRIMARY KEY (run_id, position)",
    "documents": "run_id text NOT NULL, name text NOT NULL, content bytea NOT NULL, PRIMARY KEY (run_id, name)",
    "traces": _RECORD.format(cell=_CELL, more=_STARTED),
    "results": _RECORD.format(cell=_CELL, more=f", evaluator text NOT NULL{_STARTED}"),
    "verdicts": _RECORD.format(cell=_CELL, more=""),
    "artifacts": _RECORD.format(cell=_CELL, more=_STARTED),
    "summaries": "run_id text PRIMARY KEY, started_at timestamptz NOT NULL, namespace jsonb, payload jsonb, "
    "line text NOT NULL",
}
# Without fastupdate: its list of pending entries makes the planner avoid the index of a growing table.
_INDEXES = [
    *(f"CREATE UNIQUE INDEX {table}_in_order ON {table} (run_id, seq)" for table in ("traces", "results", "verdicts")),
    *(
        f"CREATE INDEX {table}_namespace ON {table} USING gin (namespace jsonb_path_ops) WITH (fastupdate = off)"
        for table in ("runs", "traces", "results", "artifacts", "summaries")
    ),
]


def _mistakes(dsn: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a connection string that can be parsed, without its parts: they may be of the password."""
    server, _, rest = dsn.partition("://")[2].partition("?")[0].partition("/")
    if server.count("@") > 1 or "@" in rest:
        yield "expected a URL whose password has %40 for @, %3A for : and %2F for /"
    try:
        int(settings.get("connect_timeout") or 0)
    except ValueError:
        yield "expected a number of seconds as connect_timeout"


def _check_network_hooks(settings: Mapping[str, Any]) -> None:
    """Libpq connects without Python's knowledge; hooks that reject connections have to see these, too."""
    hosts = str(settings.get("hostaddr") or settings.get("host") or os.environ.get("PGHOST") or "").split(",")
    try:
        for host in hosts:
            sys.audit("socket.connect", None, (host, settings.get("port")))
    except ConnectionRefusedError as error:
        raise InputError(f"the store 'postgres': {error}") from None


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """Gives up a server that has stopped answering: its machine keeps the connection alive, so nothing else would."""

    database: Database

    def wait(self, gen: PQGen[V], *arguments: Any, **keywords: Any) -> V:
        return super().wait(self._watched_steps(gen), *arguments, **keywords)

    def _watched_steps(self, gen: PQGen[V]) -> PQGen[V]:
        """The same steps; a statement may take as long as it needs while the server answers at all."""
        last_answer = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    last_answer = time.monotonic()
                elif time.monotonic() - last_answer > self.database.patience(_SILENCE):
                    if not self._answers():
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the server has stopped answering")
                    last_answer = time.monotonic()
                state = gen.send(ready)
        except StopIteration as end:
            value: V = end.value
            return value

    def _answers(self) -> bool:
        """Whether the server says anything to a new connection, be it that it does not want one."""
        here: dict[str, Any] = {"host": self.info.host, "hostaddr": self.info.hostaddr, "port": self.info.port}
        try:
            psycopg.connect(self.info.dsn, connect_timeout=ceil(self.database.patience(_TO_CONNECT)), **here).close()
        except psycopg.Error as error:
            return not isinstance(error, psycopg.errors.ConnectionTimeout)
        return True


class Database:
    """Where and how to connect; connects only when asked to."""

    pool_size: int
    schema: str

    def __init__(self, dsn: str, schema: str, pool_size: int, place: str = "dsn") -> None:
        try:
            conninfo = conninfo_to_dict(dsn)
        except psycopg.ProgrammingError:  # its message quotes the connection string
            expected = "expected a connection string such as postgresql://user@host/database"
            raise InputError(Problem("", expected, None, place)) from None
        problems = [Problem("", message, None, place) for message in _mistakes(dsn, conninfo)]
        if not 0 < len(schema.encode()) <= _LONGEST_NAME:  # PostgreSQL cuts longer names, so that two become one
            problems.append(Problem("", f"expected a name of 1 to {_LONGEST_NAME} bytes", None, "schema"))
        if problems:
            raise InputError(problems)
        self._password = str(conninfo.get("password") or "")
        self.name: str = " ".join(str(conninfo.get(key)) for key in ("hostaddr", "host", "port", "dbname", "service"))
        """Distinguishes it from other databases, without the password."""
        self._dsn, self.schema, self.pool_size = dsn, schema, pool_size
        self.hurried: bool = False
        """Whether the user wants to stop now, so that a server which does not answer is soon given up."""

    def patience(self, seconds: float) -> float:
        """How long to wait for the server where usually so many seconds are right."""
        return min(seconds, _HURRIED) if self.hurried else seconds

    def connect(self) -> Connection:
        """A new connection that commits each statement by itself. Raises psycopg.Error."""
        # Names the owner of a run's lock to other processes. PostgreSQL cuts names at 63 bytes.
        name = f"evalwright {os.getpid()} {os.uname().nodename}"[:63]
        conninfo = conninfo_to_dict(self._dsn)
        _check_network_hooks(conninfo)
        timeout = ceil(self.patience(int(conninfo.get("connect_timeout") or _TO_CONNECT)))
        own: dict[str, Any] = {key: value for key, value in _ALIVE.items() if key not in conninfo}
        connection = Connection.connect(
            self._dsn, autocommit=True, application_name=name, connect_timeout=timeout, client_encoding="utf8", **own
        )
        connection.database = self
        try:
            connection.execute(sql.SQL(f"{_ALIVE_THERE}SET search_path TO {{}}").format(sql.Identifier(self.schema)))
        except BaseException:
            connection.close()
            raise
        return connection

    def why(self, error: psycopg.Error) -> str:
        """The message of the server or its client, without the password."""
        text = " ".join(str(error).split())
        for secret in {self._password, quote(self._password, safe="")}:
            text = masked_in(text, secret)
        return text

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turns errors of the database into an InputError, or a StorageError if the server is gone: a scheduler may
        try that again."""
        try:
            yield
        except psycopg.errors.UndefinedTable:
            raise InputError(f"the schema {self.schema!r} contains no runs") from None
        except psycopg.Error as error:
            message = f"the schema {self.schema!r} cannot be read: {self.why(error)}"
            raise StorageError(message) if is_lost(error) else InputError(message) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turns errors of the database into a StorageError."""
        try:
            yield
        except psycopg.Error as error:
            raise StorageError(f"cannot write to the schema {self.schema!r}: {self.why(error)}") from error

    def prepare(self, connection: Connection) -> None:
        """Create the tables if they are missing.

        Raises psycopg.Error, and InputError for tables of a later version or a database that cannot hold every text.
        """
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise InputError(f"the database has the encoding {encoding}: runs need one with ENCODING 'UTF8'")
        self.check_rights(connection)
        self.make(connection, "layout", lambda: self._create_tables(connection))
        row = connection.execute("SELECT max(version) FROM layout").fetchone()
        if row and row[0] and row[0] > _VERSION:
            raise newer_version(f"the schema {self.schema!r}", f"{row[0]} of its tables")

    def check_rights(self, connection: Connection) -> None:
        """Raises InputError if the role must not look into the schema: its tables would seem not to be there."""
        query = "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = %s"
        if connection.execute(query, (self.schema,)).fetchone() == (False,):
            raise InputError(f"the schema {self.schema!r} cannot be used: this role lacks the right USAGE")

    def make(self, connection: Connection, last: str, create: Callable[[], None]) -> None:
        """Create tables, of which `create` makes the one called `last` last, unless that is there. Raises
        psycopg.Error."""
        if self._has_table(connection, last):
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            if self._has_table(connection, last):  # another process may have made them while this one waited
                return
            # Not IF NOT EXISTS: that requires the right to create schemas even if the schema exists.
            schemas = connection.execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (self.schema,))
            if schemas.fetchone() is None:
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
            create()

    def _has_table(self, connection: Connection, table: str) -> bool:
        query = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = %s"
        return connection.execute(query, (self.schema, table)).fetchone() is not None

    def _create_tables(self, connection: Connection) -> None:
        for table, columns in _TABLES.items():
            connection.execute(sql.SQL(f"CREATE TABLE {table} ({columns})"))
        for statement in _INDEXES:
            connection.execute(sql.SQL(statement))
        # last: its presence means that the tables are complete
        connection.execute("CREATE TABLE layout (version integer NOT NULL)")
        connection.execute("INSERT INTO layout VALUES (%s)", (_VERSION,))


def is_lost(error: psycopg.Error, connection: Connection | None = None) -> bool:
    """Whether an error means that the server went away, rather than that it rejected a statement."""
    if connection is not None and (connection.closed or connection.broken):
        return True
    if error.sqlstate is None:  # an error of the client itself, such as a connection that was never made
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    # Classes of SQLSTATE: connection exceptions, and a server that is shutting down, has crashed or is starting.
    return error.sqlstate.startswith(("08", "57P"))


def persist(work: Callable[[], T], gone: Callable[[psycopg.Error], bool], patience: Callable[[], float]) -> T:
    """Do `work`, repeating it while the server is gone, for up to the seconds that `patience` returns by then.

    Raises psycopg.Error.
    """
    begun, pause = time.monotonic(), _FIRST_PAUSE
    while True:
        try:
            return work()
        except psycopg.Error as error:
            if not gone(error) or time.monotonic() + pause > begun + patience():
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
