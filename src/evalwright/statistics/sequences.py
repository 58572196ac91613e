"""Evidence that stays valid however often one looks: a run may stop as soon as it is decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, isfinite, log, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, root_of
from evalwright.statistics.gates import e_value

__all__ = ["BettingSequence", "BettingWager", "ChangedPairs", "betting_sequence", "changed_pairs_e_value"]


class BettingSequence(NamedTuple):
    """Two bets for each margin, as lists with one entry per margin. A capital of 2/alpha decides."""

    log_capital_above: list[list[float]]
    """Against a difference of at most -margin, after each number of units requested."""
    log_capital_below: list[list[float]]
    """Against a difference of at least -margin."""
    stop_above: list[int | None]
    """Units after which B was shown to be better than -margin; None: never."""
    stop_below: list[int | None]
    ci_last: Interval
    """The intersection of the confidence sequence up to the last unit."""


def betting_sequence(
    differences: Sequence[float],
    margins: Sequence[float],
    at: Sequence[int],
    alpha: float = 0.05,
    weights: Sequence[float] | None = None,
) -> BettingSequence:
    """Capital of bets on the mean difference of units in a random order (Waudby-Smith and Ramdas 2024).

    `differences` (-1 to 1) belong to units in the order in which they were seen; `weights` (above 0, at most 1) are
    their sizes as shares of the largest. Each bet depends on earlier units only. Raises ValueError for differences
    outside of -1 to 1 and weights outside of 0 to 1.
    """
    if not all(isfinite(d) and -1 <= d <= 1 for d in differences):
        raise ValueError("expected differences from -1 to 1")
    sizes = [1.0] * len(differences) if weights is None else [float(weight) for weight in weights]
    if len(sizes) != len(differences) or not all(0 < weight <= 1 for weight in sizes):
        raise ValueError("expected a weight above 0 and at most 1 for each difference")
    steps = list(_bets(differences, sizes, alpha))
    enough = log(2 / alpha)
    above, below, stops_above, stops_below = [], [], [], []
    for margin in margins:
        null = (1 - margin) / 2
        paths = list(_path(steps, null)), list(_path(_mirrored_steps(steps), 1 - null))
        above.append([paths[0][place - 1] if place else 0.0 for place in at])
        below.append([paths[1][place - 1] if place else 0.0 for place in at])
        stops_above.append(_first(paths[0], enough))
        stops_below.append(_first(paths[1], enough))
    low = _end(steps, enough)
    high = 1 - _end(_mirrored_steps(steps), enough)
    return BettingSequence(above, below, stops_above, stops_below, (2 * low - 1, 2 * high - 1))


class _Step(NamedTuple):
    x: float
    """The difference mapped to 0..1."""
    weight: float
    bet: float
    """Before it is cut so that no capital is lost altogether."""


def _bets(differences: Sequence[float], weights: Sequence[float], alpha: float) -> Iterator[_Step]:
    """The bet on each unit, from the running mean and variance of those before it."""
    moments = _Moments()
    for difference, weight in zip(differences, weights, strict=True):
        yield moments.step(difference, weight, alpha)


class _Moments:
    """Running mean and variance of the units seen, with one pseudo-observation."""

    def __init__(self) -> None:
        self._t = 0
        self._total, self._squares, self._variance = 0.5, 0.25, 0.25

    def step(self, difference: float, weight: float, alpha: float) -> _Step:
        """The bet on the next unit, made without knowing it; the unit then counts as seen."""
        self._t += 1
        t, x = self._t, (difference + 1) / 2
        step = _Step(x, weight, sqrt(2 * log(2 / alpha) / (self._variance * t * log(1 + t))))
        seen = 0.5 + weight * (x - 0.5)
        self._total += seen
        self._squares += (seen - self._total / (t + 1)) ** 2
        self._variance = self._squares / (t + 1)
        return step


class BettingWager:
    """The bets of `betting_sequence` on one margin, unit by unit.

    A unit has the least and the greatest difference that it may have; they are equal unless part of it is unknown. Bets
    that the mean lies above the margin use the least, bets that it lies below use the greatest.
    """

    def __init__(self, margin: float, alpha: float = 0.05) -> None:
        self._alpha, self._null = alpha, (1 - margin) / 2
        self._least, self._greatest = _Moments(), _Moments()
        self._steps: tuple[list[_Step], list[_Step]] = ([], [])
        self.above: float = 0.0
        """Logarithm of the capital against a difference of at most -margin."""
        self.below: float = 0.0
        """Against one of at least -margin."""
        self._most = 0.0

    def add(self, least: float, greatest: float, weight: float = 1.0) -> None:
        """Bet on the next unit; `weight` is its size as a share of the largest.

        Raises ValueError for differences outside of -1 to 1 and weights outside of 0 to 1.
        """
        if not (-1 <= least <= greatest <= 1 and 0 < weight <= 1):
            raise ValueError(f"expected differences from -1 to 1 and a weight, found {least}, {greatest}, {weight}")
        up = self._least.step(least, weight, self._alpha)
        down = _mirrored_steps([self._greatest.step(greatest, weight, self._alpha)])[0]
        self._steps[0].append(up)
        self._steps[1].append(down)
        self.above += _won(up, self._null)
        self.below += _won(down, 1 - self._null)
        self._most = max(self._most, self.above, self.below)

    @property
    def verdict(self) -> str | None:
        """`ship` or `dont` where a capital is 2/alpha; None while neither is."""
        enough = log(2 / self._alpha)
        return "ship" if self.above >= enough else "dont" if self.below >= enough else None

    @property
    def p_value(self) -> float:
        """Two-sided, for a difference of -margin; valid whenever one looks."""
        return min(1.0, 2 * exp(-self._most))

    def interval(self) -> Interval:
        """The intersection so far of the confidence sequence for the difference."""
        enough = log(2 / self._alpha)
        low, high = _end(self._steps[0], enough), 1 - _end(self._steps[1], enough)
        return 2 * low - 1, 2 * high - 1


def _mirrored_steps(steps: Sequence[_Step]) -> list[_Step]:
    return [step._replace(x=1 - step.x) for step in steps]


def _path(steps: Sequence[_Step], null: float) -> Iterator[float]:
    """The logarithm of the capital against a mean of at most `null`, after each unit."""
    capital = 0.0
    for step in steps:
        capital += _won(step, null)
        yield capital


def _won(step: _Step, null: float) -> float:
    """The logarithm of the factor by which one bet against a mean of at most `null` changes the capital."""
    most = 1 / (2 * null) if null > 0 else 0.0
    return log(1 + min(step.bet, most) * step.weight * (step.x - null))


def _first(path: Sequence[float], enough: float) -> int | None:
    return next((place for place, capital in enumerate(path, 1) if capital >= enough), None)


def _end(steps: Sequence[_Step], enough: float) -> float:
    """The largest mean (0 to 1) against which the capital was ever enough: it falls as the mean rises."""

    def short(null: float) -> float:
        return enough - max(_path(steps, null), default=0.0)

    if not steps or short(1e-9) > 0:
        return 0.0
    return root_of(short, 1e-9, 1.0, steps=40)


class ChangedPairs(NamedTuple):
    """Evidence that the pairs that changed do not change equally often in both directions."""

    e_value: float | None
    """None above the largest number."""
    log_e_value: float
    anytime_p: float
    reject: bool


def changed_pairs_e_value(a_only: int, b_only: int, alpha: float = 0.05) -> ChangedPairs:
    """An e-value for pairs that passed on one side only; e-values of separate nights multiply (Ramdas et al. 2023)."""
    value = e_value(b_only, a_only + b_only, 0.5)
    return ChangedPairs(value.e_value, value.log_e_value, value.anytime_p, value.log_e_value >= -log(alpha))
