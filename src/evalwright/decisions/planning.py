"""How many cases and trials a difference needs, before they are paid for. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple

import msgspec

from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.statistics.means import variance_of
from evalwright.statistics.power import power_mcnemar_exact, power_trials
from evalwright.statistics.rates import rate_with_design_effect

__all__ = ["Need", "PlanRow", "Spread", "SuitePlan", "guessed_spreads", "planned", "spreads_of"]

POWERS = (0.5, 0.8, 0.9)
_SHARES = (0.05, 0.1, 0.2, 0.3)
"""Of pairs that change, where no run says how many do."""


class Spread(NamedTuple):
    """How far the change of a case varies: between cases, and from trial to trial."""

    label: str
    omega2: float
    """Variance over cases of the change of their expected score."""
    sigma2: float
    """Mean variance within a case."""
    changed: float | None = None
    """Share of pairs that change with one trial a side, where that is known."""
    design_effect: float = 1.0
    """How many cases of groups are worth one that is independent."""
    cell_usd: float | None = None
    cell_ms: float | None = None


class Need(msgspec.Struct):
    """Cases for one power."""

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
    """The least difference that the suite as it is shows with the power asked for; None where no possible one does."""
    cheapest: bool = False


class SuitePlan(msgspec.Struct):
    """What it takes to see a difference."""

    suite: str
    cases: int
    detect: float
    margin: float
    alpha: float
    power: float
    rows: list[PlanRow]
    reached: bool
    """Whether the suite as it is has the power asked for with some number of trials."""
    schema_version: str = "1.0"


def guessed_spreads() -> list[Spread]:
    """Without a run: some shares of pairs that change."""
    return [Spread(f"{share:.0%} of pairs change", 0.0, share / 2, share) for share in _SHARES]


def spreads_of(a: SideCounts, b: SideCounts | None) -> list[Spread]:
    """What one run, or two of the same cases, show of the spread; costs and times of a cell too."""
    sigma = _within(a.passes)
    cost, _ = a.mean("cost")
    latency, _ = a.mean("latency")
    effect = _design_effect(a)
    if b is None:
        return [
            Spread(label, omega, sigma, None, effect, cost, latency)
            for label, omega in (("the same system", 0.0), ("cases change as much as trials do", sigma))
        ]
    other = _within(b.passes)
    shared = [case for case, one in a.passes.items() if one.judged and case in b.passes and b.passes[case].judged]
    pairs = [(a.passes[case], b.passes[case]) for case in shared]
    noise = [sigma / one.judged + other / two.judged for one, two in pairs]
    spread = variance_of([two.value - one.value for one, two in pairs]) or 0.0
    single = bool(pairs) and all(one.judged == two.judged == 1 for one, two in pairs)
    changed = sum(one.value != two.value for one, two in pairs) / len(pairs) if single else None
    omega = max(0.0, spread - sum(noise) / len(noise)) if noise else 0.0
    return [Spread("these two runs", omega, (sigma + other) / 2, changed, effect, cost, latency)]


def _within(outcomes: Mapping[str, CaseTotal]) -> float:
    """Mean variance within a case; of single trials that of the rate, which is at least as large."""
    judged = [one for one in outcomes.values() if one.judged]
    several = [one.value * (1 - one.value) * one.judged / (one.judged - 1) for one in judged if one.judged > 1]
    if several:
        return sum(several) / len(several)
    rate = sum(one.value for one in judged) / len(judged) if judged else 0.5
    return rate * (1 - rate)


def _design_effect(side: SideCounts) -> float:
    if not side.groups:
        return 1.0
    judged = {case: one.value for case, one in side.passes.items() if one.judged}
    values, units = list(judged.values()), [side.groups.get(case, (case,)) for case in judged]
    alone, together = rate_with_design_effect(values), rate_with_design_effect(values, units)
    return max(1.0, alone.effective_n / together.effective_n) if together.effective_n else 1.0


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
    rows: list[PlanRow] = []
    for spread in spreads:
        mine = list(_rows(spread, cases, trials, detect, margin, alpha, power, concurrency))
        costs = [(k * n, row) for k, row in zip(trials, mine, strict=True) if (n := _cases_at(row, power)) is not None]
        if costs and len(costs) > 1:
            min(costs, key=lambda found: found[0])[1].cheapest = True
        rows += mine
    reached = any(row.power is not None and row.power >= power for row in rows)
    return SuitePlan(suite, cases, detect, margin, alpha, power, rows, reached)


def _cases_at(row: PlanRow, power: float) -> int | None:
    return next((need.cases for need in row.needs if need.power == power), None)


def _rows(
    spread: Spread,
    cases: int,
    trials: Sequence[int],
    detect: float,
    margin: float,
    alpha: float,
    power: float,
    concurrency: int,
) -> Iterator[PlanRow]:
    independent = cases / spread.design_effect
    for k in trials:
        exact = k == 1 and spread.changed is not None and not margin and abs(detect) <= spread.changed
        sigma = spread.sigma2
        found = power_trials(independent, spread.omega2, sigma, sigma, k, k, detect, margin, alpha, power)
        needs = []
        for level in sorted({*POWERS, power}):
            if exact:
                needed = _pairs_needed(spread.changed or 0.0, detect, alpha, level)
            else:
                needed = power_trials(0, spread.omega2, sigma, sigma, k, k, detect, margin, alpha, level).n_required
            total = None if needed is None else ceil(needed * spread.design_effect)
            cells = None if total is None else total * k
            cost = None if cells is None or spread.cell_usd is None else cells * spread.cell_usd
            minutes = None if cells is None or spread.cell_ms is None else cells * spread.cell_ms / 60_000 / concurrency
            needs.append(Need(level, total, cost, minutes))
        now = found.power
        if exact:
            now = power_mcnemar_exact(int(independent), spread.changed or 0.0, detect, alpha).power
        # A rate cannot change by more than the share of pairs that change at all.
        shown = found.detectable_difference
        most = 1.0 if spread.changed is None else spread.changed
        yield PlanRow(spread.label, k, needs, now, shown if shown is not None and shown <= most else None)


def _pairs_needed(changed: float, detect: float, alpha: float, power: float) -> int | None:
    """The least number of pairs with which McNemar's exact test has the power."""
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
