"""Bring an index up to the end of a run's records from wherever it is; from the start, this builds a new one.

Traces, results and verdicts are read side by side in shares of their length, verdicts one share behind, so that the
records of a cell meet in memory. A cell is written once its verdict has been read, or at the end. The cells, and how
far the records have been read, become durable in one transaction: a crash leaves the previous state.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from evalwright.errors import InputError
from evalwright.model.cell import OfCase
from evalwright.model.facts import ResultFacts, TraceFacts
from evalwright.model.result import CaseVerdict, EvaluationResult, Status
from evalwright.model.trace import Trace
from evalwright.stores.index.cells import CellState, Odd
from evalwright.stores.index.schema import case_hash
from evalwright.stores.index.sources import RECORDS, Covered, Moment, RecordLines, Source
from evalwright.stores.index.table import RowTable
from evalwright.stores.local_files.lines import CURRENT, decoded_line

__all__ = ["Follower", "Numbering"]

_WAITING = 20_000
"""Unfinished cells that wait in memory for their verdicts. If there are more, verdicts are missing, as in foreign
folders."""
_SEEN = 1 << 24
"""Bits that tell which names may already be written, so that few others have to be looked up."""


class Numbering(Protocol):
    """The numbering of the cells of a plan."""

    def place(self, case_index: int | None, variant: str, trial: int) -> tuple[int, int] | None:
        """Number of the cell in the run, and place within its case; None for a cell that is not in the plan."""


class _Verdict(OfCase, gc=False):
    case_id: str
    variant_name: str
    status: Status
    trial: int = 0
    attempt: int = 1
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
        self.covered: dict[str, Covered] = {
            name: Covered(*rest) for name, *rest in connection.execute("SELECT file, bytes, tail, changed FROM covered")
        }
        self._table = RowTable(connection)
        self._next: int | None = None
        self._cells: dict[tuple[str, str, int], CellState] = {}
        self._replaced: list[float] = []
        self._traces = 0
        self._seen = None if self._table.profiles else bytearray(_SEEN >> 3)

    def follow(self, *, trusted: bool = False) -> None:
        """Read what is new, in one transaction. `trusted` records have just been written by this program.

        Raises Odd for records that an index would report differently from a scan, Replaced, sqlite3.Error, and whatever
        the source raises.
        """
        with self._source.moment() as moment:
            starts = {name: self.covered.get(name, Covered()).length for name in RECORDS}
            if moment.ends == starts and len(self.covered) == len(RECORDS):
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                at = self._read(moment, starts, _PARTS if trusted else _WHOLE)
                self._write(list(self._cells.values()))
                self.covered = {name: moment.covered(name, at[name]) for name in RECORDS}
                self._table.note(self.covered, self._traces, self._replaced)
                self._connection.execute("COMMIT")
            except (ValueError, TypeError, RecursionError, InputError, OverflowError) as error:
                raise Odd(str(error)) from error
            except sqlite3.IntegrityError as error:
                raise Odd("two cells have one name") from error
            finally:
                # After a failure, nothing that was read may be left: neither profiles nor marks of what was written.
                self._cells.clear()
                self._replaced.clear()
                self._table.forget()
                self._traces = 0
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def follow_or_note(self, *, trusted: bool = False) -> None:
        """The same; a run that cannot have an index is marked as such, so that the next reader scans at once."""
        try:
            self.follow(trusted=trusted)
        except Odd as odd:
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('odd', ?)", (str(odd) or "odd",))

    def _read(self, moment: Moment, starts: Mapping[str, int], kinds: tuple[type[Any], ...]) -> dict[str, int]:
        """Read share by share. Returns how far the records were read: to the end of the last whole line."""
        at = dict(starts)
        takes = (self._take_traces, self._take_results, self._take_verdicts)
        decoders = [(kind, msgspec.json.Decoder(kind).decode) for kind in kinds]
        shares = moment.shares(starts)
        for share in range(1, shares + 1):
            last = share == shares
            # If a verdict is read before the last result of its cell, the cell is written twice.
            parts = (share, share, share if last else share - 1)
            for name, decoder, take, part in zip(RECORDS, decoders, takes, parts, strict=True):
                until = starts[name] + (moment.ends[name] - starts[name]) * part // shares
                lines, at[name] = moment.read(name, at[name], until)
                take(_records(lines, *decoder))
            if not last:
                self._write_finished()
        return at

    def _take_traces(self, records: Iterator[tuple[Any, int, int]]) -> None:
        for trace, at, length in records:
            self._traces += 1
            cell = self._cell(trace)
            if cell.number is None:
                self._placed(cell, trace.case_index)
            elif cell.case_index != trace.case_index:
                raise Odd("two cases have one name")
            replaced = cell.add_trace(trace, at, length)
            if replaced is not None:
                self._replaced.append(replaced)

    def _take_results(self, records: Iterator[tuple[Any, int, int]]) -> None:
        last = None
        for result, at, length in records:
            if (
                last is None  # the results of a cell are adjacent
                or result.case_id != last.case_id
                or result.trial != last.trial
                or result.variant_name != last.variant_name
                or result.occurrence != last.occurrence
            ):
                cell = self._cell(result)
            last = result
            cell.add_result(result, at, length)

    def _take_verdicts(self, records: Iterator[tuple[Any, int, int]]) -> None:
        for verdict, at, length in records:
            self._cell(verdict).add_verdict(verdict, at, length)

    def _cell(self, record: Any) -> CellState:
        case = record.case_id if record.occurrence is UNSET else record.case_key
        key = (case, record.variant_name, record.trial)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = self._stored(key) or CellState(record)
        return cell

    def _stored(self, key: tuple[str, str, int]) -> CellState | None:
        """The cell as it was written earlier."""
        if self._seen is not None:
            bit = hash(key) & (_SEEN - 1)
            if not self._seen[bit >> 3] >> (bit & 7) & 1:
                self._seen[bit >> 3] |= 1 << (bit & 7)
                return None
        found = self._connection.execute(
            "SELECT c.* FROM names n JOIN cells c ON c.number = n.number JOIN profiles p ON p.id = c.profile "
            "WHERE n.hash = ? AND p.variant = ? AND c.trial = ?",
            (case_hash(key[0]), key[1], key[2]),
        ).fetchall()
        if any(row[1] != key[0] for row in found):
            raise Odd("two names have one hash")
        return CellState.of_row(found[0], self._table.profiles[found[0][7]]) if found else None

    def _placed(self, cell: CellState, case_index: int | None) -> None:
        if self._numbering is not None:
            found = self._numbering.place(case_index, cell.variant, cell.trial)
            if found is None:
                raise Odd("a record belongs to no cell of the plan")
            cell.number, cell.slot = found
            return
        if self._next is None:
            (most,) = self._connection.execute("SELECT max(number) FROM cells").fetchone()
            self._next = 0 if most is None else most + 1
        cell.number, self._next = self._next, self._next + 1
        cell.slot = case_hash(f"{cell.trial} {cell.variant}")

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
                raise Odd("results without their traces")

    def _write(self, cells: list[CellState]) -> None:
        new: list[tuple[Any, ...]] = []
        changed: list[tuple[Any, ...]] = []
        replaced: list[tuple[Any, ...]] = []
        numbered = self._table.profile
        for cell in cells:
            if cell.number is None or cell.early:
                raise Odd("a record has no trace")
            rows = new
            if cell.old_row is not None:
                replaced.append(cell.old_row)
                rows = changed
            rows.append(cell.row(*numbered(cell.profile)))
        self._table.insert(new)
        self._table.replace(changed, replaced)


def _records(found: RecordLines, kind: type[Any], decode: Callable[[bytes], Any]) -> Iterator[tuple[Any, int, int]]:
    """The record in each line, where it starts, and how long it is."""
    lines, starts, lengths = found
    if all(map(bytes.endswith, lines, repeat(CURRENT))):
        return zip(map(decode, lines), starts, lengths)  # noqa: B905 - a start is left over: that of the next line
    return _converted(found, kind, decode)


def _converted(found: RecordLines, kind: type[Any], decode: Callable[[bytes], Any]) -> Iterator[tuple[Any, int, int]]:
    """The same for lines of which some have other versions."""
    for line, at, length in zip(*found):  # noqa: B905
        record = decoded_line(kind, decode, line)
        if record is not None:
            yield record, at, length
