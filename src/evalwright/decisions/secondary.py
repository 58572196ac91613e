"""Decisions besides the metric: guards that must hold, and evaluators and slices that are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from evalwright.decisions.pairing import Ground
from evalwright.decisions.sensitivity import error_counts, readings
from evalwright.decisions.terms import QUANTILES, Guard
from evalwright.model.decision import EvaluatorPart, GuardPart, SlicePart, State
from evalwright.statistics.corrections import adjust_p_values
from evalwright.statistics.ratios import quantile_ratio, ratio_of_means

__all__ = ["evaluator_parts", "guard_parts", "slice_parts"]

_LEAST_UNITS = 6
"""Slices with fewer units are pooled."""


def guard_parts(ground: Ground) -> list[GuardPart]:
    """Each guard holds if its whole interval does. All must hold, so nothing is adjusted for their number."""
    return [_guard(ground, guard) for guard in ground.terms.guards]


def _guard(ground: Ground, guard: Guard) -> GuardPart:
    if guard.evaluator is not None:
        return _of_evaluator(ground, guard, guard.evaluator)
    if guard.name in QUANTILES:
        value, ends = _quantile(ground, QUANTILES[guard.name])
        missing = "needs 20 units that both sides measured" if ends is None else ""
    else:
        value, ends, missing = _ratio(ground, guard.name)
    state = "undecided" if ends is None else _state(ends[0], ends[1], guard.limit)
    return GuardPart(guard.name, guard.limit, value, ends, state, missing)


def _of_evaluator(ground: Ground, guard: Guard, name: str) -> GuardPart:
    """A loss of an evaluator; undecided if it would be another with its missing results failed or passed."""
    pairs = ground.pairs_of(name)
    # Scores that are all the same, and none of 0 to 1, have no range.
    found, width = pairs.difference(ground.alpha), pairs.scale.width or 1.0
    if found.ci is None or found.difference is None:
        return GuardPart(guard.name, guard.limit, None, None, "undecided", "no case was judged by it on both sides")

    def state(ends: tuple[float, float] | None) -> State:
        return "undecided" if ends is None else _state(-ends[1] / width, -ends[0] / width, -guard.limit)

    low, high = found.ci
    part = GuardPart(guard.name, guard.limit, found.difference / width, (low / width, high / width), state(found.ci))
    missing = [one for side in (ground.a, ground.b) for one in error_counts(side.outcomes(name)).missing]
    if missing:
        others = {
            state(ground.pairs_of(name, *reading).difference(ground.alpha).ci)
            for reading in readings(ground.terms, pairs.scale)
        }
        if others != {part.state}:
            part.state, part.reason = "undecided", "its missing results could turn it"
    return part


def _state(low: float, high: float, limit: float) -> State:
    return "holds" if high <= limit else "broken" if low > limit else "undecided"


def _ratio(ground: Ground, measure: str) -> tuple[float | None, tuple[float, float] | None, str]:
    before, after = ground.a.measures[measure].means(), ground.b.measures[measure].means()
    cases = [case for case in before if case in after and case not in ground.left_out]
    found = ratio_of_means([before[c] for c in cases], [after[c] for c in cases], ground.units(cases), 1 - ground.alpha)
    missing = "" if found.ci is not None else _why_none(measure, before, after, cases)
    return found.ratio, found.ci, missing


def _why_none(measure: str, before: Mapping[str, float], after: Mapping[str, float], cases: Sequence[str]) -> str:
    """Why a ratio of means has no interval."""
    if not cases:
        return "not measured on both sides"
    if not any(before[c] for c in cases) or not any(after[c] for c in cases):
        return "a side is 0"
    if len(cases) == 1:
        return "measured of a single case"
    return f"the {measure} of one unit is all of a side, or too large to compare"


def _quantile(ground: Ground, level: float) -> tuple[float | None, tuple[float, float] | None]:
    a, b = ground.a.measures["latency"].by_case(), ground.b.measures["latency"].by_case()
    cases = [case for case in a if case in b and case not in ground.left_out]
    found = quantile_ratio([a[c] for c in cases], [b[c] for c in cases], level, ground.units(cases), 1 - ground.alpha)
    return found.ratio, found.ci


def evaluator_parts(ground: Ground) -> list[EvaluatorPart]:
    """Every evaluator of both sides except the metric: raw interval, q over all of them."""
    parts = []
    for name in sorted(ground.a.scores.keys() & ground.b.scores.keys() - {ground.terms.metric}):
        found = ground.pairs_of(name).difference(ground.alpha)
        passes = ground.passes_of(name)
        part = EvaluatorPart(name, found.difference, found.ci, found.p_value, found.n, scored=passes is not None)
        rate = found if passes is None else passes.difference(ground.alpha)
        part.rate_difference, part.rate_ci, part.rate_p = rate.difference, rate.ci, rate.p_value
        parts.append(part)
    tested = [part for part in parts if part.p is not None]
    for part, q in zip(tested, _adjusted([part.p for part in tested], "benjamini_hochberg"), strict=True):
        part.q = q
    return parts


def slice_parts(ground: Ground, slices: Mapping[tuple[str, str], Collection[str]]) -> list[SlicePart]:
    """Each slice of at least 6 units, the rest of its key pooled as `other`; p adjusted over all of them."""
    pooled: dict[str, dict[str, None]] = {}
    parts = []
    margin = ground.terms.slice_margin

    def part(key: str, value: str, cases: Collection[str]) -> SlicePart:
        found = ground.pairs(only=cases).difference(ground.alpha, margin or 0.0)
        p_margin = None if margin is None else found.p_margin
        ends = found.difference, found.ci, found.p_value
        return SlicePart(key, value, found.n, found.units, *ends, p_margin=p_margin)

    for (key, value), cases in slices.items():
        made = part(key, value, cases)
        if made.units >= _LEAST_UNITS:
            parts.append(made)
        else:
            pooled.setdefault(key, {}).update(dict.fromkeys(cases))
    parts += [made for key, cases in pooled.items() if (made := part(key, "other", cases)).n]
    tested = [one for one in parts if one.p is not None]
    ps = [one.p for one in tested]
    for one, holm, q in zip(tested, _adjusted(ps, "holm"), _adjusted(ps, "benjamini_hochberg"), strict=True):
        one.p_holm, one.q = holm, q
    bounded = [one for one in parts if one.p_margin is not None]
    for one, holm in zip(bounded, _adjusted([one.p_margin for one in bounded], "holm"), strict=True):
        one.p_margin = holm
    return parts


def _adjusted(ps: list[float | None], method: str) -> list[float]:
    values = adjust_p_values([p for p in ps if p is not None])
    return [float(value) for value in values[f"{method}_adjusted"]]
