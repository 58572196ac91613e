"""Stored verdicts that the results of their cells contradict, as after an edit of a file of the run.

Counts are of the results, lists of cells show the verdicts: where the two differ, both say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice

from evalwright.errors import counted
from evalwright.model.cell import attempt_key
from evalwright.model.cell_index import CellIndex, CellSelection, index_of, rereading
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.scoring.indexed_cells import facts_of_count
from evalwright.scoring.newest import over_cells
from evalwright.scoring.verdict import names_needed, status_by_results, stored_statuses

__all__ = ["contradicted_verdicts"]

_MOST_NAMED = 5


@rereading
def contradicted_verdicts(reader: RunReader, plan: Plan) -> str | None:
    """One line that counts and names the cells; None if there are none."""
    if plan.needs_verdicts or reader.plan is None:
        return None
    needed = names_needed(reader, plan)
    if (index := index_of(reader)) is None:
        return _line(_scanned_names(reader, plan, needed))
    with closing(index):
        return _line(_in_index(index, plan, needed))


def _line(cells: Iterator[str]) -> str | None:
    named = list(islice(cells, _MOST_NAMED))
    if not named:
        return None
    more = sum(1 for _ in cells)
    differing = counted(len(named) + more, "stored verdict differs", "stored verdicts differ")
    names = ", ".join(named) + (f" and {more:,} more" if more else "")
    return (
        f"{differing} from the results, by which cells are counted: {names}; re-evaluate replaces results and verdicts"
    )


def _in_index(index: CellIndex, plan: Plan, needed: Sequence[str]) -> Iterator[str]:
    """By what cells have in common; those of a finished run of which nothing was edited are not looked at."""
    for count in index.counts():
        trace, rows = facts_of_count(count)
        status = status_by_results(plan, needed, trace.error is not None, rows)
        if count.status is None or status in (None, count.status):
            continue
        for cell in index.cells(CellSelection(variant=count.variant, statuses=[count.status])):
            if cell.alike == count.alike:
                yield f"{cell.case_key} of {cell.variant} ({count.status}, by results {status})"


def _scanned_names(reader: RunReader, plan: Plan, needed: Sequence[str]) -> Iterator[str]:
    stored = stored_statuses(reader)
    lines: list[str] = over_cells(
        reader,
        plan,
        lambda cells: [
            f"{trace.case_key} of {trace.variant_name} ({verdict}, by results {status})"
            for trace, rows in cells
            if (verdict := stored.get(attempt_key(trace))) is not None
            and (status := status_by_results(plan, needed, trace.error is not None, rows)) not in (None, verdict)
        ],
    )
    return iter(lines)
