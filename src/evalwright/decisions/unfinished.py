"""The sides of a run that is not finished: trials that were planned and not run are missing, like those that erred."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from evalwright.decisions.sides import CaseTotal, SideCounts, sides_of
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.scoring.case_names import recorded_name

__all__ = ["planned_sides"]


def planned_sides(reader: RunReader, plan: Plan) -> dict[str, SideCounts]:
    """The variants of a stored run, those without cells included if they were to have some.

    Only a stored plan says what was to be run. A run that ended because it was decided has left nothing out.
    """
    sides = sides_of(reader, plan)
    if reader.plan is None or plan.until_decided is not None:
        return sides
    planned = {}
    for name, trials in plan.trials_by_variant.items():
        side = sides.get(name, SideCounts(name))
        if side.cells < plan.cases_planned * trials:
            planned[name] = _with_missing(side, reader, plan, trials)
        elif name in sides:
            planned[name] = side
    return planned | {name: side for name, side in sides.items() if name not in planned}


def _with_missing(side: SideCounts, reader: RunReader, plan: Plan, trials: int) -> SideCounts:
    """The side with the trials that it lacks, in its passes and in the scores of every evaluator."""
    missing = dict(_missing(side.passes, reader, plan, trials))
    whole = CaseTotal(not_run=trials)  # shared by all cases that have no trial at all
    scores = {name: _over(score, missing, whole) for name, score in side.scores.items()}
    return msgspec.structs.replace(side, passes=_over(side.passes, missing, whole), scores=scores)


def _missing(passes: Mapping[str, CaseTotal], reader: RunReader, plan: Plan, trials: int) -> Iterator[tuple[str, int]]:
    for position, case in enumerate(reader.cases()):
        if plan.shard is not None and not plan.shard.has(position):
            continue
        name = recorded_name(case, passes)
        total = passes.get(name)
        done = 0 if total is None else total.judged + total.target_errors + total.evaluator_errors + total.skipped
        if done < trials:
            yield name, trials - done


def _over(totals: Mapping[str, CaseTotal], missing: Mapping[str, int], whole: CaseTotal) -> dict[str, CaseTotal]:
    """The same cases and those that have trials missing, counted."""
    counted = dict(totals)
    for case, number in missing.items():
        count = counted.get(case)
        counted[case] = whole if count is None else msgspec.structs.replace(count, not_run=number)
    return counted
