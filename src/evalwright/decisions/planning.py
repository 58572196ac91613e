"""How many cases and trials it takes to show a difference. Nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import msgspec

from evalwright.decisions.gate_planning import GatePlan, gate_plan
from evalwright.decisions.sides import PASS_RATE, SideCounts
from evalwright.decisions.spreads import Spread, distinct_spreads, guessed_spreads, repeats_share, spreads_of
from evalwright.statistics.power import (
    detectable_difference,
    power_mcnemar_exact,
    power_of_cases,
    power_trials,
)
from evalwright.statistics.proportions import power_proportions

__all__ = ["Aim", "Need", "PlanRow", "SuitePlan", "planned", "suite_plan"]

POWERS = (0.5, 0.8, 0.9)
_CURVE = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Multiples of the cases needed at which the power is shown."""
_MOST_CASES = 10_000_000
"""The largest number of cases that is considered."""
_ROUNDING = 1e-9


class Need(msgspec.Struct):
    """The cases needed for one power."""

    power: float
    cases: int | None
    """None where no number of cases has it."""
    cost_usd: float | None = None
    """Of one run of them."""
    minutes: float | None = None


class PlanRow(msgspec.Struct):
    """One number of trials under one assumption."""

    assumed: str
    trials: int
    needs: list[Need]
    power: float | None
    """Of the suite as it is."""
    detectable: float | None
    """The smallest true difference B - A with which the suite as it is shows that B is better, or with a margin not
    worse than that, with the power asked for; None if no possible one does."""
    cheapest: bool = False
    unpaired: int | None = None
    """Cases per side, one trial each, if the sides ran different cases; None if no run shows the rate."""
    curve: list[tuple[int, float]] = []
    """The power with numbers of cases below and above the number needed."""
    cases_range: tuple[int | None, int | None] | None = None
    """The cases for the power asked for at the ends of the 95 % interval of how much cases vary, which the runs are a
    sample of; None for an end where no number has it, and for both if no run shows how much."""


class SuitePlan(msgspec.Struct):
    """What it takes to see a difference."""

    suite: str
    cases: int
    detect: float | None
    """None where only a gate is planned."""
    margin: float
    alpha: float
    power: float
    rows: list[PlanRow]
    reached: bool | None
    """Whether the suite as it is has the power asked for with some number of trials, and can pass the gate; None if
    that depends on what is assumed of how much cases change."""
    gate: GatePlan | None = None
    cell_usd: float | None = None
    """The mean cost of a cell of the run."""
    repeats: float | None = None
    """The share of the variance of the run's pass rate that comes from trials contradicting each other."""
    metric: str = PASS_RATE
    """Or an evaluator: `detect`, `margin` and `detectable` are then in the units of its scores."""
    notes: list[str] = []
    """About the judges of the runs, whose verdicts the plan is about."""
    schema_version: str = "1.0"

    @property
    def trials_enough(self) -> dict[str, int | None]:
        """By assumption, the least number of trials with which the suite as it is has the power; None if none has."""
        least: dict[str, int | None] = dict.fromkeys(row.assumed for row in self.rows)
        for row in self.rows:
            if least[row.assumed] is None and row.power is not None and row.power >= self.power:
                least[row.assumed] = row.trials
        return least


class Aim(NamedTuple):
    """What is to be shown, and with what certainty."""

    detect: float
    """The true difference B - A."""
    margin: float
    """The loss that is ruled out; 0: that B is better is shown."""
    alpha: float
    power: float


def suite_plan(
    suite: str,
    cases: int,
    runs: Sequence[SideCounts],
    trials: Sequence[int],
    aim: Aim,
    at_least: float | None = None,
    concurrency: int = 1,
) -> SuitePlan:
    """What it takes to reach the aim, given zero, one or two `runs` of the suite, and what a gate `at_least` would do.

    Without a run in which anything varies, one trial per case is planned, as nothing is known about more. An aim to
    detect 0 is no aim.

    Raises InputError if two runs have no judged case in common.
    """
    if aim.detect or aim.margin:
        spreads = spreads_of(runs[0], runs[1] if len(runs) > 1 else None) if runs else []
        known = trials if spreads else trials[:1]
        detect, margin, alpha, power = aim
        plan = planned(
            suite,
            cases,
            distinct_spreads(spreads, known) or guessed_spreads(runs[0] if runs else None, detect),
            known,
            detect=detect,
            margin=margin,
            alpha=alpha,
            power=power,
            concurrency=concurrency,
        )
    else:
        plan = SuitePlan(suite, cases, None, 0.0, aim.alpha, aim.power, [], True)
    if runs:
        plan.cell_usd, plan.repeats = runs[0].mean("cost")[0], repeats_share(runs[0])
    if at_least is not None:
        plan.gate = gate_plan(cases, at_least, aim.alpha, runs[0] if runs else None, trials)
        if plan.gate.passes_from is None:
            plan.reached = False
    return plan


def planned(
    suite: str,
    cases: int,
    spreads: Sequence[Spread],
    trials: Sequence[int],
    *,
    detect: float,
    margin: float,
    alpha: float,
    power: float,
    concurrency: int = 1,
) -> SuitePlan:
    """A row for each assumption and number of trials; the cheapest of each assumption is marked."""
    aim, rows = Aim(detect, margin, alpha, power), []
    for spread in spreads:
        mine = [_row(spread, cases, k, aim, concurrency) for k in trials]
        costs = [(k * n, row) for k, row in zip(trials, mine, strict=True) if (n := _cases_at(row, power)) is not None]
        if costs:
            cheapest = min(costs, key=lambda cost: cost[0])[1]
            cheapest.cheapest = len(costs) > 1
            cheapest.curve = _curve(spread, cheapest, aim)
        rows += mine
    plan = SuitePlan(suite, cases, detect, margin, alpha, power, rows, False)
    enough = [bool(least) for least in plan.trials_enough.values()]
    plan.reached = enough[0] if len({*enough}) == 1 else None
    return plan


def _cases_at(row: PlanRow, power: float) -> int | None:
    return next((need.cases for need in row.needs if need.power == power), None)


def _row(spread: Spread, cases: int, k: int, aim: Aim, concurrency: int) -> PlanRow:
    needs = []
    for level in sorted({*POWERS, aim.power}):
        total = _total_needed(spread, k, aim._replace(power=level))
        cells = None if total is None else total * k
        cost = None if cells is None or spread.cell_usd is None else cells * spread.cell_usd
        minutes = None if cells is None or spread.cell_ms is None else cells * spread.cell_ms / 60_000 / concurrency
        needs.append(Need(level, total, cost, minutes))
    now = _power(spread, cases, k, aim)
    return PlanRow(
        spread.label,
        k,
        needs,
        now,
        _detectable(spread, cases, k, aim),
        unpaired=_unpaired_cases(spread, aim),
        cases_range=_range_needed(spread, k, aim),
    )


def _range_needed(spread: Spread, k: int, aim: Aim) -> tuple[int | None, int | None] | None:
    ends = spread.ends(k)
    return ends and (_total_needed(ends[0], k, aim), _total_needed(ends[1], k, aim))


def _total_needed(spread: Spread, k: int, aim: Aim) -> int | None:
    """Cases for the power asked for, in groups as large as those of the run."""
    needed = _cases_needed(spread, k, aim)
    return None if needed is None else ceil(needed * spread.design_effect)


def _exact(spread: Spread, k: int, aim: Aim) -> bool:
    """Whether McNemar's exact test decides, and its power is known."""
    return k == 1 and spread.changed is not None and not aim.margin and abs(aim.detect) <= spread.changed


def _cases_needed(spread: Spread, k: int, aim: Aim) -> int | None:
    """Independent cases for the power asked for; None where no number has it."""
    if _exact(spread, k, aim):
        return _pairs_needed(spread.changed or 0.0, aim.detect, aim.alpha, aim.power)
    sigma = spread.sigma2
    low = power_trials(0, spread.omega2, sigma, sigma, k, k, *aim).n_required
    if low is None or _power_of(spread, low, k, aim) >= aim.power - _ROUNDING:
        return low
    # so few cases change that Student's t seldom decides
    high = low * 2
    while _power_of(spread, high, k, aim) < aim.power:
        low, high = high, high * 2
        if high > _MOST_CASES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power_of(spread, middle, k, aim) >= aim.power else (middle, high)
    return high


def _detectable(spread: Spread, cases: float, k: int, aim: Aim) -> float | None:
    """The smallest difference that this many cases show."""
    n, changing = cases / spread.design_effect, spread.changing(k)
    of_trials = n, spread.omega2, spread.sigma2, k, changing, aim.alpha, aim.power
    shown = detectable_difference(*of_trials, margin=aim.margin, single=spread.single(k))
    # A rate cannot change by more than the share of pairs that change at all.
    most = 1.0 if spread.changed is None else spread.changed
    return None if shown is None or shown > most or not shown + aim.margin > 0 else max(shown, -most)


def _power(spread: Spread, cases: float, k: int, aim: Aim) -> float | None:
    """The chance that this many cases show it."""
    independent = cases / spread.design_effect
    if _exact(spread, k, aim):
        return power_mcnemar_exact(int(independent), spread.changed or 0.0, aim.detect, aim.alpha).power
    return _power_of(spread, independent, k, aim) if independent >= 2 else None


def _power_of(spread: Spread, n: float, k: int, aim: Aim) -> float:
    """The same for independent cases, if the share of pairs that change is not known."""
    variance, changing, single = spread.variance(k), spread.changing(k), spread.single(k)
    return power_of_cases(n, variance, aim.detect, aim.margin, changing, aim.alpha, single=single) or 0.0


def _curve(spread: Spread, row: PlanRow, aim: Aim) -> list[tuple[int, float]]:
    needed = _cases_at(row, aim.power) or 0
    sizes = sorted({max(2, round(needed * share)) for share in _CURVE})
    return [(n, power) for n in sizes if (power := _power(spread, n, row.trials, aim)) is not None]


def _unpaired_cases(spread: Spread, aim: Aim) -> int | None:
    """Cases per side for two runs of different cases, if the rates before and after are known."""
    if spread.rate is None or aim.margin or not 0 < spread.rate < spread.rate + aim.detect <= 1:
        return None
    sizes = power_proportions(spread.rate, spread.rate + aim.detect, 1.0, aim.alpha, aim.power).n_per_arm_unpaired
    return None if sizes is None else ceil(sizes * spread.design_effect)


def _pairs_needed(changed: float, detect: float, alpha: float, power: float) -> int | None:
    """The smallest number of pairs with which McNemar's exact test has the power."""
    about = power_mcnemar_exact(1, changed, detect, alpha, power).n_connor
    if about is None:
        return None
    low, high = max(1, int(about * 0.7)), int(about * 1.1) + 10
    while power_mcnemar_exact(high, changed, detect, alpha).power < power:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        reached = power_mcnemar_exact(middle, changed, detect, alpha).power >= power
        low, high = (low, middle) if reached else (middle, high)
    return high
