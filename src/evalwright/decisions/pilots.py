"""The cases of the runs from which a plan learns how much cases vary: a sample, which leaves that unsure."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.statistics.distributions import Interval
from evalwright.statistics.means import mean_of
from evalwright.statistics.rates import rate_with_design_effect

__all__ = ["Pilot", "pilot_of_trials", "units_in", "variance_by_case"]

_ROUNDING = 1e-12
"""As a share of the mean square: summing equal scores may leave a variance below this."""


class Pilot(NamedTuple):
    """What each case adds to the two variances of a spread, which are the means of these."""

    omega2: Sequence[float]
    sigma2: Sequence[float]
    units: Sequence[Hashable]
    """The group of each case, or else the case."""

    def variance_ends(self, trials: int) -> Interval | None:
        """The 95 % interval of the variance of a case's change, with so many trials per side; None without cases."""
        values = [omega + 2 * sigma / trials for omega, sigma in zip(self.omega2, self.sigma2, strict=True)]
        low, high = min(0.0, *values), max(0.0, *values)
        if high <= low:
            return None
        # as the rate of a run, which is a mean of values from 0 to 1, too
        ends = rate_with_design_effect([(value - low) / (high - low) for value in values], self.units).ci
        return ends and (max(0.0, low + ends[0] * (high - low)), low + ends[1] * (high - low))


def pilot_of_trials(
    squares: Sequence[float],
    within: Sequence[tuple[float, float]],
    trials: Sequence[tuple[int, int]],
    units: Sequence[Hashable],
) -> Pilot:
    """From each case's squared change, and on both sides its variance within and its number of trials."""
    noise = [own_a / n + own_b / m for (own_a, own_b), (n, m) in zip(within, trials, strict=True)]
    return Pilot(
        [square - by_chance for square, by_chance in zip(squares, noise, strict=True)],
        [(own_a + own_b) / 2 for own_a, own_b in within],
        units,
    )


def variance_by_case(outcomes: Mapping[str, CaseTotal]) -> dict[str, float]:
    """The variance of a trial within each case.

    Cases that ran once are left out if others ran several times; if none did, it is their distance from the rate.
    """
    judged = {case: outcome for case, outcome in outcomes.items() if outcome.judged}
    several = {case: _variance(outcome) for case, outcome in judged.items() if outcome.judged > 1}
    if several:
        return several
    rate = mean_of([outcome.value for outcome in judged.values()]) or 0.0
    return {case: (outcome.value - rate) ** 2 for case, outcome in judged.items()}


def _variance(outcome: CaseTotal) -> float:
    """Of the trials of a case, from their total and that of their squares; passes are their own squares."""
    n, mean = outcome.judged, outcome.value
    mean_square = (outcome.squares or outcome.total) / n
    variance = mean_square - mean**2
    return variance * n / (n - 1) if variance > _ROUNDING * mean_square else 0.0


def units_in(side: SideCounts, cases: Collection[str]) -> list[Hashable]:
    """The group of each of these cases, or else the case."""
    return [side.groups.get(case, (case,)) for case in cases]
