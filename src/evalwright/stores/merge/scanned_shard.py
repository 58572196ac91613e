"""A shard whose records are read once to find the newest ones of its cells.

For each cell, 36 bytes stay in memory and, until all are found, its name.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar, get_args

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.model.cell import Attempt, OfCase
from evalwright.model.facts import VerdictFacts
from evalwright.model.result import Status
from evalwright.stores.local_files.judgements import COMMITTED
from evalwright.stores.local_files.opened import open_if_there
from evalwright.stores.local_files.reader import RESULTS, TRACES, VERDICTS
from evalwright.stores.merge.cells import MergedCell, Rename, in_plan_order

__all__ = ["ScannedShard", "ShardGrid"]

T = TypeVar("T")

_UNTIDY = 255
_STATUSES: tuple[Status, ...] = get_args(Status)
_RECORDS = (TRACES, RESULTS, VERDICTS)


class ShardGrid(Protocol):
    """The cells of a shard, with their numbers in the shard and in the grid of the whole run."""

    total: int

    def number(self, case_index: int | None, variant_name: str, trial: int) -> int | None:
        """The number of a cell in the shard; None for a record whose cell is not in it."""

    def number_in_run(self, number: int) -> int:
        """The number in the whole run of the cell with this number in the shard."""


class _TraceMark(OfCase, gc=False):
    variant_name: str
    trial: int = 0
    attempt: Attempt = 1
    case_index: int | None = None


class _ResultMark(OfCase, gc=False):
    variant_name: str
    evaluator: str
    trial: int = 0
    attempt: Attempt = 1


class _Places:
    """Where in a file each cell's line, or adjacent lines, are; the length is 0 if there are none."""

    def __init__(self, cells: int) -> None:
        self.start: array[int] = array("Q", bytes(8 * cells))
        self.length: array[int] = array("I", bytes(4 * cells))
        self.more: dict[int, list[tuple[int, int]]] = {}
        """Further lines of a cell that are not adjacent to its first ones: only the few that a crash separated."""

    def put(self, number: int, start: int, length: int) -> None:
        self.start[number], self.length[number] = start, length

    def add(self, number: int, start: int, length: int) -> None:
        """Add after the lines that are already there."""
        if not self.length[number]:
            self.put(number, start, length)
        elif self.start[number] + self.length[number] == start:
            self.length[number] += length
        else:
            self.more.setdefault(number, []).append((start, length))


class ScannedShard:
    """The cells of one shard: for each, the last records of its highest attempt."""

    indexed = False

    def __init__(
        self, folder: Path, grid: ShardGrid, rename: Rename, evaluators: Sequence[str], *, keep_open: bool
    ) -> None:
        """The results of a cell are put in the order of `evaluators`. Raises InputError.

        Without `keep_open`, the files are opened for each cell.
        """
        cells = grid.total
        self._folder, self._grid, self._rename, self._keep_open = folder, grid, rename, keep_open
        self._order = {msgspec.json.encode(name): place for place, name in enumerate(evaluators)}
        self._traces, self._results, self._verdicts = _Places(cells), _Places(cells), _Places(cells)
        self._tidy = bytearray(cells)
        """Number of results of a cell if they are adjacent and in the order of the plan, else 255."""
        self.damage: list[str] = []
        """Unreadable lines, which are left out."""
        self.statuses: dict[Status, int] = self._located_cells(evaluators[: _UNTIDY - 1])
        """Number of cells by their verdict."""

    def _located_cells(self, names: Sequence[str]) -> dict[Status, int]:
        number_of, tidy, cells = self._grid.number, self._tidy, self._grid.total
        attempts: array[int] = array("H", bytes(2 * cells))
        numbers: dict[tuple[str, str, int], int] = {}
        for start, length, trace in _marks(self._folder, TRACES, _TraceMark, self.damage):
            number = number_of(trace.case_index, trace.variant_name, trace.trial)
            if number is not None and trace.attempt >= attempts[number]:
                attempts[number] = trace.attempt
                numbers[trace.case_key, trace.variant_name, trace.trial] = number
                self._traces.put(number, start, length)
        for start, length, row in _marks(self._folder, RESULTS, _ResultMark, self.damage):
            number = numbers.get((row.case_key, row.variant_name, row.trial))
            if number is not None and row.attempt == attempts[number]:
                self._results.add(number, start, length)
                place = tidy[number]
                in_order = place < len(names) and row.evaluator == names[place]
                tidy[number] = place + 1 if in_order else _UNTIDY
        states = bytearray(cells)
        for start, length, verdict in _marks(self._folder, VERDICTS, VerdictFacts, self.damage):
            number = number_of(verdict.case_index, verdict.variant_name, verdict.trial)
            if number is not None and verdict.attempt == attempts[number]:
                self._verdicts.put(number, start, length)
                states[number] = 1 + _STATUSES.index(verdict.status)
        return {status: states.count(place) for place, status in enumerate(_STATUSES, 1)}

    def cells(self) -> Iterator[MergedCell]:
        """Every cell that has a trace, in the order of the grid. Raises InputError, OSError."""
        rename, numbered = self._rename, self._grid.number_in_run
        with ExitStack() as stack:
            trace_of, rows_of, verdict_of = (
                _source(
                    self._folder,
                    name,
                    places,
                    stack.enter_context(_opened_records(self._folder, name)) if self._keep_open else None,
                )
                for name, places in zip(_RECORDS, (self._traces, self._results, self._verdicts), strict=True)
            )
            for number, length in enumerate(self._traces.length):
                if not length:
                    continue
                rows, count = rows_of(number), self._tidy[number]
                if count == _UNTIDY:
                    rows, count = in_plan_order(rows, self._order)
                yield MergedCell(
                    numbered(number), rename(trace_of(number), 1), rename(rows, count), rename(verdict_of(number), 1)
                )

    def close(self) -> None:
        """Without `keep_open`, nothing stays open between cells."""


def _marks(folder: Path, name: str, kind: type[T], damage: list[str]) -> Iterator[tuple[int, int, T]]:
    decode, start = msgspec.json.Decoder(kind).decode, 0
    with _opened_records(folder, name) as file:
        for line_number, line in enumerate(file, 1):
            try:
                yield start, len(line), decode(line)
            except (ValueError, RecursionError) as error:
                damage.append(f"{folder / name}:{line_number}: left out: {error}")
            start += len(line)


def _opened_records(folder: Path, name: str) -> BinaryIO:
    committed = folder / COMMITTED / name  # from a crash while results were replaced: see `judgements`
    file = open_if_there(committed) or open_if_there(folder / name)
    if file is None:
        raise InputError(Problem(str(folder / name), "does not exist"))
    return file


def _source(folder: Path, name: str, places: _Places, file: BinaryIO | None) -> Callable[[int], bytes]:
    starts, lengths, more = places.start, places.length, places.more

    def read(opened: BinaryIO, number: int) -> bytes:
        block = os.pread(opened.fileno(), lengths[number], starts[number])
        for start, length in more.get(number, ()):
            block += os.pread(opened.fileno(), length, start)
        return block if block.endswith(b"\n") else block + b"\n"  # a crash may have cut the end off the last line

    def of(number: int) -> bytes:
        if not lengths[number]:
            return b""
        if file is not None:
            return read(file, number)
        with _opened_records(folder, name) as opened:
            return read(opened, number)

    return of
