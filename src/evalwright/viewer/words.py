"""The cells in which a word occurs, in temporary tables that the conditions of a filter refer to."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from evalwright.viewer.conditions import literal_pattern
from evalwright.viewer.texts import searchable

__all__ = ["WordSearch"]

_KEPT_SECONDS = 120.0
"""How long the cells of a word are kept: longer than any page takes."""


class _Search(NamedTuple):
    """When a word was last searched for, and how many cells have it."""

    used: float
    cells: int


class WordSearch:
    """`temp.in_text` has the cells with a word in their searchable text; `temp.in_messages` those that have it in
    messages, spans and calls of judges, which others read."""

    def __init__(self, file: sqlite3.Connection, lock: threading.RLock) -> None:
        self._file, self._lock = file, lock
        for table in ("in_text", "in_messages"):
            file.execute(
                f"CREATE TEMP TABLE {table} (word TEXT, number INTEGER, PRIMARY KEY (word, number)) WITHOUT ROWID"
            )
        self._searches: dict[str, _Search] = {}

    def find(self, word: str) -> int:
        """Note which cells have a word in their text, and return how many.

        They are kept for a while: a page asks for their number, for some of them, and for its neighbours.
        """
        with self._lock:
            now = time.monotonic()
            search = self._searches.get(word)
            if search is None:
                self._drop_old(now)
                # GLOB, as it finds a text in half the time that instr() takes
                insertion = "INSERT OR IGNORE INTO temp.in_text SELECT ?, number FROM texts WHERE text GLOB ?"
                pattern = f"*{literal_pattern(searchable(word))}*"
                search = _Search(now, self._file.execute(insertion, [word, pattern]).rowcount)
            self._searches[word] = search._replace(used=now)
            return search.cells

    def _drop_old(self, now: float) -> None:
        for word in [word for word, search in self._searches.items() if now - search.used > _KEPT_SECONDS]:
            self._file.execute("DELETE FROM temp.in_text WHERE word = ?", [word])
            del self._searches[word]

    def add_in_messages(self, word: str, numbers: Sequence[int]) -> None:
        """Note cells in whose messages, spans or calls of judges a word was found."""
        rows = [(word, number) for number in numbers]
        with self._lock:
            self._file.executemany("INSERT OR IGNORE INTO temp.in_messages VALUES (?, ?)", rows)
