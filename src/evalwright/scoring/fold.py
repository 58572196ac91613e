"""A stored run folded into its count: the newest record of a cell wins, verdicts are derived anew."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.scoring.facts import ResultFacts, TraceFacts
from evalwright.scoring.newest import Superseded, newest_cells, streamed_cells
from evalwright.scoring.tally import Tally
from evalwright.scoring.verdict import cell_status, names_needed

__all__ = ["fold"]


def fold(reader: RunReader, plan: Plan, *, by_case: bool = False) -> Tally:
    """The count of everything that is stored of a run; by case also where the plan does not need it.

    Memory does not grow with the number of cells (but for `by_case`), unless the run has superseded records.
    """
    by_case = by_case or reader.plan is None
    needed = names_needed(reader, plan)
    try:
        return _counted(streamed_cells(reader, len(plan.evaluators)), plan, needed, by_case)
    except Superseded:
        return _counted(newest_cells(reader), plan, needed, by_case)


def _counted(
    cells: Iterable[tuple[TraceFacts, Collection[ResultFacts]]], plan: Plan, needed: list[str], by_case: bool
) -> Tally:
    tally = Tally.of(plan, by_case=by_case)
    count, criteria = tally.count, plan.pass_criteria
    for trace, results in cells:
        if needed and not results and trace.error is None:
            continue  # a crash came between the trace and its results: the cell is still missing
        count(trace, results, cell_status(criteria, needed, trace.error is not None, results))
    return tally
