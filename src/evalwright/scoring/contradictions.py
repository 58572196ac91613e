"""Stored verdicts that the results of their cells contradict, as after an edit of a file of the run, or do not explain,
as results are missing.

Counts are of the results, lists of cells show the verdicts: where the two differ, both say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from evalwright.errors import counted
from evalwright.model.cell import attempt_key
from evalwright.model.cell_index import CellIndex, CellSelection, index_of, rereading
from evalwright.model.facts import ResultFacts, ResultLike, TraceFacts
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import Status
from evalwright.scoring.indexed_cells import facts_of_count
from evalwright.scoring.newest import over_cells
from evalwright.scoring.verdict import names_needed, status_by_results, stored_statuses

__all__ = ["DoubtfulVerdicts", "doubtful_verdicts", "lacks_results"]

_MOST_NAMED = 5


class DoubtfulVerdicts(NamedTuple):
    """One line that counts and names the cells whose results say otherwise, if any, and how many have no results."""

    contradicted: str | None
    unexplained: int


class _Judging(NamedTuple):
    plan: Plan
    needed: Sequence[str]

    def status(self, stored: Status | None, errored: bool, rows: Collection[ResultLike]) -> Status | None:
        """The status by the results if it is another than the stored one."""
        status = status_by_results(self.plan, self.needed, errored, rows)
        return None if stored is None or status == stored else status

    def lacks_results(self, stored: Status | None, errored: bool, rows: Collection[ResultLike]) -> bool:
        return stored is not None and lacks_results(self.plan, self.needed, errored, rows)


def lacks_results(plan: Plan, needed: Sequence[str], errored: bool, rows: Collection[ResultLike]) -> bool:
    """Whether a cell that has a verdict is not counted, because none of the results that decide about it is there."""
    return not plan.needs_verdicts and bool(needed) and not rows and not errored


@rereading
def doubtful_verdicts(reader: RunReader, plan: Plan) -> DoubtfulVerdicts:
    """The verdicts of a run that its results do not bear out."""
    if plan.needs_verdicts or reader.plan is None:
        return DoubtfulVerdicts(None, 0)
    judging = _Judging(plan, names_needed(reader, plan))
    if (index := index_of(reader)) is None:
        return _scanned(reader, judging)
    with closing(index):
        return _indexed(index, judging)


def _line(cells: Iterable[str]) -> str | None:
    rest = iter(cells)
    named = list(islice(rest, _MOST_NAMED))
    if not named:
        return None
    more = sum(1 for _ in rest)
    differing = counted(len(named) + more, "stored verdict differs", "stored verdicts differ")
    names = ", ".join(named) + (f" and {more:,} more" if more else "")
    return (
        f"{differing} from the results, by which cells are counted: {names}; re-evaluate replaces results and verdicts"
    )


def _indexed(index: CellIndex, judging: _Judging) -> DoubtfulVerdicts:
    """By what cells have in common; those of a finished run of which nothing was edited are not looked at."""
    unexplained, contradicted = 0, []
    for count in index.counts():
        trace, rows = facts_of_count(count)
        facts = count.status, trace.error is not None, rows
        unexplained += count.n * judging.lacks_results(*facts)
        if (status := judging.status(*facts)) is not None:
            contradicted.append((count, status))
    names = (
        f"{cell.case_key} of {cell.variant} ({count.status}, by results {status})"
        for count, status in contradicted
        for cell in index.cells(CellSelection(variant=count.variant, statuses=[count.status]))
        if cell.alike == count.alike
    )
    return DoubtfulVerdicts(_line(names), unexplained)


def _scanned(reader: RunReader, judging: _Judging) -> DoubtfulVerdicts:
    stored = stored_statuses(reader)

    def read(cells: Iterable[tuple[TraceFacts, Collection[ResultFacts]]]) -> tuple[list[str], int]:
        names: list[str] = []
        unexplained = 0
        for trace, rows in cells:
            verdict, errored = stored.get(attempt_key(trace)), trace.error is not None
            unexplained += judging.lacks_results(verdict, errored, rows)
            if (status := judging.status(verdict, errored, rows)) is not None:
                names.append(f"{trace.case_key} of {trace.variant_name} ({verdict}, by results {status})")
        return names, unexplained

    names, unexplained = over_cells(reader, judging.plan, read)
    return DoubtfulVerdicts(_line(names), unexplained)
