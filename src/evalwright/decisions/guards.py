"""Guards: limits besides the metric that a decision must keep."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from evalwright.decisions.pairing import Ground
from evalwright.decisions.sensitivity import error_counts, readings
from evalwright.decisions.sides import PASS_RATE, CaseTotal
from evalwright.decisions.terms import QUANTILES, Guard
from evalwright.errors import counted
from evalwright.model.decision import GuardPart, GuardState
from evalwright.statistics.distributions import Interval
from evalwright.statistics.latency import quantile_needs
from evalwright.statistics.ratios import LEAST_UNITS, QuantileRatio, quantile_ratio, ratio_of_means

__all__ = ["guard_parts"]


def guard_parts(ground: Ground) -> list[GuardPart]:
    """Each guard holds if its whole interval does. All must hold, so nothing is adjusted for their number."""
    return [_guard(ground, guard) for guard in ground.terms.guards]


def _guard(ground: Ground, guard: Guard) -> GuardPart:
    if guard.evaluator is not None:
        try:
            return _part_of_evaluator(ground, guard, guard.evaluator)
        except OverflowError:
            reason = "its scores are too large to be compared"
            return GuardPart(guard.name, guard.limit, None, None, "undecided", reason)
    return _part_of_measure(ground, guard, "latency" if guard.name in QUANTILES else guard.name)


def _part_of_evaluator(ground: Ground, guard: Guard, name: str) -> GuardPart:
    """A loss of an evaluator; undecided if it would be another with its missing results failed or passed."""
    pairs = ground.pairs_of(name)
    # Scores that are all the same, and none of 0 to 1, have no range.
    measured, width = pairs.difference(ground.alpha), pairs.scale.width or 1.0
    if measured.ci is None or measured.difference is None:
        return GuardPart(guard.name, guard.limit, None, None, "undecided", "no case was judged by it on both sides")

    def state(ends: Interval | None) -> GuardState:
        return "undecided" if ends is None else _state((-ends[1] / width, -ends[0] / width), -guard.limit)

    low, high = measured.ci
    part = GuardPart(
        guard.name, guard.limit, measured.difference / width, (low / width, high / width), state(measured.ci)
    )
    missing = [total for side in (ground.a, ground.b) for total in error_counts(side.outcomes(name)).missing]
    if missing:
        others = {
            state(ground.pairs_of(name, *reading).difference(ground.alpha).ci)
            for reading in readings(ground.terms, pairs.scale)
        }
        if others != {part.state}:
            part.state, part.reason = "undecided", "its missing results could turn it"
    return part


def _part_of_measure(ground: Ground, guard: Guard, measure: str) -> GuardPart:
    """A ratio; undecided if it would be another had all unmeasured trials the lowest, or the highest, measured value.

    Trials have no measure because they erred, were not run, or because a model has no known price.
    """
    cases, level = _measured_pairs(ground, measure), QUANTILES.get(guard.name)
    ratio = cases.ratio(level, ground.alpha)
    if ratio.ci is None:
        return GuardPart(guard.name, guard.limit, ratio.value, None, "undecided", ratio.reason)
    part = GuardPart(guard.name, guard.limit, ratio.value, ratio.ci, ratio.state(guard.limit))
    if part.state != _state(ratio.ci, guard.limit):
        part.reason = f"the {measure} at this quantile jumps {ratio.jump:.3g}-fold: too few trials to tell where"
    elif missing := sum(cases.missing_a) + sum(cases.missing_b):
        low, high = cases.ends
        extremes = [(low, high), (high, low)] if ground.terms.errors == "strict" else []
        filled = [cases.filled(*values).ratio(level, ground.alpha) for values in ((low, low), (high, high), *extremes)]
        if any(bound.state(guard.limit) != part.state for bound in filled):
            part.state = "undecided"
            part.reason = f"{counted(missing, 'trial')} without measured {measure} could turn it"
    return part


def _state(ends: Interval | None, limit: float) -> GuardState:
    return (
        "undecided" if ends is None else "holds" if ends[1] <= limit else "broken" if ends[0] > limit else "undecided"
    )


class _Ratio(NamedTuple):
    value: float | None
    ci: Interval | None
    reason: str
    """Why it has no interval."""
    widest: Interval | None = None
    jump: float = 1.0
    """As in `QuantileRatio`."""

    def state(self, limit: float) -> GuardState:
        """Where a jump of the values is more than the limit allows, what the interval says of it must hold at worst."""
        state = _state(self.ci, limit)
        if self.jump > max(limit, 1 / limit) and _state(self.widest, limit) != state:
            return "undecided"
        return state


class _Measured(NamedTuple):
    """What the trials of the cases of both sides used, case by case, and how many trials have no such value."""

    measure: str
    a: Sequence[Sequence[float]]
    b: Sequence[Sequence[float]]
    missing_a: list[int]
    missing_b: list[int]
    groups: list[object]

    @property
    def ends(self) -> Interval:
        """The lowest and the highest value of either side; there must be some."""
        return min(chain(*self.a, *self.b)), max(chain(*self.a, *self.b))

    def filled(self, one: float, other: float) -> _Measured:
        """The same cases with these values for A's and B's missing ones."""
        a = [[*values, *[one] * n] for values, n in zip(self.a, self.missing_a, strict=True)]
        b = [[*values, *[other] * n] for values, n in zip(self.b, self.missing_b, strict=True)]
        return self._replace(a=a, b=b)

    def ratio(self, level: float | None, alpha: float) -> _Ratio:
        """B/A of the cases measured on both sides: of their means, or of a quantile of all trials."""
        both = [bool(one and other) for one, other in zip(self.a, self.b, strict=True)]
        a = [values for values, measured in zip(self.a, both, strict=True) if measured]
        b = [values for values, measured in zip(self.b, both, strict=True) if measured]
        groups = [group for group, measured in zip(self.groups, both, strict=True) if measured]
        if not a:
            return _Ratio(None, None, "not measured on both sides")
        if level is not None:
            ratio = quantile_ratio(a, b, level, groups, 1 - alpha)
            why = "" if ratio.ci is not None else _no_quantile_reason(ratio, level, len(set(groups)), alpha)
            return _Ratio(ratio.ratio, ratio.ci, why, ratio.widest, ratio.jump)
        mean = ratio_of_means(_means(a), _means(b), groups, 1 - alpha)
        return _Ratio(mean.ratio, mean.ci, "" if mean.ci is not None else self._no_interval_reason(a, b))

    def _no_interval_reason(self, a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> str:
        """Why a ratio of means has no interval."""
        if not any(chain(*a)) or not any(chain(*b)):
            return "a side is 0"
        if len(a) == 1:
            return "measured of a single case"
        return f"the {self.measure} of one unit is all of a side, or too large to compare"


def _no_quantile_reason(ratio: QuantileRatio, level: float, units: int, alpha: float) -> str:
    if ratio.ratio is None:
        return "a side is 0"
    if units < LEAST_UNITS:
        return f"needs {LEAST_UNITS} units that both sides measured, found {units}"
    return f"needs {quantile_needs(level, alpha)} independent trials of each side, found {ratio.worth}"


def _measured_pairs(ground: Ground, measure: str) -> _Measured:
    shared = ground.shared(PASS_RATE)
    cases, kinds = shared.listed()
    a, b = ground.a.measures[measure].by_case(), ground.b.measures[measure].by_case()
    ones, others = [a.get(case, ()) for case in cases], [b.get(case, ()) for case in cases]
    trials = [(_trials(one), _trials(other)) for one, other in shared.kinds]
    return _Measured(
        measure,
        ones,
        others,
        [trials[kind][0] - len(values) for kind, values in zip(kinds, ones, strict=True)],
        [trials[kind][1] - len(values) for kind, values in zip(kinds, others, strict=True)],
        [*(ground.units(cases) or cases)],
    )


def _trials(outcome: CaseTotal) -> int:
    return outcome.judged + outcome.target_errors + outcome.evaluator_errors + outcome.not_run


def _means(cases: Sequence[Sequence[float]]) -> list[float]:
    return [sum(values) / len(values) for values in cases]
