"""Count a stored run: the newest record of a cell wins, and verdicts are derived from the results."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing
from typing import Any

from msgspec import UNSET, UnsetType

from evalwright.model.cell import Attempt, OfCase, attempt_key
from evalwright.model.cell_index import index_of, rereading
from evalwright.model.facts import ResultFacts, TraceFacts
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import Status
from evalwright.scoring.newest import newest_cells, over_cells
from evalwright.scoring.tally import Tally
from evalwright.scoring.verdict import cell_status, names_needed

__all__ = ["fold"]


@rereading
def fold(reader: RunReader, plan: Plan) -> Tally:
    """The count of a stored run.

    Memory does not grow with the number of cells, unless trials are repeated or a retry replaced records.
    """

    def empty() -> Tally:
        return Tally.of(plan, repeated=reader.plan is None)  # a run of evalh may have repeated any case

    if plan.needs_verdicts:
        return _as_judged(reader, empty())
    needed = names_needed(reader, plan)
    tally = empty()
    if not tally.needs_records and (index := index_of(reader)) is not None:
        from evalwright.scoring.indexed_cells import count_of_index, indexed_cells

        with closing(index):
            if not count_of_index(index, tally, plan, needed):
                _count(tally, indexed_cells(index), plan, needed)
            return tally
    return over_cells(reader, plan, lambda cells: _count(empty(), cells, plan, needed))


def _count(
    tally: Tally, cells: Iterable[tuple[TraceFacts, Collection[ResultFacts]]], plan: Plan, needed: list[str]
) -> Tally:
    count, criteria = tally.count, plan.pass_criteria
    for trace, results in cells:
        if needed and not results and trace.error is None:
            continue  # the process died between trace and results: the cell counts as missing
        count(trace, results, cell_status(criteria, needed, trace.error is not None, results))
    return tally


def _as_judged(reader: RunReader, tally: Tally) -> Tally:
    """The count from the stored verdicts; see `Plan.needs_verdicts`."""
    verdicts = {attempt_key(verdict): verdict for verdict in reader.verdicts(_VerdictFacts)}
    for trace, results in newest_cells(reader):
        verdict = verdicts.get(attempt_key(trace))
        if verdict is None:
            continue
        if verdict.extra is not UNSET:
            try:
                tally.count_extra(verdict.variant_name, verdict.extra)
            except ValueError as error:
                reader.damage.append(f"verdicts: {trace.case_key} of {trace.variant_name}: extra: {error}")
                continue
        tally.count(trace, results, verdict.status, verdict.score)
    return tally


class _VerdictFacts(OfCase, gc=False):
    variant_name: str
    status: Status
    score: float | None = None
    trial: int = 0
    attempt: Attempt = 1
    extra: dict[str, Any] | UnsetType = UNSET
