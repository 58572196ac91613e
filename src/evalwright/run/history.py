"""What an interrupted or finished run already has, in one or two bytes per cell, so that the rest can be done."""

from __future__ import annotations

from array import array
from collections.abc import Set
from contextlib import closing, suppress
from operator import ge
from sys import byteorder

import msgspec

from evalwright.model.cell import Attempt
from evalwright.model.cell_index import CellIndex, CellSelection, StaleIndex, index_of, rereading
from evalwright.model.facts import VerdictFacts
from evalwright.model.protocols import RunReader
from evalwright.model.trace import Trace
from evalwright.run.cells import Grid
from evalwright.statistics.sums import ExactSum

__all__ = ["History", "history_of", "is_finished", "newest_traces", "unjudged_traces"]


class _CostMark(msgspec.Struct, frozen=True, gc=False):
    cost_usd: float | None = None


_NO_COST = _CostMark()


class _TraceMark(msgspec.Struct, gc=False):
    variant_name: str
    trial: int = 0
    attempt: Attempt = 1
    case_index: int | None = None
    error: object | None = None
    metrics: _CostMark = _NO_COST


class History(msgspec.Struct):
    """The newest attempt of each cell by its number; 0 if there is none.

    A cell is finished once the verdict of its newest trace is stored.
    """

    traced: array[int]
    judged: array[int]
    errored: bytearray
    """1 if the newest trace has an error."""
    passed: bytearray
    """1 if the newest verdict is pass or skip."""
    spent_usd: float = 0.0
    """The cost of all attempts together, including superseded ones."""

    def finished(self, number: int) -> bool:
        return self.traced[number] > 0 and self.judged[number] >= self.traced[number]

    @property
    def finished_cells(self) -> int:
        """How many cells are finished."""
        if self.judged == self.traced:  # usually true, and fast to check
            return len(self.traced) - self.traced.count(0)
        reached: int = sum(map(ge, self.judged, self.traced))
        return reached - self.traced.count(0)

    def unjudged(self) -> set[int]:
        return {n for n, attempt in enumerate(self.traced) if attempt > self.judged[n]}

    def answered(self, grid: Grid) -> set[str]:
        """The variants with a cell whose newest trace is an answer."""
        return {
            variant.name
            for variant in grid.variants
            if any(self.traced[n] and not self.errored[n] for n in grid.numbers_of(variant.name))
        }


@rereading
def history_of(reader: RunReader, grid: Grid) -> History:
    """Fold the records of a run; rows that belong to no cell of the grid are left out."""
    zeros = array("H", bytes(2 * grid.total))
    history = History(zeros, array("H", zeros), bytearray(grid.total), bytearray(grid.total))
    if (index := index_of(reader)) is not None:
        with closing(index):
            return _looked_up(index, history, grid)
    spent = ExactSum()
    for trace in reader.traces(_TraceMark):
        spent.add(trace.metrics.cost_usd or 0)
        number = grid.number(trace.case_index, trace.variant_name, trace.trial)
        if number is not None and trace.attempt >= history.traced[number]:
            history.traced[number] = trace.attempt
            history.errored[number] = trace.error is not None
    for verdict in reader.verdicts(VerdictFacts):
        number = grid.number(verdict.case_index, verdict.variant_name, verdict.trial)
        if number is not None and verdict.attempt >= history.judged[number]:
            history.judged[number] = verdict.attempt
            history.passed[number] = verdict.status in ("pass", "skip")
    history.spent_usd = spent.total
    return history


@rereading
def is_finished(reader: RunReader, grid: Grid) -> bool:
    """Whether an existing index says that every cell is finished; without an index it is not worth finding out."""
    if (index := index_of(reader, "never")) is None:
        return False
    with closing(index):
        return len(index) == grid.total and not index.count(CellSelection(statuses=[None]))


def _looked_up(index: CellIndex, history: History, grid: Grid) -> History:
    usual, others = index.attempts()
    usual = min(usual, grid.total)
    ones = array("H", b"\1\0" * usual if byteorder == "little" else b"\0\1" * usual)
    history.traced[:usual], history.judged[:usual], history.passed[:usual] = ones, ones, b"\1" * usual
    for number_in_run, attempt, errored, status in others:
        number = grid.number_here(number_in_run)
        if number is None:
            continue
        history.traced[number] = attempt
        history.judged[number] = 0 if status is None else attempt
        history.errored[number] = errored
        history.passed[number] = status in ("pass", "skip")
    history.spent_usd = index.sums().spent_usd
    return history


def unjudged_traces(reader: RunReader, grid: Grid, history: History) -> dict[int, Trace]:
    """The newest trace of each cell that a crash left without a verdict: only those that were in flight."""
    wanted = history.unjudged()
    if wanted and (index := index_of(reader)) is not None:
        with closing(index), suppress(StaleIndex):
            unfinished = ((grid.number_here(cell.number), cell) for cell in index.cells(CellSelection(statuses=[None])))
            return {number: index.records(cell).trace for number, cell in unfinished if number in wanted}
    return newest_traces(reader, grid, history, wanted)


def newest_traces(reader: RunReader, grid: Grid, history: History, wanted: Set[int]) -> dict[int, Trace]:
    """The newest traces of a few cells, by their numbers."""
    traces: dict[int, Trace] = {}
    if wanted:
        for trace in reader.traces(Trace):
            number = grid.number(trace.case_index, trace.variant_name, trace.trial)
            if number is not None and number in wanted and trace.attempt == history.traced[number]:
                traces[number] = trace
    return traces
