"""The cells of a stored run: the newest trace of each with its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from evalwright.files.bulk import Repeats, collector_paused
from evalwright.model.facts import AttemptFacts, CellKey, ResultFacts, TraceFacts
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.scoring.verdict import passes_over_errored

__all__ = ["SupersededRecords", "newest_cells", "newest_places", "over_cells", "streamed_cells"]

T = TypeVar("T")
_CellFacts = tuple[TraceFacts, Collection[ResultFacts]]


class SupersededRecords(Exception):
    """The run has a record that a newer one replaces: its cells cannot be read one by one."""


class _Cell:
    """A cell with records that have not been read yet."""

    __slots__ = ("rows", "trace")

    def __init__(self) -> None:
        self.trace: TraceFacts | None = None
        self.rows: dict[str, ResultFacts] = {}


def over_cells(reader: RunReader, plan: Plan | None, read: Callable[[Iterator[_CellFacts]], T]) -> T:
    """What `read` makes of the cells of a run, one by one where nothing is superseded.

    It may be called twice: from the start, where some of what it was given turns out to be replaced by newer records.
    """
    if plan is None or plan.evaluators_by_case:
        return read(newest_cells(reader))
    evaluators = len(plan.evaluators)
    try:
        return read(streamed_cells(reader, evaluators, errored=0 if passes_over_errored(plan) else evaluators))
    except SupersededRecords:
        return read(newest_cells(reader))


def streamed_cells(reader: RunReader, evaluators: int, *, errored: int) -> Iterator[_CellFacts]:
    """Every cell of a run in which nothing is superseded, in about the order of its traces.

    A cell has `evaluators` results, one whose system errored `errored`. Traces and results are read side by side. Only
    cells with records still unread are kept in memory; of all others eight bytes remain, a hash that reveals a second
    trace. Raises SupersededRecords, possibly after the last cell.
    """
    seen = Repeats()
    unread: dict[CellKey, _Cell] = {}
    for record in _side_by_side(reader, evaluators, errored):
        key = (record.case_key, record.variant_name, record.trial)
        cell = unread.get(key)
        if cell is None:
            cell = unread[key] = _Cell()
        if isinstance(record, TraceFacts):
            again, cell.trace = cell.trace is not None, record
            seen.add(key)
        else:
            again, cell.rows[record.evaluator] = record.evaluator in cell.rows, record
        if again or record.attempt != 1:
            raise SupersededRecords
        if cell.trace is not None and len(cell.rows) == (evaluators if cell.trace.error is None else errored):
            del unread[key]
            yield cell.trace, cell.rows.values()
    for cell in unread.values():
        if cell.trace is None:  # a late row of a finished cell, or of a trace that cannot be read
            raise SupersededRecords
        yield cell.trace, cell.rows.values()
    if seen.hashes():
        raise SupersededRecords


def _side_by_side(reader: RunReader, evaluators: int, errored: int) -> Iterator[TraceFacts | ResultFacts]:
    """Each trace, followed by as many rows as a cell has: both files are written cell by cell."""
    rows = reader.results(ResultFacts)
    for trace in reader.traces(TraceFacts):
        yield trace
        yield from islice(rows, evaluators if trace.error is None else errored)
    yield from rows


def newest_cells(reader: RunReader) -> Iterator[_CellFacts]:
    """The newest trace of each cell with its results, in the order in which cells first appear; holds them all.

    The highest attempt wins, and among equal ones the last in the file; likewise the last of an evaluator's rows on it.
    """
    with collector_paused():
        traces = _newest_traces(reader)
        rows = _rows_of(reader, traces)
    for key, trace in traces.items():
        yield trace, rows.get(key, {}).values()


def _newest_traces(reader: RunReader) -> dict[CellKey, TraceFacts]:
    traces: dict[CellKey, TraceFacts] = {}
    for trace in reader.traces(TraceFacts):
        key = (trace.case_key, trace.variant_name, trace.trial)
        known = traces.get(key)
        if known is None or trace.attempt >= known.attempt:
            traces[key] = trace
    return traces


def _rows_of(reader: RunReader, traces: dict[CellKey, TraceFacts]) -> dict[CellKey, dict[str, ResultFacts]]:
    rows: dict[CellKey, dict[str, ResultFacts]] = {}
    for row in reader.results(ResultFacts):
        key = (row.case_key, row.variant_name, row.trial)
        newest = traces.get(key)
        if newest is not None and row.attempt == newest.attempt:
            of_cell = rows.get(key)
            if of_cell is None:
                of_cell = rows[key] = {}
            of_cell[row.evaluator] = row
    return rows


def newest_places(read: Callable[[], Iterable[AttemptFacts]]) -> dict[CellKey, int] | None:
    """Of cells with several records, the position of the one that counts: the highest attempt, then the last. None if
    there is no record at all. Keeps eight bytes of each cell; `read` is called again only if there are such cells."""
    cells = Repeats()
    for mark in read():
        cells.add((mark.case_key, mark.variant_name, mark.trial))
    if not len(cells):
        return None
    newest: dict[CellKey, tuple[int, int]] = {}
    repeated = cells.hashes()
    for place, mark in enumerate(read()) if repeated else ():
        if hash(key := (mark.case_key, mark.variant_name, mark.trial)) in repeated:
            newest[key] = max((mark.attempt, place), newest.get(key, (0, 0)))
    return {key: place for key, (_, place) in newest.items()}
