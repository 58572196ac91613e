"""The file of an index: which run it belongs to, who may write it, and whether it matches the present records."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from pathlib import Path

from evalwright.files.durable import PRIVATE
from evalwright.model.plan import Plan
from evalwright.stores.index.connection import connected, remove_files, sound
from evalwright.stores.index.numbering import signature_of
from evalwright.stores.index.schema import VERSION, created, is_ours
from evalwright.stores.index.sources import CoveredRecords, Source

__all__ = ["INDEX", "covered_by", "create_index", "lock_file", "locked", "meta_of", "remove_index", "usable_index"]

INDEX = "index.sqlite"
_LOCK = "index.lock"
_LOOK = 0.05
"""Seconds between two attempts to get a lock."""


def usable_index(place: Path, source: Source, plan: Plan | None) -> sqlite3.Connection | None:
    """The existing index, if it belongs to these records; it may end before they do."""
    path = place / INDEX
    if not path.is_file():
        return None
    connection = None
    try:
        connection = connected(path.as_uri())
        connection.execute("PRAGMA synchronous = NORMAL")
        with sound(connection):
            known = is_ours(connection) and meta_of(connection, "version") == VERSION
            if known and meta_of(connection, "grid") == signature_of(plan) and source.matches(covered_by(connection)):
                return connection
    except sqlite3.Error:
        pass
    if connection is not None:
        connection.close()
    return None


def create_index(place: Path, plan: Plan | None) -> sqlite3.Connection:
    """An empty index that replaces what is there."""
    path = place / INDEX
    remove_index(place)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))
    connection = connected(path.as_uri())
    # An index may be lost at any time, as it can be rebuilt from the records: no commit waits for the disk.
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        created(connection)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [("version", VERSION), ("grid", signature_of(plan))])
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def remove_index(place: Path) -> None:
    """Remove the index of a folder, if it has one. Raises OSError."""
    remove_files(place / INDEX)


def covered_by(connection: sqlite3.Connection) -> dict[str, CoveredRecords]:
    """How far the records have been read into an index."""
    rows = connection.execute("SELECT file, bytes, tail, changed FROM covered")
    return {name: CoveredRecords(*rest) for name, *rest in rows}


def meta_of(connection: sqlite3.Connection, name: str) -> str | None:
    """An entry about the index itself, by name."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def lock_file(place: Path) -> int:
    """A descriptor of the file whose lock gives the right to write a folder's index. Raises OSError."""
    return os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)


def locked(descriptor: int, patience: float = 0.0) -> bool:
    """Whether the lock was obtained within this many seconds; closing the descriptor releases it."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK)
