"""The stored records of single cells, as plain data."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from evalwright.errors import EvalwrightError
from evalwright.model.cell import Attempt, OfCase
from evalwright.model.cell_index import CellEntry, CellIndex, StaleIndex, index_of
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.model.trace import Trace, TraceError
from evalwright.viewer.table import CellRow
from evalwright.viewer.texts import pretty

__all__ = ["NO_RECORDS", "CellId", "CellReader", "ResultRow", "StoredCell", "stored_cells"]

CellId = tuple[str, str, int]
"""Case, variant and trial."""


class StoredCell(NamedTuple):
    """The newest trace of a cell, its results, its verdict, and the traces of earlier attempts."""

    case: dict[str, Any] | None
    trace: dict[str, Any]
    results: list[dict[str, Any]]
    verdict: dict[str, Any] | None
    earlier: list[dict[str, Any]]

    @property
    def answer(self) -> str:
        """The answer as text; empty if there is none."""
        output = self.trace.get("output") or {}
        if output.get("final_answer") is not None:
            return str(output["final_answer"])
        return "" if output.get("structured") is None else pretty(output["structured"])


NO_RECORDS = StoredCell(None, {}, [], None, [])


class _Ids(OfCase, msgspec.Struct, gc=False):
    case_id: str
    variant_name: str
    trial: int = 0


_ids = msgspec.json.Decoder(_Ids)


class ResultRow(OfCase, msgspec.Struct, gc=False):
    """The shown part of a result; other programs may leave out the rest."""

    case_id: str
    variant_name: str
    evaluator: str
    passed: bool
    evaluator_type: str = ""
    score: float | None = None
    reason: str = ""
    error: TraceError | None = None
    skipped: bool = False
    trial: int = 0
    attempt: Attempt = 1
    cost_usd: float | None = None
    hits: list[str] = []
    misses: list[str] = []
    detail: dict[str, msgspec.Raw] = {}


def stored_cells(reader: RunReader, wanted: Collection[CellId]) -> dict[CellId, StoredCell]:
    """The records of some cells, found by scanning all records; without their cases."""
    traces = _rows_of_cells(reader.traces, wanted, Trace)
    results = _rows_of_cells(reader.results, wanted, ResultRow)
    verdicts = _rows_of_cells(reader.verdicts, wanted, CaseVerdict)
    cells = {}
    for cell in traces.keys() | verdicts.keys():
        attempts = traces.get(cell, [])
        newest = max(range(len(attempts)), key=lambda i: (_attempt(attempts[i]), i)) if attempts else None
        trace = {} if newest is None else attempts.pop(newest)
        attempt = _attempt(trace or verdicts[cell][-1])
        rows = {row["evaluator"]: row for row in results.get(cell, ()) if _attempt(row) == attempt}
        verdict = [result for result in verdicts.get(cell, ()) if _attempt(result) == attempt]
        cells[cell] = StoredCell(None, trace, list(rows.values()), verdict[-1] if verdict else None, attempts)
    return cells


class CellReader:
    """Reads the records of one cell at a time: by the run's index, at the cost of that cell, else by a scan."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._index: CellIndex | None = None
        self._scanned: dict[CellId, StoredCell] = {}

    def prepare(self, rows: Sequence[CellRow]) -> None:
        """Read the records of those of these cells that the index does not know: one scan serves them all."""
        unknown = {_id(row) for row in rows if self._entry(row) is None}
        self._scanned = {**dict.fromkeys(unknown, NO_RECORDS), **stored_cells(self._reader, unknown)} if unknown else {}

    def records(self, row: CellRow) -> StoredCell:
        """Raises EvalwrightError."""
        cell = _id(row)
        records = self._scanned.get(cell) or self._indexed_cell(row)
        if records is None:
            records = stored_cells(self._reader, {cell}).get(cell, NO_RECORDS)
        return records._replace(case=_stored_case(self._reader, row.position))

    def _entry(self, row: CellRow) -> CellEntry | None:
        """None if the run has no index, or if it does not know the cell, or not all of its attempts."""
        if row.attempt > 1:
            return None
        if self._index is None:
            self._index = index_of(self._reader, "always")
            if self._index is None:
                return None
            # also at the end of the process: SQLite leaves files beside an index that is not closed
            weakref.finalize(self, self._index.close)
        return self._index.cell(*_id(row))

    def _indexed_cell(self, row: CellRow) -> StoredCell | None:
        try:
            entry = self._entry(row)
            if entry is None or self._index is None:
                return None
            records = self._index.records(entry)
        except StaleIndex:
            if self._index is not None:
                self._index.close()
            self._index = None
            return None
        trace, results, verdict = (msgspec.json.decode(msgspec.json.encode(record)) for record in records)
        return StoredCell(None, trace, results, verdict, [])


def _id(row: CellRow) -> CellId:
    return row.case_key, row.variant, row.trial


def _stored_case(reader: RunReader, position: int) -> dict[str, Any] | None:
    """The case at a position of the dataset; None if it cannot be read."""
    try:
        case = reader.case(position)
    except EvalwrightError:
        return None
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(case))  # including values kept as raw JSON
    return plain


def _attempt(record: dict[str, Any]) -> int:
    number: int = record.get("attempt", 1)
    return number


def _rows_of_cells(
    records: Callable[[Any], Iterator[Any]], wanted: Collection[CellId], kind: type
) -> dict[CellId, list[dict[str, Any]]]:
    """The records of cells as they are stored. Of every record only the ids are read; the rest only for these cells.

    JSON that is not such a record is left out; the notes on unreadable records name it.
    """
    cells: dict[CellId, list[dict[str, Any]]] = defaultdict(list)
    for raw in records(msgspec.Raw):
        line = bytes(raw)
        try:
            ids = _ids.decode(line)
        except msgspec.ValidationError:
            continue
        if (cell := (ids.case_key, ids.variant_name, ids.trial)) in wanted:
            with suppress(msgspec.ValidationError):
                msgspec.json.decode(line, type=kind)
                cells[cell].append(msgspec.json.decode(line))
    return cells
