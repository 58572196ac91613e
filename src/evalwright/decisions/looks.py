"""Runs whose results decided how many cases they have: their difference by bets, valid however often one looked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from evalwright.decisions.pairing import Ground, ValueRange
from evalwright.decisions.sides import CaseTotal
from evalwright.model.decision import BETTING
from evalwright.model.plan import Plan
from evalwright.model.snapshot import Case
from evalwright.statistics.differences import DecidedDifference
from evalwright.statistics.sequences import BettingWager

__all__ = ["Looks", "UnitEnds", "difference_ends", "looks_of"]


class Looks(NamedTuple):
    """The units of a run in the order in which they were looked at, whoever ended it and why.

    The order was drawn before the first cell, and the run was stopped, or killed, knowing only units that come first.
    """

    units: Sequence[Sequence[str]]
    trials: Mapping[str, int]
    """Of each case that were planned, by variant of that run."""
    is_a: bool
    is_b: bool
    """Whether A, or B, is of that run: a unit that lacks trials of it was not looked at, nor was any later one."""

    def decided(self, ground: Ground, decided: DecidedDifference) -> DecidedDifference:
        """`decided` with the interval, p-values and verdict of bets on the units that were looked at."""
        width = ground.scale.width
        if not width:
            return decided
        wager, better = BettingWager(ground.margin / width, ground.alpha), BettingWager(0.0, ground.alpha)
        largest = max(map(len, self.units), default=1)
        for least, greatest, cases in self._differences(ground):
            for bets in (wager, better):
                bets.add(least / width, greatest / width, cases / largest)
        low, high = wager.interval()
        ends = low * width, high * width
        return decided._replace(
            method=BETTING,
            ci=ends,
            p_value=better.p_value,
            p_margin=wager.p_value,
            verdict=ground.verdict(ends),
        )

    def _differences(self, ground: Ground) -> Iterator[UnitEnds]:
        """The ends of the difference of each unit that was looked at."""
        before, after = ground.outcomes()
        sides = [(before, ground.a.variant)] if self.is_a else []
        sides += [(after, ground.b.variant)] if self.is_b else []
        for cases in self.units:
            counted_cases = [case for case in cases if case not in ground.left_out]
            if not all(
                _looked_at(of.get(case), self.trials.get(name, 1)) for of, name in sides for case in counted_cases
            ):
                return
            ends = difference_ends(counted_cases, before, after, ground.scale)
            if ends is not None:
                yield ends


class UnitEnds(NamedTuple):
    """The least and the greatest mean difference that a unit can have, and the number of cases behind it."""

    least: float
    greatest: float
    cases: int


def looks_of(plan: Plan, cases: Iterable[Case], names: Mapping[str, str], *, is_a: bool, is_b: bool) -> Looks | None:
    """The order of a run that was to end once it is decided; None for another. `names` are those of its cases in
    records, where they differ."""
    if plan.until_decided is None:
        return None
    units = [
        [names.get(case.key, case.key) for case in unit]
        for _, unit in groupby(cases, lambda case: case.group if case.group is not None else (case.key,))
    ]
    return Looks(units, plan.trials_by_variant, is_a, is_b)


def difference_ends(
    cases: Sequence[str],
    before: Mapping[str, CaseTotal],
    after: Mapping[str, CaseTotal],
    scale: ValueRange,
) -> UnitEnds | None:
    """The ends of a unit, whatever its errors would have been; None if none of its cases has trials on both sides.

    Its other cases count for nothing, as in a difference of a fixed number of cases: where one of ten was not skipped,
    the unit weighs a tenth of one that has all.
    """
    both = [(before.get(case), after.get(case)) for case in cases]
    pairs = [
        (_mean(b, scale.low) - _mean(a, scale.high), _mean(b, scale.high) - _mean(a, scale.low))
        for a, b in both
        if a is not None and b is not None and _trials(a) and _trials(b)
    ]
    if not pairs:
        return None
    least, greatest = (sum(ends) / len(pairs) for ends in zip(*pairs, strict=True))
    return UnitEnds(least, greatest, len(pairs))


def _looked_at(outcome: CaseTotal | None, planned: int) -> bool:
    return outcome is not None and _trials(outcome) + outcome.skipped >= planned


def _trials(outcome: CaseTotal) -> int:
    return outcome.judged + outcome.target_errors + outcome.evaluator_errors


def _mean(outcome: CaseTotal, of_errors: float) -> float:
    """The mean over trials, of which those that erred have this value."""
    errors = outcome.target_errors + outcome.evaluator_errors
    return (outcome.total + of_errors * errors) / _trials(outcome)
