"""Gives the index of a run whose cells were all re-evaluated their new judgements; its data about traces stays.

All that an index notes about a judgement is known when it is written, except its position in the joined file. So each
share has notes beside its records, one per cell in the order of the records. Reading the new records instead takes
several times as long.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any, BinaryIO

import msgspec

from evalwright.model.facts import RejudgedCell, Rejudgement
from evalwright.stores.index.codes import Profile, Unindexable, profile_of
from evalwright.stores.index.file import covered_by, meta_of
from evalwright.stores.index.numbering import PlanNumbering
from evalwright.stores.index.rows import microseconds
from evalwright.stores.index.sources import RECORDS, Source
from evalwright.stores.index.table import RowTable

__all__ = ["CellNotes", "rejudge"]

_TRACES, _RESULTS, _VERDICTS = RECORDS
_UPDATE = (
    "UPDATE cells SET profile = ?, clean = ?, results_at = ?, results_packed = ?, finished = ?, verdict_at = ?, "
    "verdict_len = ?, numbers = ?, score = ? WHERE number = ? AND attempt = ?"
)
_MOST_ALIKE = 10_000
_SIZE = 8


class _Note(msgspec.Struct, array_like=True, gc=False):
    """The judged parts of a cell's row, with lengths in place of positions."""

    number: int
    attempt: int
    profile: int
    results: int
    packed: bytes | None
    finished: int | None
    verdict: int
    numbers: bytes | None
    score: float | None


class _Block(msgspec.Struct, array_like=True):
    profiles: list[Profile]
    """Those in no earlier block: notes refer to them by their places among all profiles of the share."""
    notes: list[_Note]


class CellNotes:
    """The notes of one share, in a file."""

    def __init__(self, file: BinaryIO, numbering: PlanNumbering) -> None:
        self._file, self._numbering = file, numbering
        self._encode = msgspec.msgpack.Encoder().encode
        self._profiles: dict[Profile, int] = {}
        self._known: dict[int, tuple[Rejudgement, int, bytes | None]] = {}

    def add(self, cells: Sequence[RejudgedCell], results: bytes, verdicts: bytes) -> bool:
        """Note cells whose lines were written, with the time of the last of them; False for cells that an index cannot
        hold, or not in this form."""
        try:
            self._add(cells, results, verdicts)
        except (Unindexable, OverflowError, OSError):
            return False
        return True

    def _add(self, cells: Sequence[RejudgedCell], results: bytes, verdicts: bytes) -> None:
        lengths, sizes = ([*map(len, BytesIO(lines).readlines())] for lines in (results, verdicts))
        if len(sizes) != len(cells):
            raise Unindexable("a verdict is not of these cells")
        known, place = self._known, self._numbering.place
        begun, at = len(self._profiles), 0
        notes = []
        for (case_index, trial, attempt, finished, alike), size in zip(cells, sizes, strict=True):
            _, profile, numbers = known.get(id(alike)) or self._added_profile(alike)
            cell_place = place(case_index, alike.variant, trial)
            end = at + len(alike.results)
            if cell_place is None or end > len(lengths):
                raise Unindexable("a record is of no cell of the plan")
            cell_lengths = lengths[at:end]
            packed = array("H", cell_lengths).tobytes() if cell_lengths else None
            moment = microseconds(finished)
            notes.append(
                _Note(cell_place[0], attempt, profile, sum(cell_lengths), packed, moment, size, numbers, alike.score)
            )
            at = end
        if at != len(lengths):
            raise Unindexable("a result is not of these cells")
        block = self._encode(_Block([*self._profiles][begun:], notes))
        self._file.write(len(block).to_bytes(_SIZE, "little") + block)

    def _added_profile(self, alike: Rejudgement) -> tuple[Rejudgement, int, bytes | None]:
        profile, numbers = profile_of(alike)
        profiled = alike, self._profiles.setdefault(profile, len(self._profiles)), numbers
        if len(self._known) < _MOST_ALIKE:  # kept with the object, so that no other gets its identity
            self._known[id(alike)] = profiled
        return profiled


def rejudge(connection: sqlite3.Connection, source: Source, shares: Iterable[BinaryIO]) -> bool:
    """Put the notes of all shares into an index in which only the judgements are out of date.

    False if they do not belong to its cells: the index is then unchanged, and must be rebuilt.
    """
    covered = covered_by(connection)
    with source.moment() as moment:
        if meta_of(connection, "odd") or covered.get(_TRACES) != moment.covered(_TRACES, moment.ends[_TRACES]):
            return False
        connection.execute("BEGIN IMMEDIATE")
        try:
            cells, most = connection.execute("SELECT count(*), max(number) FROM cells").fetchone()
            table, rows = RowTable(connection), _Rows(0 if most is None else most + 1)
            changed = connection.executemany(_UPDATE, rows.of(table, shares)).rowcount
            ends = (moment.ends[_RESULTS], moment.ends[_VERDICTS])
            if not (changed == cells == sum(rows.seen)) or (rows.results, rows.verdicts) != ends:
                connection.execute("ROLLBACK")
                return False
            table.recount()
            table.note({name: moment.covered(name, moment.ends[name]) for name in RECORDS}, 0, ())
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return True


class _Rows:
    """The parameters of updates, with positions."""

    def __init__(self, numbers: int) -> None:
        self.results = self.verdicts = 0
        """Where the next records begin."""
        self.seen = bytearray(numbers)
        """Which cells have a note, by their numbers."""

    def of(self, table: RowTable, shares: Iterable[BinaryIO]) -> Iterator[tuple[Any, ...]]:
        for share in shares:
            profiles: list[tuple[int, bool]] = []
            for block in _blocks(share):
                profiles += map(table.profile, block.profiles)
                for note in block.notes:
                    profile, clean = profiles[note.profile]
                    at = None if note.packed is None else self.results
                    self.seen[note.number] = 1  # a number too high is an error: the index has no such cell
                    yield (
                        profile,
                        int(clean and note.attempt == 1),
                        at,
                        note.packed,
                        note.finished,
                        self.verdicts,
                        note.verdict,
                        note.numbers,
                        note.score,
                        note.number,
                        note.attempt,
                    )
                    self.results += note.results
                    self.verdicts += note.verdict


def _blocks(share: BinaryIO) -> Iterator[_Block]:
    decode = msgspec.msgpack.Decoder(_Block).decode
    while size := share.read(_SIZE):
        yield decode(share.read(int.from_bytes(size, "little")))
