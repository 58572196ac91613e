"""Two sides of the same cases, with errors left out or counted as the worst or best value."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

from evalwright.decisions.sides import PASS_RATE, CaseTotal, SideCounts
from evalwright.decisions.terms import Terms
from evalwright.statistics.differences import (
    DecidedDifference,
    ShipVerdict,
    TrialsOfCase,
    decide_difference,
    decide_suite,
    verdict_of,
)
from evalwright.statistics.proportions import Interval

__all__ = ["Counting", "Ground", "Labelled", "Pairs", "ValueRange", "scale_of"]


class ValueRange(NamedTuple):
    """The least and the greatest value of a metric."""

    low: float = 0.0
    high: float = 1.0

    @property
    def width(self) -> float:
        return self.high - self.low


class Counting(NamedTuple):
    """What a trial without verdict counts as; None: nothing."""

    target: float | None = None
    evaluator: float | None = None

    def of(self, outcome: CaseTotal) -> tuple[float, int]:
        """Total and number of trials of a case."""
        total, n = outcome.total, outcome.judged
        for value, number in ((self.target, outcome.target_errors), (self.evaluator, outcome.evaluator_errors)):
            if value is not None and number:
                total, n = total + value * number, n + number
        return total, n

    def squares_of(self, outcome: CaseTotal) -> float:
        """The total of the squares of a case's scores."""
        target, evaluator = self.target or 0.0, self.evaluator or 0.0
        return outcome.squares + target**2 * outcome.target_errors + evaluator**2 * outcome.evaluator_errors


_NOTHING = Counting()
_LEAST_TRIALS = 2
"""A side, of a case, from which its trials say how much they vary."""


class Labelled(NamedTuple):
    """What is known of the cases beside their outcomes."""

    groups: Mapping[str, str] = {}
    slices: Mapping[tuple[str, str], Collection[str]] = {}
    """Cases by key and value."""


class Pairs(NamedTuple):
    """The cases that both sides judged: changes, their units, and the trials behind them."""

    cases: list[str]
    differences: list[float]
    units: Sequence[Hashable] | None
    single: bool
    """Whether each is of one trial a side, passed or not."""
    scale: ValueRange
    trials: list[TrialsOfCase] | None = None
    """Of each case, where these are the sample and not the cases."""

    def difference(self, alpha: float, margin: float = 0.0) -> DecidedDifference:
        """The mean difference, by itself without a margin."""
        if self.trials is not None:
            return decide_suite(self.trials, alpha, margin, self.scale.width)
        return decide_difference(self.differences, self.units, alpha, margin, self.single, self.scale.width)


def scale_of(a: SideCounts, b: SideCounts, metric: str) -> ValueRange:
    """0 to 1, unless a score lies outside."""
    seen = [side.range[metric] for side in (a, b) if metric in side.range]
    low, high = min((ends[0] for ends in seen), default=0.0), max((ends[1] for ends in seen), default=1.0)
    return ValueRange() if low >= 0 and high <= 1 else ValueRange(low, high)


class Ground(NamedTuple):
    """What every part of one decision stands on."""

    a: SideCounts
    b: SideCounts
    terms: Terms
    scale: ValueRange
    margin: float
    alpha: float
    """Divided by the size of the family."""
    groups: Mapping[str, str]
    left_out: Collection[str]

    def outcomes(self) -> tuple[Mapping[str, CaseTotal], Mapping[str, CaseTotal]]:
        """Both sides by the metric."""
        return self.a.outcomes(self.terms.metric), self.b.outcomes(self.terms.metric)

    def units(self, cases: Sequence[str]) -> list[Hashable] | None:
        """The unit of each case; None where each is its own."""
        return [self.groups.get(case, (case,)) for case in cases] if self.groups else None

    def pairs(
        self, one: Counting = _NOTHING, other: Counting = _NOTHING, *, only: Collection[str] | None = None
    ) -> Pairs:
        """The cases (of `only`, if given) that both sides judged."""
        return self._paired(self.terms.metric, self.scale, one, other, only)

    def pairs_of(self, evaluator: str) -> Pairs:
        """The cases that both sides judged by another metric."""
        return self._paired(evaluator, scale_of(self.a, self.b, evaluator), _NOTHING, _NOTHING, None)

    def _paired(
        self, metric: str, scale: ValueRange, one: Counting, other: Counting, only: Collection[str] | None
    ) -> Pairs:
        cases, differences, single = [], [], True
        trials: list[TrialsOfCase] | None = [] if self.terms.population == "suite" else None
        scores, afters = metric != PASS_RATE, self.b.outcomes(metric)
        befores = self.a.outcomes(metric)
        asked = befores if only is None else {case: befores[case] for case in only if case in befores}
        for case, before in asked.items():
            after = afters.get(case)
            if after is None or case in self.left_out:
                continue
            total_a, n_a, total_b, n_b = before.total, before.judged, after.total, after.judged
            if before.target_errors or before.evaluator_errors:
                total_a, n_a = one.of(before)
            if after.target_errors or after.evaluator_errors:
                total_b, n_b = other.of(after)
            if not n_a or not n_b:
                continue
            if trials is not None:
                if n_a < _LEAST_TRIALS or n_b < _LEAST_TRIALS:
                    continue
                squares = (one.squares_of(before), other.squares_of(after)) if scores else ()
                trials.append(TrialsOfCase(total_a, n_a, total_b, n_b, *squares))
            cases.append(case)
            differences.append(total_b / n_b - total_a / n_a)
            single = single and n_a == n_b == 1 and total_a in (0, 1) and total_b in (0, 1)
        return Pairs(cases, differences, self.units(cases), single, scale, trials)

    def decided(self, pairs: Pairs) -> DecidedDifference:
        """The difference at this margin; no verdict to ship where B must be better and is only not worse."""
        found = pairs.difference(self.alpha, self.margin)
        return found._replace(verdict=self.verdict(found.ci))

    def verdict(self, ends: Interval | None) -> ShipVerdict:
        """What an interval of the difference says at this margin."""
        found = verdict_of(ends, self.margin)
        short = self.terms.better and found == "ship" and (ends is None or ends[0] <= 0)
        return "undecided" if short else found
