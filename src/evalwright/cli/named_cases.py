"""Cases that the command line names: whether a run has them, and which it may have meant."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

from evalwright.errors import did_you_mean

if TYPE_CHECKING:
    from evalwright.model.plan import Plan
    from evalwright.model.protocols import RunReader

__all__ = ["has_case", "unknown_case"]

_MOST_COMPARED = 1000
"""Number of cases among which the nearest name is looked for: reading all of them can take longer than everything else.
"""


def has_case(reader: RunReader, plan: Plan, case: str) -> bool:
    """Whether the run has a case of this id or key; where all cells were run, an index says so at once."""
    from evalwright.model.cell_index import CellSelection, index_of

    if plan.shard is None and (index := index_of(reader, "never")) is not None:
        with closing(index):
            if len(index) == plan.cells_planned:
                return index.count(CellSelection(case=case)) > 0
    return any(case in (known.id, known.key) for known in reader.cases())


def unknown_case(reader: RunReader, case: str) -> str:
    """That a run has no such case, with the nearest that it has."""
    near = did_you_mean(case, [known.id for known in islice(reader.cases(), _MOST_COMPARED)])
    return f"no case {case!r} in the run{near}"
