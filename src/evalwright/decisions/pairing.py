"""Two sides of the same cases, with errors left out or counted as the worst or best value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from itertools import chain, compress
from typing import NamedTuple

import msgspec

from evalwright.decisions.kinds import changed_totals, kinds_of_both
from evalwright.decisions.sides import PASS_RATE, CaseTotal, SideCounts, within_floats
from evalwright.decisions.terms import Terms
from evalwright.statistics.differences import (
    DecidedDifference,
    ShipVerdict,
    TrialsOfCase,
    decide_suite,
    decide_units,
    verdict_of,
)
from evalwright.statistics.distributions import Interval
from evalwright.statistics.units import Cluster, Units, units_from, units_of

__all__ = [
    "CaseGroups",
    "Counting",
    "Ground",
    "Pairs",
    "SharedCases",
    "ValueRange",
    "scale_of",
    "shared_cases",
    "with_skips",
]


class ValueRange(NamedTuple):
    """The lowest and highest value of a metric."""

    low: float = 0.0
    high: float = 1.0

    @property
    def width(self) -> float:
        """Raises OverflowError beyond the range of floats."""
        return within_floats(self.high - self.low)


class Counting(NamedTuple):
    """What a trial without a verdict counts as; None if it is left out."""

    target: float | None = None
    evaluator: float | None = None
    not_run: float | None = None

    def of(self, outcome: CaseTotal) -> tuple[float, int]:
        """Total and number of trials of a case."""
        total, n = outcome.total, outcome.judged
        for value, number in zip(self, _without_verdict(outcome), strict=True):
            if value is not None and number:
                total, n = total + value * number, n + number
        return total, n

    def over(self, outcomes: Mapping[str, CaseTotal]) -> Mapping[str, CaseTotal]:
        """The same cases with the counts of their trials; some may have none."""
        return outcomes if self == _NOTHING else changed_totals(outcomes, lambda one: CaseTotal(*self.of(one)))

    def squares_of(self, outcome: CaseTotal) -> float:
        """The sum of squares of a case's scores."""
        counted = zip(self, _without_verdict(outcome), strict=True)
        return outcome.squares + sum((value or 0.0) ** 2 * number for value, number in counted)


def _without_verdict(outcome: CaseTotal) -> tuple[int, int, int]:
    """The numbers of trials without a verdict, in the order of `Counting`."""
    return outcome.target_errors, outcome.evaluator_errors, outcome.not_run


_NOTHING = Counting()
_LEAST_TRIALS = 2
"""Trials of a case on a side from which their variation can be estimated."""


class CaseGroups(NamedTuple):
    """What is known of the cases besides their outcomes."""

    groups: Mapping[str, str] = {}
    slices: Mapping[tuple[str, str], Collection[str]] = {}
    """Cases by key and value."""


class Pairs(NamedTuple):
    """The changes of the cases that both sides judged, and the trials behind them."""

    units: Units
    single: bool
    """Whether each is of one trial a side, passed or not."""
    scale: ValueRange
    grouped: bool = False
    """Whether cases are in groups."""
    trials: list[TrialsOfCase] | None = None
    """The trials of each case, if these are the sample and not the cases."""

    def difference(self, alpha: float, margin: float = 0.0) -> DecidedDifference:
        """The mean difference, without a margin."""
        if self.trials is not None:
            return decide_suite(self.trials, alpha, margin, self.scale.width)
        return decide_units(self.units, alpha, margin, self.single, self.scale.width)


def scale_of(a: SideCounts, b: SideCounts, metric: str) -> ValueRange:
    """0 to 1, unless a score lies outside."""
    seen = [side.range[metric] for side in (a, b) if metric in side.range]
    low, high = min((ends[0] for ends in seen), default=0.0), max((ends[1] for ends in seen), default=1.0)
    return ValueRange() if low >= 0 and high <= 1 else ValueRange(low, high)


class SharedCases(NamedTuple):
    """The cases of both sides. Many of indexed runs share their two totals: values derived from these are cached."""

    kinds: list[tuple[CaseTotal, CaseTotal]]
    times: list[int]
    """How many cases there are of each kind."""
    named: Callable[[list[int]], tuple[list[str], list[int]]]
    """The names of the cases of some kinds, by their places, and the kind of each."""

    def only(self, chosen: Sequence[bool]) -> SharedCases:
        """The cases of some kinds; the others have none then."""
        return self._replace(times=[n if keep else 0 for n, keep in zip(self.times, chosen, strict=True)])

    def listed(self) -> tuple[list[str], list[int]]:
        """The names of the cases, and the kind of each."""
        return self.named([kind for kind, n in enumerate(self.times) if n])


class _Listed(NamedTuple):
    """Cases with their kinds."""

    cases: list[str]
    of: list[int]

    def named(self, kinds: list[int]) -> tuple[list[str], list[int]]:
        wanted = set(kinds)
        chosen = [kind in wanted for kind in self.of]
        return list(compress(self.cases, chosen)), list(compress(self.of, chosen))


def shared_cases(a: Mapping[str, CaseTotal], b: Mapping[str, CaseTotal], left_out: Collection[str] = ()) -> SharedCases:
    """The cases that both sides have, without those left out."""
    if not left_out and (pairs := kinds_of_both(a, b)) is not None:
        return SharedCases(*pairs)
    cases = [case for case in a if case in b and case not in left_out]
    befores, afters = [a[case] for case in cases], [b[case] for case in cases]
    keys = list(zip(map(id, befores), map(id, afters), strict=True))
    kinds = dict(zip(keys, zip(befores, afters, strict=True), strict=True))
    numbers = {key: number for number, key in enumerate(kinds)}
    listed = _Listed(cases, [numbers[key] for key in keys])
    counted = Counter(listed.of)
    return SharedCases([*kinds.values()], [counted[kind] for kind in range(len(kinds))], listed.named)


class Ground(msgspec.Struct):
    """The data that every part of one decision is based on."""

    a: SideCounts
    b: SideCounts
    terms: Terms
    scale: ValueRange
    margin: float
    alpha: float
    """Alpha divided by the size of the family."""
    groups: Mapping[str, str]
    left_out: Collection[str]
    known: dict[str, SharedCases] = {}
    """By metric, once computed."""

    def outcomes(self) -> tuple[Mapping[str, CaseTotal], Mapping[str, CaseTotal]]:
        """Both sides by the metric."""
        return self.a.outcomes(self.terms.metric), self.b.outcomes(self.terms.metric)

    def shared(self, metric: str | None = None) -> SharedCases:
        """The cases that both sides have and that are not left out, by a metric: the decision's, if none is named."""
        name = self.terms.metric if metric is None else metric
        record = self.known.get(name)
        if record is None:
            record = self.known[name] = shared_cases(self.a.outcomes(name), self.b.outcomes(name), self.left_out)
        return record

    def units(self, cases: Sequence[str]) -> list[Hashable] | None:
        """The unit of each case; None where each is its own."""
        return [self.groups.get(case, (case,)) for case in cases] if self.groups else None

    def counting(self, scale: ValueRange) -> Counting:
        """What trials without a verdict count as by the terms, on this scale."""
        return Counting(scale.low if self.terms.errors == "fail" else None)

    def pairs(
        self, one: Counting | None = None, other: Counting | None = None, *, only: Collection[str] | None = None
    ) -> Pairs:
        """The cases (of `only`, if given) that both sides judged, each side counted by the terms unless otherwise."""
        metric = self.terms.metric
        shared = self.shared(metric)
        if only is not None:
            befores = self.a.outcomes(metric)
            before = {case: befores[case] for case in only if case in befores}
            shared = shared_cases(before, self.b.outcomes(metric), self.left_out)
        return self._paired_scores(shared, metric, self.scale, one, other)

    def pairs_of_skips(self) -> Pairs:
        """The cases that either side judged, as if skipped trials had failed."""
        shared, low = self.shared(), self.scale.low
        kinds = [
            (with_skips(one, low), with_skips(other, low)) if one.judged or other.judged else (one, other)
            for one, other in shared.kinds
        ]
        return self._paired_scores(shared._replace(kinds=kinds), self.terms.metric, self.scale)

    def pairs_of(self, evaluator: str, one: Counting | None = None, other: Counting | None = None) -> Pairs:
        """The same for another metric."""
        return self._paired_scores(self.shared(evaluator), evaluator, scale_of(self.a, self.b, evaluator), one, other)

    def passes_of(self, evaluator: str) -> Pairs | None:
        """The same for its passes; None if its scores are just passes."""
        shared = self.shared(evaluator)
        if all(one.total == one.passed for kind in shared.kinds for one in kind):
            return None
        passes = shared._replace(kinds=[(_passes_of(pair), _passes_of(other)) for pair, other in shared.kinds])
        return self._paired_scores(passes, PASS_RATE, ValueRange())

    def differences(
        self, shared: SharedCases, values: Sequence[float | None], scale: ValueRange, *, single: bool
    ) -> Pairs:
        """The cases of all kinds that have a value, with it."""
        measured = shared.only([value is not None for value in values])
        if self.groups:
            cases, of = measured.listed()
            units = units_of([values[kind] or 0.0 for kind in of], self.units(cases))
            return Pairs(units, single, scale, grouped=True)
        counts: Counter[Cluster] = Counter()
        for value, n in zip(values, measured.times, strict=True):
            if value is not None and n:
                counts[Cluster(value, 1)] += n
        return Pairs(units_from(counts), single, scale)

    def _paired_scores(
        self,
        shared: SharedCases,
        metric: str,
        scale: ValueRange,
        one: Counting | None = None,
        other: Counting | None = None,
    ) -> Pairs:
        usual = self.counting(scale)
        one, other = usual if one is None else one, usual if other is None else other
        suite = self.terms.population == "suite"
        trials = [_trials_of(kind, one, other, _LEAST_TRIALS if suite else 1) for kind in shared.kinds]
        values = [None if t is None else _change(t) for t in trials]
        single = (scale == ValueRange()) and all(
            t.trials_a == t.trials_b == 1 and t.total_a in (0, 1) and t.total_b in (0, 1)
            for t in trials
            if t is not None
        )
        pairs = self.differences(shared, values, scale, single=single)
        if not suite:
            return pairs
        if metric != PASS_RATE:
            trials = [t and _with_squares(t, kind, one, other) for t, kind in zip(trials, shared.kinds, strict=True)]
        every = [[trial] * n for trial, n in zip(trials, shared.times, strict=True) if trial is not None]
        return pairs._replace(trials=list(chain.from_iterable(every)))

    def decided(self, pairs: Pairs) -> DecidedDifference:
        """The difference at this margin; not a verdict to ship if B must be better and is only not worse."""
        difference = pairs.difference(self.alpha, self.margin)
        return difference._replace(verdict=self.verdict(difference.ci))

    def verdict(self, ends: Interval | None) -> ShipVerdict:
        """The verdict that an interval of the difference gives at this margin."""
        return verdict_of(ends, self.margin, better=self.terms.better)


def _change(trials: TrialsOfCase) -> float:
    return within_floats(trials.total_b / trials.trials_b - trials.total_a / trials.trials_a)


def with_skips(outcome: CaseTotal, value: float) -> CaseTotal:
    """The same case with this value for its skipped trials."""
    total, squares = outcome.total + value * outcome.skipped, outcome.squares + value**2 * outcome.skipped
    return msgspec.structs.replace(outcome, total=total, squares=squares, judged=outcome.judged + outcome.skipped)


def _passes_of(outcome: CaseTotal) -> CaseTotal:
    """The passes of an evaluator, in place of its scores."""
    return CaseTotal(outcome.passed, outcome.judged, outcome.target_errors)


def _trials_of(kind: tuple[CaseTotal, CaseTotal], one: Counting, other: Counting, least: int) -> TrialsOfCase | None:
    """The outcomes of both sides' trials of a case; None if a side has too few."""
    (total_a, n_a), (total_b, n_b) = one.of(kind[0]), other.of(kind[1])
    return TrialsOfCase(total_a, n_a, total_b, n_b) if n_a >= least and n_b >= least else None


def _with_squares(
    trials: TrialsOfCase, kind: tuple[CaseTotal, CaseTotal], one: Counting, other: Counting
) -> TrialsOfCase:
    return trials._replace(squares_a=one.squares_of(kind[0]), squares_b=other.squares_of(kind[1]))
