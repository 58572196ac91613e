"""Results and verdicts of cells whose traces can no longer be read: they are kept when all others are re-evaluated."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextlib import closing

import msgspec

from evalwright.model.cell import attempt_key
from evalwright.model.cell_index import CellSelection, index_of, rereading
from evalwright.model.protocols import JudgementShare, RunWriter
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.newest import NewestTraces

__all__ = ["judged_before", "keep_judgements", "lost_traces"]


class _Row(msgspec.Struct, gc=False):
    pass


@rereading
def judged_before(writer: RunWriter) -> int:
    """The number of stored verdicts; in an indexed run, where none can be superfluous, of those that count.

    Raises InputError for a result, verdict or summary of a later major version: what cannot be read must not be
    replaced.
    """
    writer.summary()
    if (index := index_of(writer, "never")) is not None:
        with closing(index):
            return len(index) - index.count(CellSelection(statuses=[None]))
    count: Callable[[], int] | None = getattr(writer, "count_verdicts", None)
    if count is not None:
        return count()
    for _ in writer.results(_Row):
        pass
    return sum(1 for _ in writer.verdicts(_Row))


def lost_traces(writer: RunWriter, before: int, judged: int) -> bool:
    """Whether there may be results of cells other than those that were judged."""
    return before > judged or any(note.startswith("traces") for note in writer.damage)


def keep_judgements(judged: Iterable[Trace], writer: RunWriter, newest: NewestTraces, share: JudgementShare) -> int:
    """Copy the results and verdicts of cells that are not among the `judged`; returns the number of cells.

    Eight bytes are held for each trace.
    """
    read = _Attempts()
    for trace in judged:
        if not newest.superseded((trace.case_key, trace.variant_name, trace.trial), trace.attempt, trace.started_at):
            read.add(trace)
    read.sort()
    for result in writer.results(EvaluationResult):
        if not read.has_this_or_later(result):
            share.append_results([result])
    cells = set()
    for verdict in writer.verdicts(CaseVerdict):
        if not read.has_this_or_later(verdict):
            share.append_verdict(verdict)
            cells.add((verdict.case_key, verdict.variant_name, verdict.trial))
    return len(cells)


class _Attempts:
    """The judged attempts at cells, by their hashes."""

    def __init__(self) -> None:
        self._hashes = array("q")
        self._most = 0

    def add(self, trace: Trace) -> None:
        self._hashes.append(hash(attempt_key(trace)))
        self._most = max(self._most, trace.attempt)

    def sort(self) -> None:
        self._hashes = array("q", sorted(self._hashes))

    def has_this_or_later(self, record: EvaluationResult | CaseVerdict) -> bool:
        cell = (record.case_key, record.variant_name, record.trial)
        return any(hash((*cell, attempt)) in self for attempt in range(record.attempt, self._most + 1))

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self._hashes, number)
        return place < len(self._hashes) and self._hashes[place] == number
