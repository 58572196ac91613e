"""Two sides of the same cases, with errors left out or counted as the worst or best value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import msgspec

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

__all__ = ["Counting", "Ground", "Labelled", "Pairs", "SharedCases", "ValueRange", "scale_of"]


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


class SharedCases(NamedTuple):
    """The cases of both sides. Of indexed runs many have the same two totals: what follows from these is found once."""

    cases: list[str]
    kinds: list[tuple[CaseTotal, CaseTotal]]
    of: list[int]
    """The kind of each case."""

    def times(self) -> list[int]:
        """How many cases there are of each kind."""
        counted = Counter(self.of)
        return [counted[kind] for kind in range(len(self.kinds))]

    def only(self, kept: Sequence[bool]) -> SharedCases:
        """The cases of some kinds."""
        if all(kept):
            return self
        chosen = [kept[kind] for kind in self.of]
        return SharedCases(list(compress(self.cases, chosen)), self.kinds, list(compress(self.of, chosen)))


def _shared(a: Mapping[str, CaseTotal], b: Mapping[str, CaseTotal], left_out: Collection[str]) -> SharedCases:
    cases = [case for case in a if case in b and case not in left_out]
    befores, afters = [a[case] for case in cases], [b[case] for case in cases]
    keys = list(zip(map(id, befores), map(id, afters), strict=True))
    kinds = dict(zip(keys, zip(befores, afters, strict=True), strict=True))
    numbers = {key: number for number, key in enumerate(kinds)}
    return SharedCases(cases, [*kinds.values()], [numbers[key] for key in keys])


class Ground(msgspec.Struct):
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
    known: dict[str, SharedCases] = {}
    """By metric, as far as they were asked for."""

    def outcomes(self) -> tuple[Mapping[str, CaseTotal], Mapping[str, CaseTotal]]:
        """Both sides by the metric."""
        return self.a.outcomes(self.terms.metric), self.b.outcomes(self.terms.metric)

    def shared(self, metric: str | None = None) -> SharedCases:
        """The cases that both sides have and that are not left out, by a metric: the decision's, if none is named."""
        name = self.terms.metric if metric is None else metric
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = _shared(self.a.outcomes(name), self.b.outcomes(name), self.left_out)
        return found

    def units(self, cases: Sequence[str]) -> list[Hashable] | None:
        """The unit of each case; None where each is its own."""
        return [self.groups.get(case, (case,)) for case in cases] if self.groups else None

    def pairs(
        self, one: Counting = _NOTHING, other: Counting = _NOTHING, *, only: Collection[str] | None = None
    ) -> Pairs:
        """The cases (of `only`, if given) that both sides judged."""
        metric = self.terms.metric
        shared = self.shared(metric)
        if only is not None:
            befores = self.a.outcomes(metric)
            asked = {case: befores[case] for case in only if case in befores}
            shared = _shared(asked, self.b.outcomes(metric), self.left_out)
        return self._paired(shared, metric, self.scale, one, other)

    def pairs_of(self, evaluator: str) -> Pairs:
        """The cases that both sides judged by another metric."""
        return self._paired(self.shared(evaluator), evaluator, scale_of(self.a, self.b, evaluator))

    def passes_of(self, evaluator: str) -> Pairs | None:
        """The same of its passes; None where its scores are nothing else."""
        shared = self.shared(evaluator)
        if all(one.total == one.passed for kind in shared.kinds for one in kind):
            return None
        passes = shared._replace(kinds=[(_passes_of(one), _passes_of(other)) for one, other in shared.kinds])
        return self._paired(passes, PASS_RATE, ValueRange())

    def differences(
        self, shared: SharedCases, values: Sequence[float | None], scale: ValueRange, *, single: bool
    ) -> Pairs:
        """The cases of all kinds that have a value, with it."""
        kept = shared.only([value is not None for value in values])
        differences: list[float] = list(map(values.__getitem__, kept.of))  # type: ignore[arg-type]
        return Pairs(kept.cases, differences, self.units(kept.cases), single, scale)

    def _paired(
        self,
        shared: SharedCases,
        metric: str,
        scale: ValueRange,
        one: Counting = _NOTHING,
        other: Counting = _NOTHING,
    ) -> Pairs:
        suite = self.terms.population == "suite"
        trials = [_trials_of(kind, one, other, _LEAST_TRIALS if suite else 1) for kind in shared.kinds]
        values = [None if t is None else t.total_b / t.trials_b - t.total_a / t.trials_a for t in trials]
        single = all(
            t.trials_a == t.trials_b == 1 and t.total_a in (0, 1) and t.total_b in (0, 1)
            for t in trials
            if t is not None
        )
        pairs = self.differences(shared, values, scale, single=single)
        if not suite:
            return pairs
        if metric != PASS_RATE:
            trials = [t and _with_squares(t, kind, one, other) for t, kind in zip(trials, shared.kinds, strict=True)]
        return pairs._replace(trials=[found for kind in shared.of if (found := trials[kind]) is not None])

    def decided(self, pairs: Pairs) -> DecidedDifference:
        """The difference at this margin; no verdict to ship where B must be better and is only not worse."""
        found = pairs.difference(self.alpha, self.margin)
        return found._replace(verdict=self.verdict(found.ci))

    def verdict(self, ends: Interval | None) -> ShipVerdict:
        """What an interval of the difference says at this margin."""
        found = verdict_of(ends, self.margin)
        short = self.terms.better and found == "ship" and (ends is None or ends[0] <= 0)
        return "undecided" if short else found


def _passes_of(outcome: CaseTotal) -> CaseTotal:
    """What an evaluator passed, in place of its scores."""
    return CaseTotal(outcome.passed, outcome.judged)


def _trials_of(kind: tuple[CaseTotal, CaseTotal], one: Counting, other: Counting, least: int) -> TrialsOfCase | None:
    """What both sides' trials of a case came to; None where a side has fewer than so many."""
    (total_a, n_a), (total_b, n_b) = one.of(kind[0]), other.of(kind[1])
    return TrialsOfCase(total_a, n_a, total_b, n_b) if n_a >= least and n_b >= least else None


def _with_squares(
    trials: TrialsOfCase, kind: tuple[CaseTotal, CaseTotal], one: Counting, other: Counting
) -> TrialsOfCase:
    return trials._replace(squares_a=one.squares_of(kind[0]), squares_b=other.squares_of(kind[1]))
