"""Bring an index up to the end of a run's records from wherever it is; from the start, this builds a new one.

Traces, results and verdicts are read side by side in shares of their length, each kind a share behind the one before,
so that the records of a cell meet in memory. A cell is written once its verdict has been read, or at the end. The
cells, and how far the records have been read, become durable in one transaction: a crash leaves the previous state.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from evalwright.errors import InputError
from evalwright.model.cell import Attempt, OfCase, case_key
from evalwright.model.facts import ResultFacts, TraceFacts
from evalwright.model.result import CaseVerdict, EvaluationResult, Status
from evalwright.model.trace import Trace
from evalwright.stores.index.cells import CellState, results_in_cells
from evalwright.stores.index.codes import Unindexable
from evalwright.stores.index.schema import AT, slot_of
from evalwright.stores.index.sources import RECORDS, CoveredRecords, RecordLines, RecordsAtMoment, Source
from evalwright.stores.index.table import RowTable
from evalwright.stores.index.written_cells import Stretch
from evalwright.stores.local_files.lines import CURRENT, decoded_line

__all__ = ["Follower", "Numbering"]

_WAITING = 20_000
"""Unfinished cells that wait in memory for their verdicts. If there are more, verdicts are missing, as in foreign
folders."""
_SEEN = 1 << 24
"""Bits that tell which cells may already be written, so that few others have to be looked up."""


class Numbering(Protocol):
    """The numbering of the cells of a plan."""

    def place(self, case_index: int | None, variant: str, trial: int) -> tuple[int, int] | None:
        """Number of the cell in the run, and place within its case; None for a cell that is not in the plan."""


class _Verdict(OfCase, gc=False):
    case_id: str
    variant_name: str
    status: Status
    trial: int = 0
    attempt: Attempt = 1
    case_index: int | None = None
    score: float | None = None


_WHOLE: tuple[type[Any], ...] = (Trace, EvaluationResult, CaseVerdict)
"""Foreign records are read whole, to find those that a scan could not read."""
_PARTS: tuple[type[Any], ...] = (TraceFacts, ResultFacts, _Verdict)
"""Records that this process has just written are read only as far as the index needs."""


class Follower:
    """Reads what was appended to the records into an index. Used by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, source: Source, numbering: Numbering | None) -> None:
        self._connection, self._source, self._numbering = connection, source, numbering
        self.covered: dict[str, CoveredRecords] = {
            name: CoveredRecords(*rest)
            for name, *rest in connection.execute("SELECT file, bytes, tail, changed FROM covered")
        }
        self._table = RowTable(connection)
        self._next: int | None = None
        self._cells: dict[tuple[str, str, int], CellState] = {}
        """Of which records were read since the last commit."""
        self._unfinished: dict[tuple[str, str, int], CellState] = {}
        """Written without a verdict, which will follow soon in a run that is being written."""
        self._replaced: list[float] = []
        self._traces = 0
        self._seen = None if self._table.profiles else bytearray(_SEEN >> 3)

    def follow(self, *, trusted: bool = False, last: bool = True, written: Sequence[Stretch] = ()) -> None:
        """Read what is new, in one transaction. `trusted` records have just been written by this program, and those of
        the `written` stretches need not be read.

        Unless it is the `last` time, cells need not be found by their names quickly afterwards, and what follows the
        last stretch is left to the next time.

        Raises Unindexable for records that an index would report differently from a scan, RecordsReplaced,
        sqlite3.Error, and whatever the source raises.
        """
        with self._source.moment() as moment:
            starts = {name: self.covered.get(name, CoveredRecords()).length for name in RECORDS}
            if moment.ends == starts and len(self.covered) == len(RECORDS) and (self._table.named or not last):
                return
            self._connection.execute("BEGIN IMMEDIATE")
            states: dict[tuple[str, str, int], CellState] = {}
            try:
                kinds = _PARTS if trusted else _WHOLE
                at, joined = self._join(moment, starts, written, kinds)
                if last or not joined:
                    at = self._read(moment, at, moment.ends, kinds)
                self._write(list(self._cells.values()))
                if last:
                    self._table.name_cells()
                covered = {name: moment.covered(name, at[name]) for name in RECORDS}
                self._table.note(covered, self._traces, self._replaced)
                self._connection.execute("COMMIT")
                self.covered = covered
                states = self._unfinished
                states.update((key, cell) for key, cell in self._cells.items() if cell.status is None)
            except (ValueError, TypeError, RecursionError, InputError, OverflowError) as error:
                raise Unindexable(str(error)) from error
            except sqlite3.IntegrityError as error:
                raise Unindexable("two cells have one name") from error
            finally:
                self._cells.clear()
                self._unfinished = states if len(states) <= _WAITING else {}
                self._replaced.clear()
                self._traces = 0
                # After a failure, nothing that was read may be left: neither profiles nor marks of what was written.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                    self._table = RowTable(self._connection)

    def follow_or_note(self, *, trusted: bool = False, last: bool = True, written: Sequence[Stretch] = ()) -> None:
        """The same; a run that cannot have an index is marked as such, so that the next reader scans at once."""
        try:
            self.follow(trusted=trusted, last=last, written=written)
        except Unindexable as odd:
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('odd', ?)", (str(odd) or "odd",))

    def _join(
        self, moment: RecordsAtMoment, starts: dict[str, int], written: Sequence[Stretch], kinds: tuple[type[Any], ...]
    ) -> tuple[dict[str, int], bool]:
        """Take the cells of stretches, and read what lies between them. Returns how far that goes, and whether any
        stretch was taken."""
        at, joined = starts, False
        rows: dict[int, list[Any]] = {}
        for stretch in written:
            begin = dict(zip(RECORDS, stretch.starts, strict=True))
            if any(begin[name] < at[name] for name in RECORDS):
                continue  # its first part was read from the files
            if at != begin:
                self._insert(rows)
                at = self._read(moment, at, begin, kinds)
            if at == begin and (rows_found := self._rows_of(stretch.rows, rows)) is not None:
                rows |= rows_found
                at, joined = dict(zip(RECORDS, stretch.ends, strict=True)), True
        self._insert(rows)
        return at, joined

    def _rows_of(self, rows: Sequence[list[Any]], waiting: Collection[int]) -> dict[int, list[Any]] | None:
        """The rows of cells that have just been written, by their numbers; None if a cell has a row already, maybe a
        `waiting` one: their records must be read then."""
        rows_by_key = {}
        for row in rows:
            number, profile = row[AT.number], row[AT.profile]
            key = (row[AT.case_key], profile[0], row[AT.trial])
            if number in waiting or number in rows_by_key or key in self._cells:
                return None
            if self._stored_state(key, number) is not None:
                return None
            row[AT.profile], row[AT.clean] = self._table.profile(profile)
            rows_by_key[number] = row
        return rows_by_key

    def _insert(self, rows: dict[int, list[Any]]) -> None:
        self._table.insert([*rows.values()])
        self._traces += len(rows)
        rows.clear()

    def _read(
        self, moment: RecordsAtMoment, starts: Mapping[str, int], ends: Mapping[str, int], kinds: tuple[type[Any], ...]
    ) -> dict[str, int]:
        """Read share by share. Returns how far the records were read: to the end of the last whole line."""
        at = dict(starts)
        takes = (self._take_traces, self._take_results, self._take_verdicts)
        decoders = [(kind, msgspec.json.Decoder(kind).decode) for kind in kinds]
        shares = moment.shares(starts, ends)
        for share in range(1, shares + 1):
            last = share == shares
            # Traces first: a cell has a number by then. If its verdict came before its last result, it would be written
            # twice.
            parts = (share, share, share) if last else (share, share - 1, share - 2)
            for name, decoder, take, part in zip(RECORDS, decoders, takes, parts, strict=True):
                until = starts[name] + (ends[name] - starts[name]) * part // shares
                lines, at[name] = moment.read(name, at[name], until)
                take(_records(lines, *decoder))
            if not last:
                self._write_finished()
        return at

    def _take_traces(self, records: Iterator[tuple[Any, int, int]]) -> None:
        for trace, at, length in records:
            self._traces += 1
            place = self._place_in_plan(trace)
            cell = self._cell(trace, None if place is None else place[0])
            if cell.number is None:
                cell.number, cell.slot = place or self._next_place(cell)
            elif cell.case_index != trace.case_index:
                raise Unindexable("two cases have one name")
            replaced = cell.add_trace(trace, at, length)
            if replaced is not None:
                self._replaced.append(replaced)

    def _take_results(self, records: Iterator[tuple[Any, int, int]]) -> None:
        for results, at, lengths in results_in_cells(records):
            self._cell(results).add_results(results, at, lengths)

    def _take_verdicts(self, records: Iterator[tuple[Any, int, int]]) -> None:
        for verdict, at, length in records:
            self._cell(verdict).add_verdict(verdict, at, length)

    def _cell(self, record: Any, number: int | None = None) -> CellState:
        """The cell of a record; with its number if that is known."""
        case: str = record.case_id if record.occurrence is UNSET else case_key(record.case_id, record.occurrence)
        key = (case, record.variant_name, record.trial)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._unfinished.pop(key, None) or self._stored_state(key, number) or CellState.of(record)
            self._cells[key] = cell
        return cell

    def _stored_state(self, key: tuple[str, str, int], number: int | None) -> CellState | None:
        """The cell as it was written earlier."""
        if self._seen is not None:
            bit = hash(key) & (_SEEN - 1)
            if not self._seen[bit >> 3] >> (bit & 7) & 1:
                self._seen[bit >> 3] |= 1 << (bit & 7)
                return None
        if number is not None:
            row = self._connection.execute("SELECT * FROM cells WHERE number = ?", (number,)).fetchone()
            if row is not None and row[AT.case_key] != key[0]:
                raise Unindexable("a case has two names")
        else:
            self._table.name_cells()
            row = self._connection.execute(
                "SELECT c.* FROM cells c JOIN profiles p ON p.id = c.profile "
                "WHERE c.case_key = ? AND p.variant = ? AND c.trial = ?",
                key,
            ).fetchone()
        return None if row is None else CellState.of_row(row, self._table.profiles[row[AT.profile]])

    def _place_in_plan(self, trace: Any) -> tuple[int, int] | None:
        """Number and slot of a trace's cell by the plan, if there is one."""
        if self._numbering is None:
            return None
        place = self._numbering.place(trace.case_index, trace.variant_name, trace.trial)
        if place is None:
            raise Unindexable("a record belongs to no cell of the plan")
        return place

    def _next_place(self, cell: CellState) -> tuple[int, int]:
        """The same without a plan."""
        if self._next is None:
            (most,) = self._connection.execute("SELECT max(number) FROM cells").fetchone()
            self._next = 0 if most is None else most + 1
        number, self._next = self._next, self._next + 1
        return number, slot_of(f"{cell.trial} {cell.variant}")

    def _write_finished(self) -> None:
        """Write the cells that have their verdict; the others stay, unless there are too many."""
        finished = [cell for cell in self._cells.values() if cell.status is not None and not cell.early]
        self._write(finished)
        if len(finished) == len(self._cells):
            self._cells.clear()
            return
        self._cells = {key: cell for key, cell in self._cells.items() if cell.status is None or cell.early}
        if len(self._cells) > _WAITING:
            placed = [cell for cell in self._cells.values() if not cell.early and cell.number is not None]
            self._write(placed)
            self._cells = {key: cell for key, cell in self._cells.items() if cell.early or cell.number is None}
            if len(self._cells) > _WAITING:
                raise Unindexable("results without their traces")

    def _write(self, cells: list[CellState]) -> None:
        new: list[tuple[Any, ...]] = []
        changed: list[tuple[Any, ...]] = []
        replaced: list[tuple[Any, ...]] = []
        numbered = self._table.profile
        for cell in cells:
            if cell.number is None or cell.early:
                raise Unindexable("a record has no trace")
            rows = new
            if cell.old_row is not None:
                replaced.append(cell.old_row)
                rows = changed
            row = cell.row(*numbered(cell.profile))
            rows.append(row)
            cell.old_row = row
        self._table.insert(new)
        self._table.replace(changed, replaced)


def _records(found: RecordLines, kind: type[Any], decode: Callable[[bytes], Any]) -> Iterator[tuple[Any, int, int]]:
    """The record in each line, where it starts, and how long it is."""
    lines, starts, lengths = found
    if all(map(bytes.endswith, lines, repeat(CURRENT))):
        return zip(map(decode, lines), starts, lengths)  # noqa: B905 - a start is left over: that of the next line
    return _converted_records(found, kind, decode)


def _converted_records(
    lines: RecordLines, kind: type[Any], decode: Callable[[bytes], Any]
) -> Iterator[tuple[Any, int, int]]:
    """The same for lines of which some have other versions."""
    for line, at, length in zip(*lines):  # noqa: B905
        record = decoded_line(kind, decode, line)
        if record is not None:
            yield record, at, length
