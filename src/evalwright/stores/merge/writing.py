"""The records of many shards as those of one run, in the order of its grid.

A line is parsed only at its top level, to give it the merged run's id; all its values keep their bytes. If all shards
have an index, the merged run's index is built from theirs along the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from heapq import merge
from pathlib import Path
from typing import Protocol

from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.stores.index.assembly import JoinedIndex
from evalwright.stores.local_files.reader import RESULTS, TRACES, VERDICTS
from evalwright.stores.merge.cells import MergedCell
from evalwright.stores.merge.copies import created_file

__all__ = ["MergedShard", "write_merged"]


class MergedShard(Protocol):
    """One shard of a run that is being merged."""

    indexed: bool
    """Whether each of its cells comes with its entry for the merged run's index."""

    @property
    def statuses(self) -> Mapping[Status, int]:
        """Number of cells by their verdict."""

    @property
    def damage(self) -> Sequence[str]:
        """Unreadable lines, which are left out."""

    def cells(self) -> Iterator[MergedCell]:
        """Every cell that has a trace, in the order of the whole run's grid."""


def write_merged(shards: Sequence[MergedShard], folder: Path, plan: Plan) -> None:
    """Write the records of all cells into new files of a folder, durably.

    Raises StorageError, InputError, and StaleIndex if a shard's records are not those that its index knows.
    """
    index = JoinedIndex(folder, plan) if all(shard.indexed for shard in shards) else None
    with ExitStack() as stack:
        if index is not None:
            stack.callback(index.close)
        with ExitStack() as files:
            traces, results, verdicts = (
                files.enter_context(created_file(folder / name)).write for name in (TRACES, RESULTS, VERDICTS)
            )
            for _, trace, rows, verdict, known in merge(*(shard.cells() for shard in shards)):
                traces(trace)
                results(rows)
                verdicts(verdict)
                if index is not None and known is not None:
                    index.add(known.row, known.profile, known.numbers, len(trace), known.lengths, len(verdict))
        if index is not None:
            index.finish()
