"""The tables of a run index. Any other `VERSION` or table definition leads to a rebuild: there is no format to
preserve."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

__all__ = [
    "AT",
    "BY_NAME",
    "COLUMNS",
    "KIND",
    "REPLACE",
    "RESULTS_PLACE",
    "TRACE_PLACE",
    "VERDICT_PLACE",
    "VERSION",
    "created",
    "insertion",
    "is_named",
    "is_ours",
    "slot_of",
]

VERSION = "6"


class _Columns(NamedTuple):
    """The columns of `cells`.

    `slot` is the place of variant and trial within a case. `case_index` is noted as its distance from `number`: 0,
    which takes no byte, in runs of one variant and one trial. `results_packed` has the lengths of results that are
    adjacent from `results_at` on or, if that is null, all their places. `numbers` has scores and costs of results that
    `profile` leaves out, `finished` a number of microseconds (see `cells.moment_of`). In `clean` cells everything
    passed or was skipped at their first attempt: the few others have an index.
    """

    number: int
    case_key: int
    group_name: int
    slot: int
    occurrence: int
    case_index: int
    profile: int
    clean: int
    trial: int
    attempt: int
    trace_at: int
    trace_len: int
    results_at: int
    results_packed: int
    finished: int
    verdict_at: int
    verdict_len: int
    numbers: int
    score: int
    latency_ms: int
    cost_usd: int
    tokens_in: int
    tokens_out: int


COLUMNS = _Columns._fields
AT = _Columns(*range(len(COLUMNS)))
"""The place of each column in a row."""
TRACE_PLACE = slice(AT.trace_at, AT.trace_len + 1)
"""Where a row has the place of its trace: position and length."""
RESULTS_PLACE = slice(AT.results_at, AT.results_packed + 1)
VERDICT_PLACE = slice(AT.verdict_at, AT.verdict_len + 1)

_TABLES = (
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE covered(file TEXT PRIMARY KEY, bytes INT, tail BLOB, changed INT) WITHOUT ROWID",
    "CREATE TABLE profiles(id INTEGER PRIMARY KEY, n INT, clean INT, variant TEXT, status TEXT, error TEXT, "
    "outcomes TEXT, sums TEXT)",
    "CREATE TABLE replaced(cost_usd REAL)",
    f"CREATE TABLE cells(number INTEGER PRIMARY KEY, {', '.join(COLUMNS[1:]).replace('score', 'score REAL')})",
    "CREATE INDEX not_clean ON cells(profile) WHERE clean = 0",
)

BY_NAME = "CREATE UNIQUE INDEX by_name ON cells(case_key, slot)"
"""Finds cells by name, and no two with the same name. Created once the cells are there: sorting their names takes a
tenth of what it takes to insert them one by one. Until then, a cell is found by looking at all of them."""

KIND = "CASE WHEN {0}numbers IS NULL THEN {0}profile ELSE -1 - {0}number END"
"""`CellEntry.kind` of a row of the table `{0}`."""


def insertion(places: Sequence[int]) -> str:
    """The statement that inserts rows with some columns of `COLUMNS`, by their places; the others are null."""
    return f"INSERT INTO cells({', '.join(COLUMNS[place] for place in places)}) VALUES ({', '.join('?' * len(places))})"


_UPDATE = f"ON CONFLICT(number) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in COLUMNS[1:])}"
REPLACE = f"{insertion(range(len(COLUMNS)))} {_UPDATE}"


def slot_of(name: str) -> int:
    """A place within a case for a cell that has none in a plan: 64 bits of a hash, signed like SQLite's integers."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def created(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty index."""
    for statement in _TABLES:
        connection.execute(statement)


def is_ours(connection: sqlite3.Connection) -> bool:
    """Whether there are the tables of this version and nothing else (a trigger could do anything)."""
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    return {sql for (sql,) in rows} - {BY_NAME} == {*_TABLES}


def is_named(connection: sqlite3.Connection) -> bool:
    """Whether `BY_NAME` were created."""
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'by_name'").fetchone() is not None
