"""How many cases it takes to show a difference of a mean score: planned on a scale from 0 to 1, told in its units."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from evalwright.decisions.kinds import changed_totals
from evalwright.decisions.pairing import ValueRange, scale_of
from evalwright.decisions.planning import Aim, SuitePlan, planned
from evalwright.decisions.sides import PASS_RATE, CaseTotal, SideCounts
from evalwright.decisions.spreads import distinct_spreads, spreads_of
from evalwright.errors import InputError, Problem, did_you_mean

__all__ = ["score_plan"]


def score_plan(
    suite: str,
    cases: int,
    runs: Sequence[SideCounts],
    trials: Sequence[int],
    aim: Aim,
    metric: str,
    concurrency: int = 1,
) -> SuitePlan:
    """What it takes to show a difference of the scores of the evaluator `metric`, in whose units the aim is.

    Raises InputError without a run in which these scores vary, for an aim beyond their range, and if two runs have no
    judged case in common.
    """
    if not runs:
        raise InputError(f"the plan for {metric} needs a run of the suite: only that shows how much its scores vary")
    _check(runs, metric)
    scale = scale_of(runs[0], runs[-1], metric)
    for name, value in (("--detect", aim.detect), ("--margin", aim.margin)):
        if value >= scale.width:
            less = f"expected less than the range of {metric} ({scale.width:g}), found {value:g}"
            raise InputError(Problem(name, less))
    before, *after = [_on_unit_scale(run, metric, scale) for run in runs]
    spreads = spreads_of(before, after[0] if after else None, scored=True)
    if not spreads:
        raise InputError(f"the scores of {metric} do not vary: nothing shows how many cases a difference takes")
    plan = planned(
        suite,
        cases,
        distinct_spreads(spreads, trials),
        trials,
        detect=aim.detect / scale.width,
        margin=aim.margin / scale.width,
        alpha=aim.alpha,
        power=aim.power,
        concurrency=concurrency,
    )
    plan.metric, plan.detect, plan.margin = metric, aim.detect, aim.margin
    plan.cell_usd = runs[0].mean("cost")[0]
    for row in plan.rows:
        row.detectable = None if row.detectable is None else row.detectable * scale.width
    return plan


def _check(runs: Sequence[SideCounts], metric: str) -> None:
    """Raise InputError unless every run has scores of this evaluator."""
    names = set.intersection(
        *({name for name, scores in run.scores.items() if any(s.judged for s in scores.values())} for run in runs)
    )
    if metric not in names:
        known = [PASS_RATE, *sorted(names)]
        raise InputError(f"no metric {metric!r}{did_you_mean(metric, known)} (there are: {', '.join(known)})")


def _on_unit_scale(side: SideCounts, metric: str, scale: ValueRange) -> SideCounts:
    """The side with its scores, from 0 to 1, in place of its passes."""

    def scaled(one: CaseTotal) -> CaseTotal:
        low, n = scale.low, one.judged
        squares = one.squares - 2 * low * one.total + n * low**2
        return CaseTotal((one.total - n * low) / scale.width, n, squares=squares / scale.width**2)

    return msgspec.structs.replace(side, passes=changed_totals(side.scores[metric], scaled))
