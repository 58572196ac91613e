"""How much cases and trials vary: estimated from runs, or assumed if there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evalwright.decisions.kinds import tallied
from evalwright.decisions.pilots import Pilot, pilot_of_trials, units_in, variance_by_case
from evalwright.decisions.sides import CaseTotal, SideCounts, units_of_cases
from evalwright.errors import InputError
from evalwright.statistics.changes import flipping_share
from evalwright.statistics.means import mean_of, variance_of
from evalwright.statistics.rates import rate_of_units
from evalwright.statistics.trials import repeated_runs

__all__ = [
    "Spread",
    "design_effect",
    "distinct_spreads",
    "guessed_spreads",
    "judged_side",
    "repeats_share",
    "spreads_of",
    "trials_share",
]

_SHARES = (0.05, 0.1, 0.2, 0.3)
"""Shares of pairs that change, if no run shows the real one."""


class Spread(NamedTuple):
    """How much the change of a case varies: between cases, and from trial to trial."""

    label: str
    omega2: float
    """Variance over cases of the change of their expected score."""
    sigma2: float
    """Mean variance within a case."""
    changed: float | None = None
    """Share of pairs that change with one trial per side, if known."""
    design_effect: float = 1.0
    """The cases of groups that say as much as one independent case."""
    cell_usd: float | None = None
    cell_ms: float | None = None
    rate: float | None = None
    """The current pass rate, if known."""
    shares: Mapping[float, int] = {}
    """The number of cases with each share of passed trials, if known; of single trials, all cases at the pass rate."""
    pilot: Pilot | None = None
    """The cases of the runs; None if all is assumed."""
    moved: float | None = None
    """For scores, the share of cases whose change is not the most common one."""

    def single(self, trials: int) -> bool:
        """Whether each side of a case is one pass or failure, with so many trials per side."""
        return trials == 1 and self.moved is None

    def variance(self, trials: int) -> float:
        """Of the change of a case, with so many trials per side."""
        return self.omega2 + 2 * self.sigma2 / trials

    def ends(self, trials: int) -> tuple[Spread, Spread] | None:
        """The least and the greatest spread that the runs leave possible (95 %); None if it is assumed."""
        ends, variance = self.pilot and self.pilot.variance_ends(trials), self.variance(trials)
        if ends is None or not variance:
            return None
        return self._times(min(1.0, ends[0] / variance)), self._times(max(1.0, ends[1] / variance))

    def _times(self, factor: float) -> Spread:
        changed = None if self.changed is None else min(1.0, self.changed * factor)
        return self._replace(omega2=self.omega2 * factor, sigma2=self.sigma2 * factor, changed=changed)

    def changing(self, trials: int) -> float:
        """The share of cases that an unchanged system shows as changed, with so many trials per side; all of them
        if nothing is known."""
        if self.moved is not None:
            return self.moved
        return flipping_share(self.shares, trials) if self.shares else 1.0


def guessed_spreads(run: SideCounts | None = None, detect: float = 0.0) -> list[Spread]:
    """Assumed spreads: several shares of pairs that change, none below the difference to `detect`, as a rate changes by
    no more than that, and one above it. A `run` in which nothing varies knows the cost and time of a cell."""
    known = () if run is None else (design_effect(run), run.mean("cost")[0], run.mean("latency")[0], _rate(run.passes))
    return [
        Spread(_guess_label(share, detect, of_run=run is not None), 0.0, share / 2, share, *known)
        for share in sorted({*(max(share, detect) for share in _SHARES), max(_SHARES[-1], min(1.0, 1.5 * detect))})
    ]


def _guess_label(share: float, detect: float, *, of_run: bool) -> str:
    notes = ["all for the better"] if share == detect else []
    notes += ["assumed, as nothing varies in the run"] if of_run else []
    return f"{100 * share:.6g}% of pairs change" + (f" ({'; '.join(notes)})" if notes else "")


def spreads_of(a: SideCounts, b: SideCounts | None, *, scored: bool = False) -> list[Spread]:
    """The spread that one run, or two of the same cases, show, with the cost and time of a cell; none if nothing
    varies, because that would say that any difference is seen at once. `scored`: the passes are scores from 0 to 1.

    Raises InputError if two runs have no judged case in common.
    """
    parts = _parts_of_one(a) if b is None else _parts_of_two(a, b)
    known = design_effect(a), a.mean("cost")[0], a.mean("latency")[0]
    if scored:
        moved = _moved(a, b)
        return [
            Spread(part.label, part.omega2, part.sigma2, None, *known, pilot=part.pilot, moved=moved) for part in parts
        ]
    rate, shares = _rate(a.passes), _shares(a.passes)
    return [
        Spread(part.label, part.omega2, part.sigma2, part.changed, *known, rate, part.shares or shares, part.pilot)
        for part in parts
    ]


def _moved(a: SideCounts, b: SideCounts | None) -> float:
    """The share of cases whose score does not change as that of most, or of those that vary from trial to trial."""
    if b is None:
        variances = variance_by_case(a.passes)
        return sum(variance > 0 for variance in variances.values()) / len(variances)
    changes = Counter(round(two.value - one.value, 12) for one, two in _pairs(a, b).values())
    return 1 - max(changes.values()) / changes.total()


def distinct_spreads(spreads: Sequence[Spread], trials: Sequence[int]) -> list[Spread]:
    """Without those that differ from an earlier one for no number of `trials`."""
    apart: dict[tuple[float, ...], Spread] = {}
    for spread in spreads:
        apart.setdefault(tuple(map(spread.variance, trials)), spread)
    return [*apart.values()]


class _Part(NamedTuple):
    """The first fields of a `Spread`."""

    label: str
    omega2: float
    sigma2: float
    pilot: Pilot
    changed: float | None = None
    shares: Mapping[float, int] | None = None
    """None if those of run A tell."""


def _parts_of_one(side: SideCounts) -> list[_Part]:
    sigma = _within(side.passes)
    if not sigma:
        return []
    several = any(total.judged > 1 for total, _ in tallied(side.passes))
    same = "the same system" if several else "the same system (at most: no case ran twice)"
    cases = variance_by_case(side.passes)
    within, units = [*cases.values()], units_in(side, cases)
    return [
        _Part(same, 0.0, sigma, Pilot([0.0] * len(within), within, units)),
        _Part("cases change as much as trials do", sigma, sigma, Pilot(within, within, units)),
    ]


def _parts_of_two(a: SideCounts, b: SideCounts) -> list[_Part]:
    paired = _pairs(a, b)
    if not paired:
        raise InputError("the two runs have no case in common that was judged in both: plan from one of them")
    shared, pairs = [*paired], [*paired.values()]
    changes = [two.value - one.value for one, two in pairs]
    spread, mean = variance_of(changes) or 0.0, mean_of(changes) or 0.0
    squares, units, none = [(change - mean) ** 2 for change in changes], units_in(a, shared), [0.0] * len(pairs)
    if all(one.judged == two.judged == 1 for one, two in pairs):
        changed = sum(one.value != two.value for one, two in pairs)
        coins = min(len(pairs), 2 * changed)  # the fewest that change as often
        of_changes = changed / len(pairs), {0.5: coins, 1.0: len(pairs) - coins}
        coin = Pilot(none, [square / 2 for square in squares], units)
        by_chance = _Part("these two runs, if cases change by chance", 0.0, spread / 2, coin, *of_changes)
        # One trial a side does not show how much of the spread other trials would repeat.
        for_good = _Part(
            "these two runs, if cases change for good", spread, 0.0, Pilot(squares, none, units), *of_changes
        )
        return [by_chance, for_good] if spread else []
    sigma, other = _within(a.passes), _within(b.passes)
    noise = [sigma / one.judged + other / two.judged for one, two in pairs]
    omega = max(0.0, spread - sum(noise) / len(noise))
    ones, others = variance_by_case(a.passes), variance_by_case(b.passes)
    within = [(ones.get(case, sigma), others.get(case, other)) for case in shared]
    pilot = pilot_of_trials(squares, within, [(one.judged, two.judged) for one, two in pairs], units)
    return [_Part("these two runs", omega, (sigma + other) / 2, pilot)] if omega + sigma + other else []


def _pairs(a: SideCounts, b: SideCounts) -> dict[str, tuple[CaseTotal, CaseTotal]]:
    """The cases that both judged."""
    judged = {case: total for case, total in a.passes.items() if total.judged and case in b.passes}
    return {case: (total, b.passes[case]) for case, total in judged.items() if b.passes[case].judged}


def repeats_share(side: SideCounts) -> float | None:
    """The share of the variance of the pass rate that comes from trials contradicting each other; None without repeats.

    The estimate may exceed all of it, by chance, and is cut then. More trials reduce it, more cases reduce the rest
    (Miller 2024, section 3.1).
    """
    judged = [total for total in side.passes.values() if total.judged]
    scores = [[1.0] * (passed := round(total.total)) + [0.0] * (total.judged - passed) for total in judged]
    share = repeated_runs(scores).share_of_se2_due_to_repeats
    return None if share is None else min(1.0, share)


def judged_side(sides: Mapping[str, SideCounts]) -> SideCounts | None:
    """The first variant of a run that has a cell with a verdict."""
    return next((side for side in sides.values() if any(total.judged for total, _ in tallied(side.passes))), None)


def _rate(outcomes: Mapping[str, CaseTotal]) -> float | None:
    return mean_of([outcome.value for outcome in outcomes.values() if outcome.judged])


def _shares(outcomes: Mapping[str, CaseTotal]) -> Mapping[float, int]:
    judged = [outcome for outcome in outcomes.values() if outcome.judged]
    if all(case.judged == 1 for case in judged):
        rate = _rate(outcomes)
        return {} if rate is None else {rate: len(judged)}
    return Counter(case.value for case in judged)


def _within(outcomes: Mapping[str, CaseTotal]) -> float:
    """The mean variance of a trial within a case; at one half without cases."""
    variance = mean_of([*variance_by_case(outcomes).values()])
    return 0.25 if variance is None else variance


def trials_share(side: SideCounts) -> float | None:
    """The share of the variance of a single trial that lies within cases; None if no case has several, or all agree."""
    rate = _rate(side.passes)
    if rate is None or not 0 < rate < 1 or all(total.judged < 2 for total in side.passes.values()):
        return None
    return min(1.0, _within(side.passes) / (rate * (1 - rate)))


def design_effect(side: SideCounts) -> float:
    """The cases of groups that say as much as one independent case, at least 1."""
    if not side.groups:
        return 1.0
    alone, together = (rate_of_units(units_of_cases(side.passes, groups)) for groups in ({}, side.groups))
    return max(1.0, alone.effective_n / together.effective_n) if together.effective_n else 1.0
