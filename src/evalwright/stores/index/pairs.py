"""The cells that two indexed runs have in common, joined by SQL; names are read only for those that are asked for."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from evalwright.model.cell_index import CellPlaces
from evalwright.stores.index.connection import connected
from evalwright.stores.index.schema import KIND

__all__ = ["IndexedSide", "PairedCells"]

_JOINED = "(mine.number - :first) / :every * :other_every + :other_first"
_BACK = "(theirs.number - :other_first) / :other_every * :every + :first"

_KINDS = 1 << 32
"""More than there are kinds of cells, positive and negative: two in one number take half the time to be grouped."""


class IndexedSide(NamedTuple):
    """What is known of one of two indexes."""

    file: Path
    covered: object
    """How far its records were read."""
    places: CellPlaces
    clean: Mapping[int, bool]
    """By profile: whether its rows may be clean."""
    singular: bool
    """Whether some cell has a kind of its own."""

    def kind(self, table: str) -> str:
        """The kind of a cell in SQL. A row has to be read further for what only cells of their own kind have."""
        return KIND.format(table) if self.singular else f"{table}profile"


class PairedCells:
    """See `CellPairs`. Reads both indexes as they were at one moment."""

    def __init__(self, connection: sqlite3.Connection, mine: IndexedSide, theirs: IndexedSide) -> None:
        self._connection, self._sides = connection, (mine, theirs)
        self._places = {
            "first": mine.places.first,
            "every": mine.places.every,
            "other_first": theirs.places.first,
            "other_every": theirs.places.every,
        }
        self.counts: list[tuple[int, int, int]] = []

    @classmethod
    def of(cls, mine: IndexedSide, theirs: IndexedSide) -> PairedCells | None:
        """The pairs of two files; None if they have changed since, or name their cells differently."""
        connection = connected(mine.file.as_uri())
        try:
            connection.execute("ATTACH ? AS other", (theirs.file.as_uri(),))
            connection.execute("BEGIN")
            asked = "SELECT file, bytes, tail, changed FROM {}.covered ORDER BY file"
            now = [connection.execute(asked.format(name)).fetchall() for name in ("main", "other")]
            found = cls(connection, mine, theirs)
            if now == [mine.covered, theirs.covered] and found._count():
                return found
        except sqlite3.Error:
            pass
        connection.close()
        return None

    def _count(self) -> bool:
        mine, theirs = self._sides
        rows = self._connection.execute(
            f"SELECT ({mine.kind('mine.')}) * {_KINDS} + {theirs.kind('theirs.')}, count(*), "
            "sum(mine.case_key <> theirs.case_key) FROM main.cells mine "
            f"CROSS JOIN other.cells theirs ON theirs.number = {_JOINED} "
            "WHERE (mine.number - :first) % :every = 0 GROUP BY 1",
            self._places,
        ).fetchall()
        self.counts = [(*_unpacked(both), n) for both, n, _ in rows]
        return not any(differing for *_, differing in rows)

    def cases(self, kinds: Collection[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
        mine, theirs = "main.cells mine", "other.cells theirs"
        asked = "SELECT mine.case_key FROM {} CROSS JOIN {} ON {} WHERE (mine.number - :first) % :every = 0 AND {}"
        for one, other in kinds:
            (ours, few), (others, other_few) = self._of_kind("mine", 0, one), self._of_kind("theirs", 1, other)
            if other_few and not few:  # the smaller side leads to the other
                query = asked.format(theirs, mine, f"mine.number = {_BACK}", f"{others} AND {ours}")
            else:
                query = asked.format(mine, theirs, f"theirs.number = {_JOINED}", f"{ours} AND {others}")
            yield from ((case, one, other) for (case,) in self._connection.execute(query, self._places))

    def _of_kind(self, table: str, side: int, kind: int) -> tuple[str, bool]:
        """The condition for the cells of a kind, and whether it finds them without looking at all cells."""
        if kind < 0:
            return f"{table}.number = {-1 - kind}", True
        of_kind = f"{table}.profile = {kind} AND {table}.numbers IS NULL"
        return (of_kind, False) if self._sides[side].clean[kind] else (f"{table}.clean = 0 AND {of_kind}", True)

    def close(self) -> None:
        self._connection.close()


def _unpacked(both: int) -> tuple[int, int]:
    """The kinds of two cells in one number."""
    one = (both + _KINDS // 2) // _KINDS
    return one, both - one * _KINDS
