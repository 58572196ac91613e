"""Decisions besides the metric: evaluators and slices that are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from evalwright.decisions.pairing import Ground
from evalwright.model.decision import EvaluatorPart, SlicePart
from evalwright.statistics.corrections import adjust_p_values
from evalwright.statistics.differences import DecidedDifference, decide_difference

__all__ = ["evaluator_parts", "slice_parts"]

_LEAST_UNITS = 6
"""Slices with fewer units are pooled."""


def evaluator_parts(ground: Ground) -> list[EvaluatorPart]:
    """Every evaluator of both sides except the metric: raw interval, q over all of them."""
    parts = []
    for name in sorted(ground.a.scores.keys() & ground.b.scores.keys() - {ground.terms.metric}):
        outcomes, passes = _difference_of_scores(ground, name), ground.passes_of(name)
        part = EvaluatorPart(
            name, outcomes.difference, outcomes.ci, outcomes.p_value, outcomes.n, scored=passes is not None
        )
        rate = outcomes if passes is None else passes.difference(ground.alpha)
        part.rate_difference, part.rate_ci, part.rate_p = rate.difference, rate.ci, rate.p_value
        parts.append(part)
    tested = [part for part in parts if part.p is not None]
    for part, q in zip(tested, _adjusted_p_values([part.p for part in tested], "benjamini_hochberg"), strict=True):
        part.q = q
    return parts


def _difference_of_scores(ground: Ground, evaluator: str) -> DecidedDifference:
    """The difference of its scores; nothing if they are too large to be compared, which must not undo the rest."""
    try:
        return ground.pairs_of(evaluator).difference(ground.alpha)
    except OverflowError:
        return decide_difference([])


def slice_parts(ground: Ground, slices: Mapping[tuple[str, str], Collection[str]]) -> list[SlicePart]:
    """Each slice of at least 6 units, the rest of its key pooled as `other`; p adjusted over all of them."""
    pooled: dict[str, dict[str, None]] = {}
    parts = []
    margin = ground.terms.slice_margin

    def part(key: str, value: str, cases: Collection[str]) -> SlicePart:
        difference = ground.pairs(only=cases).difference(ground.alpha, margin or 0.0)
        p_margin = None if margin is None else difference.p_margin
        ends = difference.difference, difference.ci, difference.p_value
        return SlicePart(key, value, difference.n, difference.units, *ends, p_margin=p_margin)

    for (key, value), cases in slices.items():
        tested_part = part(key, value, cases)
        if tested_part.units >= _LEAST_UNITS:
            parts.append(tested_part)
        else:
            pooled.setdefault(key, {}).update(dict.fromkeys(cases))
    parts += [tested_part for key, cases in pooled.items() if (tested_part := part(key, "other", cases)).n]
    tested = [tested_part for tested_part in parts if tested_part.p is not None]
    ps = [tested_part.p for tested_part in tested]
    for tested_slice, holm, q in zip(
        tested, _adjusted_p_values(ps, "holm"), _adjusted_p_values(ps, "benjamini_hochberg"), strict=True
    ):
        tested_slice.p_holm, tested_slice.q = holm, q
    bounded = [tested_part for tested_part in parts if tested_part.p_margin is not None]
    for tested_slice, holm in zip(
        bounded, _adjusted_p_values([tested_part.p_margin for tested_part in bounded], "holm"), strict=True
    ):
        tested_slice.p_margin = holm
    return parts


def _adjusted_p_values(ps: list[float | None], method: str) -> list[float]:
    values = adjust_p_values([p for p in ps if p is not None])
    return [float(value) for value in values[f"{method}_adjusted"]]
