"""A shard whose index tells where the newest records of its cells are: no record is read to find them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec

from evalwright.model.cell_index import StaleIndex
from evalwright.model.result import Status
from evalwright.stores.index.codes import Profile, reordered
from evalwright.stores.index.reading import RunIndex
from evalwright.stores.index.rows import id_of_row, places_of, results_block
from evalwright.stores.index.schema import AT, TRACE_PLACE, VERDICT_PLACE
from evalwright.stores.local_files.reader import RESULTS, TRACES, VERDICTS
from evalwright.stores.merge.cells import IndexedCell, MergedCell, Rename

__all__ = ["IndexedShard"]

_AT_ONCE = 64
"""Cells of a shard whose records are read together: many, so that each costs less; few, so that many shards fit in
memory."""
_encode = msgspec.json.encode


class IndexedShard:
    """The cells of one shard, each with its entry for the merged run's index."""

    indexed = True
    damage: Sequence[str] = ()
    """Empty: a run with unreadable lines has no index."""

    def __init__(self, index: RunIndex, rename: Rename, evaluators: Sequence[str]) -> None:
        """The results of a cell are put in the order of `evaluators`."""
        self._index, self._rename = index, rename
        order = {name: place for place, name in enumerate(evaluators)}
        self._orders = {number: _order_of(profile, order) for number, profile in index.profiles.items()}
        self.statuses: dict[Status, int] = dict.fromkeys(get_args(Status), 0)
        """Number of cells by their verdict."""
        for count in index.counts():
            if count.status is not None:
                self.statuses[count.status] += count.n

    def cells(self) -> Iterator[MergedCell]:
        """Every cell, in the order of the grid. Raises OSError, and StaleIndex if the records are not those it
        knows."""
        read, rows = self._index.lines, self._index.rows()
        while block := rows.fetchmany(_AT_ONCE):
            traces = read(TRACES, [row[TRACE_PLACE] for row in block])
            results = read(RESULTS, [results_block(row) for row in block])
            verdicts = read(VERDICTS, [row[VERDICT_PLACE] for row in block])
            yield from map(self._cell, block, traces, results, verdicts)

    def _cell(self, row: Sequence[Any], trace: bytes, results: bytes, verdict: bytes) -> MergedCell:
        rename, profile, order = self._rename, self._index.profiles[row[AT.profile]], self._orders[row[AT.profile]]
        numbers = row[AT.numbers]
        if row[AT.results_at] is None:
            results = b"".join(self._index.lines(RESULTS, places_of(row)))
        begin = b'{"case_id":%b,' % _encode(id_of_row(row))
        for lines in (trace, results, verdict):
            if lines and not (lines.startswith(begin) and lines.endswith(b"\n")):
                raise StaleIndex(f"{TRACES} at {row[AT.trace_at]:,}: the cell has other records")
        results = rename(results, len(profile[3]))
        rows = results.splitlines(keepends=True)
        if len(rows) != len(profile[3]):
            raise StaleIndex(f"{RESULTS} at {row[AT.results_at]:,}: other records")
        if order is not None:
            rows = [rows[place] for place in order]
            results = b"".join(rows)
            profile, numbers = reordered(profile, numbers, order)
        known = IndexedCell(row, profile, numbers, list(map(len, rows)))
        return MergedCell(row[AT.number], rename(trace, 1), results, rename(verdict, 1), known)


def _order_of(profile: Profile, order: Mapping[str, int]) -> list[int] | None:
    """The places of results in the order of the evaluators, others after them; None if they are already in that
    order."""
    ranks = [order.get(name, len(order)) for name, _ in profile[3]]
    return None if ranks == sorted(ranks) else sorted(range(len(ranks)), key=ranks.__getitem__)
