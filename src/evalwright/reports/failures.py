"""The cells of a run that did not pass, with the newest verdict of each, found in one pass and little memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from evalwright.errors import InputError
from evalwright.model.cell_index import CellIndex, CellSelection, DamagedIndex, StaleIndex, index_of
from evalwright.model.facts import AttemptFacts
from evalwright.model.protocols import RunReader
from evalwright.model.result import FAILED, CaseVerdict, Status
from evalwright.model.summary import RunSummary
from evalwright.reports.order import First, order_of
from evalwright.scoring.newest import newest_places

__all__ = [
    "Failures",
    "failures_title",
    "find_failures",
    "finished_index",
    "first_verdicts",
    "indexed_or_scanned",
    "newest_verdicts",
    "ordered_verdicts",
]

T = TypeVar("T")

_ERRORED: tuple[Status, ...] = ("error",)


@dataclass(slots=True)
class Failures:
    """The first cells that failed or are borderline, the first without a verdict, and the total of each."""

    failed: list[CaseVerdict] = field(default_factory=list)
    errored: list[CaseVerdict] = field(default_factory=list)
    failed_total: int = 0
    errored_total: int = 0
    scored: bool = False
    """Whether the suite has only scores: then a score below 1 is not a failure."""

    @property
    def title(self) -> str:
        return failures_title(self.scored)


def failures_title(scored: bool) -> str:
    """The title for the cells that did not pass; in a suite that has only scores, none failed."""
    return "Scores below 1" if scored else "Failures"


def find_failures(reader: RunReader, summary: RunSummary, limit: int) -> Failures:
    """The first `limit` cells of each kind, in the order of the dataset.

    Totals are the summary's: a run without failures reads no records.
    """
    failures = Failures(
        failed_total=_count(summary, *FAILED),
        errored_total=_count(summary, "error"),
        scored=summary.scored is True,
    )
    if not failures.failed_total + failures.errored_total:
        return failures
    wanted: list[tuple[Collection[Status], int]] = [(FAILED, limit), (_ERRORED, limit)]
    failures.failed, failures.errored = first_verdicts(reader, summary, wanted)
    return failures


def first_verdicts(
    reader: RunReader, summary: RunSummary, wanted: Sequence[tuple[Collection[Status], int]]
) -> list[list[CaseVerdict]]:
    """For each kind, its first cells with one of its statuses, up to its number, in the order of the dataset."""
    if (index := finished_index(reader)) is not None:
        with closing(index), suppress(StaleIndex):
            return [list(_verdicts(index, statuses, most)) for statuses, most in wanted]
    place = order_of(summary.variants)
    kinds: list[First[CaseVerdict]] = [First(most, place) for _, most in wanted]
    for verdict in _scanned_verdicts(reader):
        for (statuses, _), kind in zip(wanted, kinds, strict=True):
            if verdict.status in statuses:
                kind.add(verdict)
    return [kind.sorted() for kind in kinds]


def finished_index(reader: RunReader) -> CellIndex | None:
    """The index of a run in which the newest attempt of every cell has its verdict; otherwise reports scan the run."""
    index = index_of(reader)
    if index is not None and index.count(CellSelection(statuses=[None])):
        index.close()
        return None
    return index


def indexed_or_scanned(
    reader: RunReader, indexed: Callable[[CellIndex], Iterator[T]], scanned: Callable[[], Iterable[T]]
) -> Iterator[T]:
    """What is found by the index of a run or, without one, by a scan, which has to give the same in the same order.

    Should the index fail on the way, the scan continues where it stopped.
    """
    count = 0
    if (index := finished_index(reader)) is not None:
        with closing(index), suppress(StaleIndex):
            for item in indexed(index):
                yield item
                count += 1
            return
    yield from islice(scanned(), count, None)


def _verdicts(index: CellIndex, statuses: Collection[Status] | None, most: int | None = None) -> Iterator[CaseVerdict]:
    for entry in index.cells(CellSelection(statuses=statuses), limit=most):
        if (verdict := index.verdict(entry)) is not None:
            yield verdict


def _count(summary: RunSummary, *statuses: str) -> int:
    return sum(variant.cells.get(status, 0) for variant in summary.variants for status in statuses)


def newest_verdicts(reader: RunReader, statuses: Collection[Status] | None = None) -> Iterator[CaseVerdict]:
    """The verdict of each finished cell, or of those with one of some statuses; none that a later attempt replaced, and
    of several on one attempt the last.

    A folder that another program wrote has no verdicts: if `reader.plan` is set, they are derived from its traces and
    results. Raises InputError for a run that changes meanwhile, and DamagedIndex, after which it has no index.
    """
    count = 0
    if (index := finished_index(reader)) is not None:
        with closing(index):
            try:
                for verdict in index.verdicts(CaseVerdict, CellSelection(statuses=statuses)):
                    yield verdict
                    count += 1
                return
            except StaleIndex as error:
                if count and isinstance(error, DamagedIndex):
                    raise
                if count:
                    raise InputError(f"{reader.location} was changed while it was read") from error
    yield from (v for v in _scanned_verdicts(reader) if statuses is None or v.status in statuses)


def ordered_verdicts(reader: RunReader, summary: RunSummary, statuses: Collection[Status]) -> Iterator[CaseVerdict]:
    """As `newest_verdicts`, in the order of the dataset; of an indexed run, one at a time is held in memory."""

    def scanned() -> list[CaseVerdict]:
        wanted = (verdict for verdict in _scanned_verdicts(reader) if verdict.status in statuses)
        return sorted(wanted, key=order_of(summary.variants))

    return indexed_or_scanned(reader, lambda index: _verdicts(index, statuses), scanned)


def _scanned_verdicts(reader: RunReader) -> Iterator[CaseVerdict]:
    newest = newest_places(lambda: reader.verdicts(AttemptFacts))
    if newest is None and reader.plan is not None:
        from evalwright.reports.cells import Choice, chosen_cells

        yield from (cell.verdict for cell in chosen_cells(reader, reader.plan, [], Choice()))
    for place, verdict in enumerate(reader.verdicts(CaseVerdict)):
        cell = verdict.case_key, verdict.variant_name, verdict.trial
        if newest and newest.get(cell, place) != place:
            continue
        yield verdict
