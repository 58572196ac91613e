"""Records set aside by a key on disk: what belongs together may be anywhere in the files, and memory must not grow."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby

from evalwright.errors import StorageError

__all__ = ["RecordSpool"]


class RecordSpool:
    """Bytes by their keys; keys come back in the order in which they were first seen, bytes in theirs."""

    def __init__(self) -> None:
        self.keys: int = 0
        self._base = sqlite3.connect("")  # a file of SQLite's own, gone with the connection
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute("CREATE TABLE keys (id TEXT PRIMARY KEY, number INTEGER)")
        self._base.execute("CREATE TABLE records (number INTEGER, record BLOB)")

    def add(self, key: str, record: bytes) -> None:
        """Set a record aside. Raises StorageError if there is no space."""
        try:
            row = self._base.execute("SELECT number FROM keys WHERE id = ?", (key,)).fetchone()
            if row is None:
                row = (self.keys,)
                self._base.execute("INSERT INTO keys VALUES (?, ?)", (key, self.keys))
                self.keys += 1
            self._base.execute("INSERT INTO records VALUES (?, ?)", (row[0], record))
        except sqlite3.Error as error:
            raise StorageError(f"cannot store records in the temporary folder: {error}") from error

    def __iter__(self) -> Iterator[tuple[str, list[bytes]]]:
        rows = self._base.execute(
            "SELECT keys.id, record FROM records JOIN keys USING (number) ORDER BY number, records.rowid"
        )
        for key, group in groupby(rows, key=lambda row: row[0]):
            yield key, [record for _, record in group]

    def close(self) -> None:
        self._base.close()
