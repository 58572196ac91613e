"""Which trace of a cell counts if several were written: found with 8 bytes per trace, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import datetime

import msgspec

from evalwright.files.bulk import Repeats
from evalwright.model.cell import Attempt, OfCase
from evalwright.model.cell_index import index_of, rereading
from evalwright.model.facts import CellKey
from evalwright.model.protocols import RunReader

__all__ = ["NewestTraces", "newest_of"]


class _Cell(OfCase, gc=False):
    variant_name: str
    trial: int = 0

    @property
    def key(self) -> CellKey:
        return (self.case_key, self.variant_name, self.trial)


class _Mark(_Cell, gc=False):
    attempt: Attempt = 1
    started_at: datetime | None = None


class NewestTraces(msgspec.Struct):
    """The winners among the traces of cells that have several: highest attempt, then last in the file."""

    winners: dict[CellKey, tuple[int, datetime | None]]
    count: int
    """Number of cells with a trace."""

    def superseded(self, key: CellKey, attempt: int, started_at: datetime | None) -> bool:
        winner = self.winners.get(key)
        return winner is not None and winner != (attempt, started_at)


@rereading
def newest_of(reader: RunReader) -> NewestTraces:
    """Read the keys of all traces once, and those of repeated cells again; of runs that can tell without, neither."""
    if (index := index_of(reader, "never")) is not None:
        with closing(index):
            if not index.superseded():
                return NewestTraces({}, len(index))
    count_firsts: Callable[[], int | None] | None = getattr(reader, "count_first_attempts", None)
    if count_firsts is not None and (count := count_firsts()) is not None:
        return NewestTraces({}, count)
    repeats = Repeats()
    for cell in reader.traces(_Cell):
        repeats.add(cell.key)
    winners: dict[CellKey, tuple[int, datetime | None]] = {}
    seen: Counter[CellKey] = Counter()
    if repeated := repeats.hashes():
        for mark in reader.traces(_Mark):
            key = mark.key
            if hash(key) in repeated:
                seen[key] += 1
                if key not in winners or mark.attempt >= winners[key][0]:
                    winners[key] = (mark.attempt, mark.started_at)
    count = len(repeats) - seen.total() + len(seen)
    return NewestTraces({key: winner for key, winner in winners.items() if seen[key] > 1}, count)
