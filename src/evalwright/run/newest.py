"""Which trace of a cell counts when several were written: found in 8 bytes a trace, whatever their number."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import msgspec

from evalwright.model.protocols import RunReader

__all__ = ["Newest", "newest_of"]

_BUCKETS = 64
"""The hashes are looked through in this many shares, so that only one of them is ever in a set."""

Key = tuple[str, str, int]


class _Mark(msgspec.Struct, gc=False):
    case_id: str
    variant_name: str
    trial: int = 0
    attempt: int = 1
    started_at: datetime | None = None

    @property
    def key(self) -> Key:
        return (self.case_id, self.variant_name, self.trial)


class Newest(msgspec.Struct):
    """The winners among the cells that have more than one trace: highest attempt, then last in the file."""

    winners: dict[Key, tuple[int, datetime | None]]
    count: int
    """Number of cells with a trace."""

    def superseded(self, key: Key, attempt: int, started_at: datetime | None) -> bool:
        winner = self.winners.get(key)
        return winner is not None and winner != (attempt, started_at)


def newest_of(reader: RunReader) -> Newest:
    """Read the keys of all traces once, and those of repeated cells again."""
    buckets = [array("q") for _ in range(_BUCKETS)]
    for mark in reader.traces(_Mark):
        value = hash(mark.key)
        buckets[value % _BUCKETS].append(value)
    winners: dict[Key, tuple[int, datetime | None]] = {}
    seen: Counter[Key] = Counter()
    if repeated := {value for bucket in buckets for value in _repeated(bucket)}:
        for mark in reader.traces(_Mark):
            key = mark.key
            if hash(key) in repeated:
                seen[key] += 1
                if key not in winners or mark.attempt >= winners[key][0]:
                    winners[key] = (mark.attempt, mark.started_at)
    count = sum(map(len, buckets)) - seen.total() + len(seen)
    return Newest({key: winner for key, winner in winners.items() if seen[key] > 1}, count)


def _repeated(hashes: array[int]) -> Iterator[int]:
    once: set[int] = set()
    for value in hashes if len(set(hashes)) < len(hashes) else ():
        if value in once:
            yield value
        once.add(value)
