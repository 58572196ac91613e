"""The tables of a SQLite file of runs, and the migration of older files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from evalwright.errors import InputError, Problem
from evalwright.stores.documents import newer_version

__all__ = ["must_be_runs", "prepare", "read_only"]

_VERSION = 1
_CELL = "run_id, case_id, variant_name, trial, attempt"
_COLUMNS = {
    "runs": "run_id TEXT NOT NULL, started_at TEXT, namespace TEXT, payload TEXT",
    "cases": "run_id TEXT NOT NULL, position INTEGER NOT NULL, payload TEXT",
    "documents": "run_id TEXT NOT NULL, name TEXT NOT NULL, content BLOB",
    "traces": "{cell}, started_at TEXT, namespace TEXT, payload TEXT",
    "results": "{cell}, evaluator TEXT NOT NULL, started_at TEXT, namespace TEXT, payload TEXT",
    "verdicts": "{cell}, namespace TEXT, payload TEXT",
    "artifacts": "{cell}, started_at TEXT, namespace TEXT, payload TEXT",
    "summaries": "run_id TEXT NOT NULL, started_at TEXT, namespace TEXT, payload TEXT",
}
_CELL_COLUMNS = (
    "run_id TEXT NOT NULL, case_id TEXT NOT NULL, variant_name TEXT NOT NULL, "
    "trial INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 1"
)
_KEYS = {
    "runs": "run_id",
    "cases": "run_id, position",
    "documents": "run_id, name",
    "traces": _CELL,
    "results": f"{_CELL}, evaluator",
    "verdicts": _CELL,
    "artifacts": "run_id, case_id, variant_name, trial",
    "summaries": "run_id",
}
_IN_ORDER = ("traces", "results", "verdicts")
"""Tables whose rows are read in the order in which they were written."""
_DEFAULTS = {"trial": "0", "attempt": "1"}


def read_only(path: Path) -> str:
    """The address of a file for a connection that writes nothing, not even beside it: without a log of later changes,
    the file is all there is."""
    how = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
    return f"{path.absolute().as_uri()}?{how}"


def must_be_runs(path: Path) -> None:
    """Raises InputError for another program's database, of which nothing may be changed, not even its journal.

    When a connection that may write is closed, it would move the log of a killed writer into the file.
    """
    with closing(sqlite3.connect(read_only(path), uri=True)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        names = [str(name) for (name,) in tables]
    if names and not _COLUMNS.keys() & names:
        listed = ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")
        raise InputError(
            Problem(str(path), f"is a database of another program, with the tables {listed}; name another file")
        )


def prepare(connection: sqlite3.Connection, file: str) -> None:
    """Create what is missing, in one transaction.

    Raises InputError for a file of a later version, and for one whose tables belong to another program.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == _VERSION:
        return
    if version > _VERSION:
        raise newer_version(file, f"{version} of its tables")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Checked again, as another process may have done it while this one waited for the lock.
        if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            older = [table for table in _COLUMNS if _create_table(connection, table, file)]
            if older:
                _adopt_runs(connection)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full or failing disk has already ended it, and its error is the one to report
            connection.execute("ROLLBACK")
        raise


def _create_table(connection: sqlite3.Connection, table: str, file: str) -> bool:
    """Create one table, with the rows of an older one of that name; returns whether there was an older one."""
    older = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    if older and not {"run_id", "payload"} <= set(older):
        raise InputError(Problem(file, f"has a table {table!r} of another program, not of runs"))
    if older:
        connection.execute(f"ALTER TABLE {table} RENAME TO older_{table}")
    columns = _COLUMNS[table].format(cell=_CELL_COLUMNS)
    connection.execute(f"CREATE TABLE {table} (seq INTEGER PRIMARY KEY, {columns}, UNIQUE ({_KEYS[table]}))")
    if table in _IN_ORDER:
        connection.execute(f"CREATE INDEX {table}_of_run ON {table} (run_id)")
    if older:
        _copy(connection, table, older)
    return bool(older)


def _copy(connection: sqlite3.Connection, table: str, older: list[str]) -> None:
    """Copy the rows of an older table; columns that it lacks are filled from the payload, the namespace stays NULL."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "seq"]
    values = [name if name in older else _missing(name) for name in columns]
    connection.execute(
        f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) "
        f"SELECT {', '.join(values)} FROM older_{table} ORDER BY rowid"
    )
    connection.execute(f"DROP TABLE older_{table}")


def _missing(column: str) -> str:
    if column == "namespace":
        return "NULL"
    default = _DEFAULTS.get(column, "''")
    return f"coalesce(CASE WHEN json_valid(payload) THEN json_extract(payload, '$.{column}') END, {default})"


def _adopt_runs(connection: sqlite3.Connection) -> None:
    """Add rows for the runs that evalh wrote, which have records but no plan."""
    for table in ("summaries", "traces"):
        connection.execute(
            f"INSERT OR IGNORE INTO runs (run_id, started_at) "
            f"SELECT run_id, min(started_at) FROM {table} GROUP BY run_id ORDER BY min(started_at)"
        )
