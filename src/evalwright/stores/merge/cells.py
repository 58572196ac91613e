"""One cell of a merged run: its records as lines with that run's id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from evalwright.stores.index.codes import Profile

__all__ = ["IndexedCell", "MergedCell", "Rename", "in_plan_order", "renaming"]

Rename = Callable[[bytes, int], bytes]
"""In a block of this many lines, replaces the shard's id by the merged run's."""
_record = msgspec.json.Decoder(dict[str, msgspec.Raw])


class IndexedCell(NamedTuple):
    """A cell's row in a shard's index, for the merged run's index."""

    row: Sequence[Any]
    """As in the shard: the profile, the numbers and all places differ in the merged run."""
    profile: Profile
    numbers: bytes | None
    lengths: Sequence[int]
    """Of its results, which are adjacent."""


class MergedCell(NamedTuple):
    """The lines of a cell's records, including their ends."""

    number: int
    """In the grid of the whole run."""
    trace: bytes
    results: bytes
    verdict: bytes
    known: IndexedCell | None = None


def renaming(old: str, new: str) -> Rename:
    """A function that replaces the shard's id by the merged run's in lines."""
    own_id = msgspec.json.encode(new)
    key = b'"run_id":'
    before, after = key + msgspec.json.encode(old), key + own_id

    def rename(block: bytes, lines: int) -> bytes:
        # Records begin with their fields in the same order, and a string cannot contain unescaped quotes: if there are
        # as many places as lines, they are those of the records themselves. A system's output may contain the same key
        # and value, too.
        parts = block.split(before)
        if len(parts) == lines + 1 or not block:
            return after.join(parts)
        return b"".join(_with_run_id(line, own_id) for line in block.splitlines())

    return rename


def _with_run_id(line: bytes, own_id: bytes) -> bytes:
    record = _record.decode(line)
    record["run_id"] = msgspec.Raw(own_id)
    return msgspec.json.encode(record) + b"\n"


def in_plan_order(block: bytes, order: Mapping[bytes, int]) -> tuple[bytes, int]:
    """The rows of a cell, and their number: the last one of each evaluator, in the order of the plan, others as they
    come."""
    rows: dict[bytes, bytes] = {}
    for line in block.splitlines(keepends=True):
        rows[bytes(_record.decode(line)["evaluator"])] = line
    names = sorted(rows, key=lambda name: order.get(name, len(order)))
    return b"".join(rows[name] for name in names), len(names)
