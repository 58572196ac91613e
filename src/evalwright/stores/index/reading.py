"""Reading a run index: counts, selected cells, and their records at the places that it has noted."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import wraps
from itertools import chain, islice, repeat
from math import inf, isfinite
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import msgspec

from evalwright.errors import InputError
from evalwright.model.cell import OfCase, attempt_key
from evalwright.model.cell_index import (
    CellAttempts,
    CellCount,
    CellEntry,
    CellIndex,
    CellMeasure,
    CellMeasures,
    CellOrder,
    CellOutcome,
    CellPlaces,
    CellRecords,
    CellSelection,
    CellSum,
    CellSums,
    StaleIndex,
)
from evalwright.model.result import CaseVerdict, EvaluationResult, Status
from evalwright.model.trace import Trace
from evalwright.statistics.sums import exact_sum
from evalwright.stores.index.codes import Profile, clean_profile, outcomes_of, shared_outcomes
from evalwright.stores.index.connection import damaged, in_memory, index_files, sound
from evalwright.stores.index.file import covered_by
from evalwright.stores.index.pairs import IndexedSide, JoinedIndexes, PairedCells
from evalwright.stores.index.rows import cell_entry, moment_of, places_of
from evalwright.stores.index.schema import AT, KIND, TRACE_PLACE, VERDICT_PLACE
from evalwright.stores.index.selection import clause_of, fitting_profiles
from evalwright.stores.index.sources import RECORDS, Source
from evalwright.stores.index.sums import KeptSums
from evalwright.stores.index.table import loaded_profiles
from evalwright.stores.local_files.lines import CURRENT, decoded_line

__all__ = ["RunIndex"]

R = TypeVar("R", Trace, EvaluationResult, CaseVerdict)
V = TypeVar("V", bound=OfCase)
T = TypeVar("T")
P = ParamSpec("P")
_Row = tuple[Any, ...]

_ALL = CellSelection()
_BLOCK, _VERDICTS, _CELLS = 10_000, 1000, 10
"""Rows, verdicts and whole cells that are passed on together: many, so that each costs little; few, so that memory does
not grow with the run, nor much with traces of megabytes."""
_ORDERS: dict[CellOrder, str] = {"stored": "trace_at", "dataset": "number"}

_decode_trace = msgspec.json.Decoder(Trace).decode
_decode_result = msgspec.json.Decoder(EvaluationResult).decode
_decode_verdict = msgspec.json.Decoder(CaseVerdict).decode


def _raising_damaged(read: Callable[P, T]) -> Callable[P, T]:
    """A method, or an iterator, that raises DamagedIndex if it fails at what it reads from the tables."""

    @wraps(read)
    def reading(*given: P.args, **named: P.kwargs) -> T:
        index = cast(RunIndex, given[0])
        with sound(index._connection):
            value = read(*given, **named)
        return cast(T, _rows(index._connection, value)) if isinstance(value, Iterator) else value

    return reading


def _rows(connection: sqlite3.Connection, rows: Iterator[T]) -> Iterator[T]:
    with sound(connection):
        yield from rows


class RunIndex:
    """The `CellIndex` of a run, over one state of its tables: later changes are not seen."""

    def __init__(self, connection: sqlite3.Connection, source: Source) -> None:
        """The connection has an open transaction, and is closed together with this object, as is the source."""
        self._connection, self._source = connection, source
        self.profiles: dict[int, Profile] = loaded_profiles(connection)
        with sound(connection):
            self._numbers = msgspec.convert(dict(connection.execute("SELECT id, n FROM profiles")), dict[int, int])
            sums = connection.execute("SELECT id, sums FROM profiles WHERE n > 0")
            self._sums = {number: KeptSums.of_text(text) for number, text in sums}
        self._outcomes: dict[int, Sequence[CellOutcome]] = {}
        self._joined: dict[RunIndex, JoinedIndexes | None] = {}

    @property
    def path(self) -> Path | None:
        """The file that contains it; None for one in memory."""
        return next(iter(index_files(self._connection)), None)

    def __len__(self) -> int:
        return sum(self._numbers.values())

    @_raising_damaged
    def counts(self) -> list[CellCount]:
        return [
            CellCount(n, *profile[:3], shared_outcomes(profile), number, self._sums[number].measured)  # type: ignore[arg-type]
            for number, profile in self.profiles.items()
            if (n := self._numbers[number])
        ]

    @_raising_damaged
    def count(self, chosen: CellSelection = _ALL) -> int:
        if chosen.case is None and chosen.trial is None and chosen.case_contains is None and not chosen.singular:
            return sum(self._numbers[number] for number in fitting_profiles(chosen, self.profiles))
        where, values = clause_of(chosen, self.profiles)
        (n,) = self._connection.execute(f"SELECT count(*) FROM cells {where}", values).fetchone()
        return int(n)

    @_raising_damaged
    def cells(
        self,
        chosen: CellSelection = _ALL,
        order: CellOrder = "dataset",
        *,
        descending: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> Iterator[CellEntry]:
        page = f" LIMIT {-1 if limit is None else int(limit)} OFFSET {int(offset)}"
        return map(self._entry, self._sorted_rows(chosen, order, "DESC" if descending else "ASC", page))

    def _sorted_rows(self, chosen: CellSelection, order: CellOrder, way: str = "ASC", page: str = "") -> sqlite3.Cursor:
        where, values = clause_of(chosen, self.profiles)
        by = f"{_ORDERS[order]} {way}" if order in _ORDERS else f"{order} IS NULL, {order} {way}, number"
        return self._connection.execute(f"SELECT * FROM cells {where} ORDER BY {by}{page}", values)

    @_raising_damaged
    def cell(self, case: str, variant: str, trial: int = 0) -> CellEntry | None:
        rows = self._connection.execute("SELECT * FROM cells WHERE case_key = ? AND trial = ?", (case, trial))
        of_variant = [row for row in rows if self.profiles[row[AT.profile]][0] == variant]
        return self._entry(of_variant[0]) if of_variant else None

    @_raising_damaged
    def measured(self, variant: str) -> Iterator[CellMeasures]:
        """By one narrow query: reading rows with all columns takes twice as long."""
        columns = f"case_key, group_name, latency_ms, cost_usd, tokens_in, tokens_out, {KIND.format('')}"
        where, values = clause_of(CellSelection(variant=variant), self.profiles)
        rows = self._connection.execute(f"SELECT {columns} FROM cells {where} ORDER BY number", values)
        while block := rows.fetchmany(_BLOCK):
            yield CellMeasures(*zip(*block, strict=True))

    @_raising_damaged
    def total(self, measure: CellMeasure, alike: Collection[int]) -> CellSum:
        sums = KeptSums.together(self._sums[number] for number in alike)
        if measure == "latency_ms":
            return CellSum(sums.latency_ms.n, float(sums.latency_ms.total))
        if all(map(isfinite, sums.cost_parts)):
            return CellSum(sums.costs, exact_sum(sums.cost_parts))
        spread = self.spread(measure, alike)
        return CellSum(sum(n for _, n in spread), sum(value * n for value, n in spread))

    @_raising_damaged
    def spread(self, measure: CellMeasure, alike: Collection[int]) -> list[tuple[float, int]]:
        those = "" if set(alike) >= self._sums.keys() else f"profile IN ({', '.join(map(str, alike))}) AND"
        return self._connection.execute(
            f"SELECT {measure}, count(*) FROM cells WHERE {those} {measure} IS NOT NULL GROUP BY 1 ORDER BY 1"
        ).fetchall()

    def pairs(self, other: CellIndex, mine: CellPlaces, theirs: CellPlaces) -> PairedCells | None:
        if not isinstance(other, RunIndex):
            return None
        if other not in self._joined:
            here, there = self._side(), other._side()
            self._joined[other] = None if here is None or there is None else JoinedIndexes.of(here, there)
        joined = self._joined[other]
        return None if joined is None else joined.paired(mine, theirs)

    def _side(self) -> IndexedSide | None:
        if (path := self.path) is None:
            return None
        clean = {number: clean_profile(profile) for number, profile in self.profiles.items()}
        return IndexedSide(path, self._covered_rows(), clean, any(sums.measured for sums in self._sums.values()))

    def _covered_rows(self) -> list[tuple[Any, ...]]:
        return self._connection.execute("SELECT file, bytes, tail, changed FROM covered ORDER BY file").fetchall()

    @_raising_damaged
    def sums(self) -> CellSums:
        sums = KeptSums.together(self._sums.values())
        spent = exact_sum([*sums.cost_parts, *self._column("replaced")]) if sums.known else inf
        return _cell_sums(sums, spent) if isfinite(spent) else self._added_up()

    def _added_up(self) -> CellSums:
        """The same, by looking at every cell."""
        measures = ("latency_ms", "tokens_in", "tokens_out")
        sums = ", ".join(f"count({name}), sum({name})" for name in measures)
        cursor = self._connection.execute(
            f"SELECT {sums}, max(finished), count(group_name), count(numbers) FROM cells"
        ).fetchone()
        latency, tokens_in, tokens_out = (CellSum(cursor[i], float(cursor[i + 1] or 0)) for i in (0, 2, 4))
        # Summed here and not by SQL, whose sums of floats depend on the order of the rows.
        costs, replaced = self._column("cells"), self._column("replaced")
        cost, spent = CellSum(len(costs), exact_sum(costs)), exact_sum(costs + replaced)
        return CellSums(latency, cost, tokens_in, tokens_out, moment_of(cursor[6]), cursor[7], cursor[8], spent)

    def _column(self, table: str) -> array[float]:
        rows = self._connection.execute(f"SELECT cost_usd FROM {table} WHERE cost_usd IS NOT NULL")
        return array("d", chain.from_iterable(rows))

    @_raising_damaged
    def superseded(self) -> int:
        (traces,) = self._connection.execute("SELECT value FROM meta WHERE name = 'traces'").fetchone()
        return int(traces) - len(self)

    @_raising_damaged
    def attempts(self) -> CellAttempts:
        (most,) = self._connection.execute("SELECT max(number) FROM cells").fetchone()
        # If every number up to the highest is there, those left out are known without looking at them.
        usual = 0 if most is None or most + 1 > len(self) else len(self)
        few = "WHERE clean = 0" if usual else ""
        return CellAttempts(usual, self._attempts(f"SELECT number, attempt, profile FROM cells {few}"))

    @_raising_damaged
    def _attempts(self, query: str) -> Iterator[tuple[int, int, bool, Status | None]]:
        for number, attempt, profile in self._connection.execute(query):
            _, status, error, _ = self.profiles[profile]
            yield number, attempt, error is not None, status  # type: ignore[misc]

    @_raising_damaged
    def records(self, entry: CellEntry) -> CellRecords:
        [records] = self._records_of([self._row_of(entry)])
        return records

    @_raising_damaged
    def chosen_records(self, chosen: CellSelection = _ALL, order: CellOrder = "dataset") -> Iterator[CellRecords]:
        rows = self._sorted_rows(chosen, order)
        while block := rows.fetchmany(_CELLS):
            yield from self._records_of(block)

    @_raising_damaged
    def verdict(self, entry: CellEntry) -> CaseVerdict | None:
        return self._verdicts_of([self._row_of(entry)])[0]

    @_raising_damaged
    def verdicts(self, kind: type[V], chosen: CellSelection) -> Iterator[V]:
        where, values = clause_of(chosen, self.profiles)
        query = f"SELECT case_key, verdict_at, verdict_len FROM cells {where} ORDER BY verdict_at"
        rows = self._connection.execute(query, values)
        decode = msgspec.json.Decoder(kind).decode
        while block := rows.fetchmany(_VERDICTS):
            written = [row for row in block if row[2]]
            verdicts = self._read(RECORDS[2], kind, decode, [(at, length) for _, at, length in written])
            if [verdict.case_key for verdict in verdicts if verdict is not None] != [case for case, _, _ in written]:
                raise self._stale(f"{RECORDS[2]}: other records")
            yield from (verdict for verdict in verdicts if verdict is not None)

    def rows(self) -> sqlite3.Cursor:
        """The rows of all cells as the table has them, by number."""
        return self._connection.execute("SELECT * FROM cells ORDER BY number")

    def lines(self, name: str, places: Sequence[tuple[int, int]]) -> list[bytes]:
        """The contents of a file of records at these places."""
        return self._source.lines(name, places)

    def close(self) -> None:
        for joined in self._joined.values():
            if joined is not None:
                joined.close()
        self._joined.clear()
        self._source.close()
        self._connection.close()

    def _entry(self, row: Sequence[Any]) -> CellEntry:
        number = row[AT.profile]
        profile = self.profiles[number]
        if row[AT.numbers] is not None:
            return cell_entry(row, profile, outcomes_of(profile, row[AT.numbers]))
        outcomes = self._outcomes.get(number)
        if outcomes is None:
            outcomes = self._outcomes[number] = outcomes_of(profile, None)
        return cell_entry(row, profile, outcomes)

    def _row_of(self, entry: CellEntry) -> _Row:
        query = "SELECT * FROM cells WHERE number = ?"
        return cast(_Row, self._connection.execute(query, (entry.number,)).fetchone())

    def _records_of(self, rows: Sequence[_Row]) -> Iterator[CellRecords]:
        """The records of each of these cells."""
        traces = self._of_cells(RECORDS[0], Trace, _decode_trace, rows, [[row[TRACE_PLACE]] for row in rows])
        results = self._of_cells(RECORDS[1], EvaluationResult, _decode_result, rows, list(map(places_of, rows)))
        return map(CellRecords, chain.from_iterable(traces), results, self._verdicts_of(rows))

    def _verdicts_of(self, rows: Sequence[_Row]) -> list[CaseVerdict | None]:
        places = [[] if self.profiles[row[AT.profile]][1] is None else [row[VERDICT_PLACE]] for row in rows]
        return [next(iter(v), None) for v in self._of_cells(RECORDS[2], CaseVerdict, _decode_verdict, rows, places)]

    def _of_cells(
        self,
        name: str,
        kind: type[R],
        decode: Callable[[bytes], R],
        rows: Sequence[_Row],
        places: Sequence[Sequence[tuple[int, int]]],
    ) -> list[list[R]]:
        """The records at each cell's places, if they are that cell's. Raises StaleIndex."""
        decoded = iter(self._read(name, kind, decode, [*chain.from_iterable(places)]))
        records = []
        for row, those in zip(rows, places, strict=True):
            cell = (row[AT.case_key], self.profiles[row[AT.profile]][0], row[AT.trial], row[AT.attempt])
            read = islice(decoded, len(those))
            of_cell = [record for record in read if record is not None and attempt_key(record) == cell]
            if len(of_cell) < len(those):
                raise self._stale(f"{name} at {those[0][0]:,}: another record")
            records.append(of_cell)
        return records

    def _read(
        self, name: str, kind: type[V], decode: Callable[[bytes], V], places: Sequence[tuple[int, int]]
    ) -> list[V | None]:
        """The values of the lines at these places. Raises StaleIndex."""
        try:
            lines = self._source.lines(name, places) if places else []  # other programs' folders have no verdicts
            if all(map(bytes.endswith, lines, repeat(CURRENT))):
                return list(map(decode, lines))
            return [decoded_line(kind, decode, line) for line in lines]
        except (OSError, ValueError, RecursionError, InputError) as error:
            first = places[0][0] if places else 0
            raise self._stale(f"{name} at {first:,}: {error}") from error

    def _stale(self, what: str) -> StaleIndex:
        """The error for records that are not where they were noted: they have changed since, or the index has."""
        if not in_memory(self._connection) and self._source.matches(covered_by(self._connection)):
            return damaged(self._connection, what)
        return StaleIndex(f"{self._source.location}: {what}")


def _cell_sums(sums: KeptSums, spent: float) -> CellSums:
    latency, tokens_in, tokens_out = (
        CellSum(kept_sum.n, float(kept_sum.total)) for kept_sum in (sums.latency_ms, sums.tokens_in, sums.tokens_out)
    )
    cost, moment = CellSum(sums.costs, exact_sum(sums.cost_parts)), moment_of(sums.finished)
    return CellSums(latency, cost, tokens_in, tokens_out, moment, sums.grouped, sums.measured, spent)
