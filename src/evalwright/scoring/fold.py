"""A stored run folded into its count: the newest record of a cell wins, verdicts are derived anew."""

from __future__ import annotations

from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.scoring.newest import newest_cells
from evalwright.scoring.tally import Tally
from evalwright.scoring.verdict import cell_verdict, names_needed

__all__ = ["fold"]


def fold(reader: RunReader, plan: Plan) -> Tally:
    """The count of everything that is stored of a run."""
    names = [spec.name for spec in plan.evaluators]
    repeated = len(plan.variants) > 1 or any((v.trials or plan.run.trials) > 1 for v in plan.variants)
    tally = Tally([variant.name for variant in plan.variants], names, by_case=repeated or reader.plan is None)
    needed = names_needed(reader, plan)
    for trace, results in newest_cells(reader):
        tally.add(trace, results, cell_verdict(plan.pass_criteria, needed, trace, results))
    return tally
