"""Which cells of a run are audited: as many as are asked for, by a hash of what they are, whatever their order."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from itertools import chain, islice

from evalwright.model.cell import cell_key
from evalwright.model.facts import CellKey
from evalwright.model.protocols import RunReader
from evalwright.model.result import FAILED, CaseVerdict, Status
from evalwright.model.trace import Output, Trace
from evalwright.reports.failures import newest_verdicts
from evalwright.run.newest import newest_of

__all__ = ["Donors", "Sample"]

_DONORS = 20


class Sample:
    """Up to `limit` cells that passed and as many that failed."""

    def __init__(self, reader: RunReader, limit: int) -> None:
        self._reader = reader
        self.passed: int = 0
        """Cells of the run that passed, chosen or not."""
        self._chosen = dict.fromkeys(nsmallest(limit, self._counted(), key=_place), True)
        failed = map(_key, newest_verdicts(reader, FAILED))
        self._chosen |= dict.fromkeys(nsmallest(limit, failed, key=_place), False)

    def __len__(self) -> int:
        return len(self._chosen)

    def _counted(self) -> Iterator[CellKey]:
        wanted: tuple[Status, ...] = ("pass",)
        for verdict in newest_verdicts(self._reader, wanted):
            self.passed += 1
            yield _key(verdict)

    def traces(self) -> Iterator[tuple[Trace, bool]]:
        """The newest trace of each chosen cell, and whether the cell passed; in the order in which they are stored."""
        newest = newest_of(self._reader)
        for trace in self._reader.traces(Trace):
            key = _key(trace)
            if key in self._chosen and not newest.superseded(key, trace.attempt, trace.started_at):
                yield trace, self._chosen[key]


def _key(cell: Trace | CaseVerdict) -> CellKey:
    return cell.case_key, cell.variant_name, cell.trial


def _place(key: CellKey) -> str:
    return cell_key(*key)


class Donors:
    """Answers of a few cases, to stand in place of those of others."""

    def __init__(self, traces: Iterator[tuple[Trace, bool]]) -> None:
        first = list(islice(traces, _DONORS))
        self.traces: Iterator[tuple[Trace, bool]] = chain(first, traces)
        """The traces, those that were looked at included."""
        self._answers = [(trace.case_key, trace.output) for trace, _ in first if trace.output.final_answer]

    def other_than(self, trace: Trace) -> Output | None:
        """A different answer, of another case; None if there is none."""
        this_answer = (trace.output.final_answer or "").strip()
        others = [
            answer
            for case, answer in self._answers
            if case != trace.case_key and (answer.final_answer or "").strip() != this_answer
        ]
        return others[int(_place(_key(trace)), 16) % len(others)] if others else None
