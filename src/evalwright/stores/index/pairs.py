"""The cells that two indexed runs have in common, joined by SQL; names are read only for those that are asked for."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from evalwright.model.cell_index import CellPlaces
from evalwright.stores.index.connection import connected
from evalwright.stores.index.schema import KIND

__all__ = ["IndexedSide", "JoinedIndexes", "PairedCells"]

_JOINED = "mine.number / :every * :other_every + mine.number % :every + :further"
_IN_CASE = "mine.number % :every + :further BETWEEN 0 AND :other_every - 1"
_BACK = "theirs.number / :other_every * :every + theirs.number % :other_every - :further"

_KINDS = 1 << 32
"""More than there are kinds of cells, positive and negative: two in one number take half the time to be grouped."""


class IndexedSide(NamedTuple):
    """What is known of one of two indexes."""

    file: Path
    covered: object
    """How far its records were read."""
    clean: Mapping[int, bool]
    """By profile: whether its rows may be clean."""
    singular: bool
    """Whether some cell has a kind of its own."""

    def kind(self, table: str) -> str:
        """The kind of a cell in SQL. A row has to be read further for what only cells of their own kind have."""
        return KIND.format(table) if self.singular else f"{table}profile"


_Way = tuple[int, int, int]
"""How many cells a case has in either run, and how much further the paired cell is in its case in the other one."""
_Counts = dict[int, list[tuple[int, int, int]]]
"""The counts of pairs by the place of the variant in this run."""


class JoinedIndexes:
    """Two indexes as they were at one moment, in one connection for all of their variants."""

    def __init__(self, connection: sqlite3.Connection, mine: IndexedSide, theirs: IndexedSide) -> None:
        self._connection, self._sides = connection, (mine, theirs)
        self._counts: dict[_Way, _Counts | None] = {}

    @classmethod
    def of(cls, mine: IndexedSide, theirs: IndexedSide) -> JoinedIndexes | None:
        """The indexes in two files; None if they have changed since."""
        connection = connected(mine.file.as_uri())
        try:
            connection.execute("ATTACH ? AS other", (theirs.file.as_uri(),))
            connection.execute("BEGIN")
            query = "SELECT file, bytes, tail, changed FROM {}.covered ORDER BY file"
            now = [connection.execute(query.format(name)).fetchall() for name in ("main", "other")]
            if now == [mine.covered, theirs.covered]:
                return cls(connection, mine, theirs)
        except sqlite3.Error:
            pass
        connection.close()
        return None

    def paired(self, mine: CellPlaces, theirs: CellPlaces) -> PairedCells | None:
        """The pairs of a variant of each; None if the runs name their cells differently."""
        way = mine.every, theirs.every, theirs.first - mine.first
        if way not in self._counts:
            self._counts[way] = self._counted_pairs(way)
        counts = self._counts[way]
        return None if counts is None else PairedCells(self._connection, self._sides, way, counts.get(mine.first, []))

    def _counted_pairs(self, way: _Way) -> _Counts | None:
        """Count the pairs of all variants at once, as each count looks at all cells."""
        mine, theirs = self._sides
        pairs: _Counts = defaultdict(list)
        try:
            rows = self._connection.execute(
                f"SELECT ({mine.kind('mine.')}) * {_KINDS} + {theirs.kind('theirs.')}, count(*), "
                "sum(mine.case_key <> theirs.case_key), max(mine.number) FROM main.cells mine "
                f"CROSS JOIN other.cells theirs ON theirs.number = {_JOINED} WHERE {_IN_CASE} GROUP BY 1",
                _values(way),
            )
            for both, n, differing, number in rows:
                if differing:
                    return None
                pairs[number % way[0]].append((*_two_kinds(both), n))  # cells of one kind are of one variant
        except sqlite3.Error:
            return None
        return pairs

    def close(self) -> None:
        self._connection.close()


class PairedCells:
    """See `CellPairs`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        sides: tuple[IndexedSide, IndexedSide],
        way: _Way,
        counts: list[tuple[int, int, int]],
    ) -> None:
        self._connection, self._sides, self._way = connection, sides, _values(way)
        self.counts: list[tuple[int, int, int]] = counts

    def cases(self, kinds: Collection[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
        mine, theirs = "main.cells mine", "other.cells theirs"
        query_form = "SELECT mine.case_key FROM {} CROSS JOIN {} ON {} WHERE {} AND {}"
        for one, other in kinds:
            (ours, few), (others, other_few) = (
                self._condition_of_kind("mine", 0, one),
                self._condition_of_kind("theirs", 1, other),
            )
            if other_few and not few:  # the smaller side leads to the other
                query = query_form.format(theirs, mine, f"mine.number = {_BACK}", others, ours)
            else:
                query = query_form.format(mine, theirs, f"theirs.number = {_JOINED}", ours, others)
            yield from ((case, one, other) for (case,) in self._connection.execute(query, self._way))

    def _condition_of_kind(self, table: str, side: int, kind: int) -> tuple[str, bool]:
        """The condition for the cells of a kind, and whether it finds them without looking at all cells."""
        if kind < 0:
            return f"{table}.number = {-1 - kind}", True
        of_kind = f"{table}.profile = {kind} AND {table}.numbers IS NULL"
        return (of_kind, False) if self._sides[side].clean[kind] else (f"{table}.clean = 0 AND {of_kind}", True)


def _values(way: _Way) -> dict[str, int]:
    return dict(zip(("every", "other_every", "further"), way, strict=True))


def _two_kinds(both: int) -> tuple[int, int]:
    """The kinds of two cells in one number."""
    one = (both + _KINDS // 2) // _KINDS
    return one, both - one * _KINDS
