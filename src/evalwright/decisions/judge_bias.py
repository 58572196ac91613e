"""Judge errors that have nothing to do with quality: length, position in a comparison, maker, chance."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from math import log2

from evalwright.model.calibration import (
    Confidence,
    LengthBias,
    PositionBias,
    SelfAgreement,
    SelfPreference,
    Share,
    Strength,
)
from evalwright.model.facts import CellKey
from evalwright.scoring.judged_answers import Judgement
from evalwright.statistics.confidence import calibration
from evalwright.statistics.means import mean_of
from evalwright.statistics.pairwise import bradley_terry, pairwise_swap
from evalwright.statistics.rates import rate_with_design_effect, wilson
from evalwright.statistics.slopes import slope

__all__ = [
    "UnitOf",
    "confidence_of",
    "length_at_label",
    "length_bias",
    "panel_split",
    "position_biases",
    "self_agreements",
    "self_preference",
    "share_by_unit",
    "strengths_of",
    "wilson_share",
]

UnitOf = Callable[[CellKey], Hashable]
"""The unit of an answer: its group or case."""
_REFERENCE = "reference"
_LETTERS = {"answer": "A", _REFERENCE: "B"}


def confidence_of(pairs: Sequence[tuple[bool, float | None]]) -> Confidence | None:
    """The judge's scores as chances that a person passes the answer; None unless all are in 0 to 1 and some between."""
    scored = [(score, human) for human, score in pairs if score is not None]
    scores = [score for score, _ in scored]
    if not scores or min(scores) < 0 or max(scores) > 1 or set(scores) <= {0.0, 1.0}:
        return None
    fitted = calibration(scores, [float(human) for _, human in scored])
    if fitted.brier is None or fitted.ece_equal_width is None:
        return None
    return Confidence(len(scores), fitted.brier, fitted.ece_equal_width)


def length_bias(errors: Sequence[tuple[Hashable, int | None, float]]) -> LengthBias | None:
    """The slope of the judge's error on the binary logarithm of the answer's length, by case; None without texts."""
    known = [(case, length, error) for case, length, error in errors if length]
    if not known:
        return None
    trend = slope(
        [log2(length) for _, length, _ in known], [error for *_, error in known], [case for case, *_ in known]
    )
    return LengthBias(trend.slope if trend.se is not None else None, trend.ci, len(known))


def length_at_label(rows: Sequence[tuple[Hashable, int | None, bool, float]]) -> LengthBias | None:
    """The slope of the judge's score on the binary logarithm of the length, among answers with the same human label.

    Both are centred on their mean within the label, so that better answers may be longer; by case; None without texts.
    """
    known = [(case, log2(length), label, score) for case, length, label, score in rows if length]
    if not known:
        return None
    labels = [label for _, _, label, _ in known]
    x = _within([length for _, length, _, _ in known], labels)
    y = _within([score for *_, score in known], labels)
    trend = slope(x, y, [case for case, *_ in known])
    return LengthBias(trend.slope if trend.se is not None else None, trend.ci, len(known))


def _within(values: Sequence[float], groups: Sequence[bool]) -> list[float]:
    """Each value minus the mean of its group."""
    means = {
        group: mean_of([value for value, of in zip(values, groups, strict=True) if of is group]) or 0.0
        for group in set(groups)
    }
    return [value - means[group] for value, group in zip(values, groups, strict=True)]


def self_preference(maker: str, errors: Sequence[tuple[Hashable, str | None, float]]) -> SelfPreference | None:
    """The difference of the judge's mean error between systems of its `maker` and of others, by case.

    `errors` has case, maker of the system (None if unknown) and error. None unless there are systems of both kinds.
    """
    known = [(case, float(made_by == maker), error) for case, made_by, error in errors if made_by is not None]
    own = sum(score == 1.0 for _, score, _ in known)
    if not 0 < own < len(known):
        return None
    trend = slope([score for _, score, _ in known], [error for *_, error in known], [case for case, *_ in known])
    return SelfPreference(maker, own, len(known) - own, trend.slope if trend.se is not None else None, trend.ci)


def self_agreements(judgements: Mapping[CellKey, Judgement], unit: UnitOf) -> list[SelfAgreement]:
    """For each model that was asked several times about an answer, in the order of the models."""
    answers: dict[str, dict[CellKey, bool]] = {}
    for key, judgement in judgements.items():
        by_model: dict[str, list[bool]] = {}
        for model, passed in judgement.votes:
            by_model.setdefault(model, []).append(passed)
        for model, votes in by_model.items():
            if len(votes) > 1:
                answers.setdefault(model, {})[key] = len(set(votes)) == 1
    return [SelfAgreement(model, share_by_unit([*same.values()], map(unit, same))) for model, same in answers.items()]


def panel_split(judgements: Mapping[CellKey, Judgement], unit: UnitOf) -> Share | None:
    """The share of answers on which the models of a panel disagreed; None without a panel."""
    panels = {key: j.votes for key, j in judgements.items() if len({model for model, _ in j.votes}) > 1}
    split = [len({passed for _, passed in votes}) > 1 for votes in panels.values()]
    return share_by_unit(split, map(unit, panels)) if panels else None


def share_by_unit(values: Sequence[bool], units: Iterable[Hashable]) -> Share:
    """A share with the interval of a rate: values of one unit are not independent of each other."""
    rate = rate_with_design_effect([float(value) for value in values], [*units])
    return Share(rate.rate, len(values), rate.ci)


def wilson_share(count: int, n: int) -> Share:
    """A share with its Wilson interval."""
    return Share(count / n if n else None, n, wilson(count, n))


def position_biases(judgements: Mapping[CellKey, Judgement]) -> list[PositionBias]:
    """By variant, where answers were compared with a reference in both orders."""
    return [_position(variant, orders) for variant, orders in _orders(judgements).items()]


def _position(variant: str, orders: Sequence[tuple[str, str]]) -> PositionBias:
    first, second = zip(*[[_LETTERS.get(winner, "tie") for winner in pair] for pair in orders], strict=True)
    bias = pairwise_swap(first, second)
    return PositionBias(
        variant,
        bias.n,
        bias.consistency_rate,
        bias.wins_a,
        bias.wins_b,
        bias.ties,
        bias.first_position_win_share,
        bias.p_position_bias,
    )


def strengths_of(judgements: Mapping[CellKey, Judgement]) -> list[Strength]:
    """Two or more variants that met the same reference, strongest first; empty if one never won or never lost."""
    orders = _orders(judgements)
    if len(orders) < 2:
        return []
    names = [*orders, _REFERENCE]
    wins = [[0.0] * len(names) for _ in names]
    for place, pairs in enumerate(orders.values()):
        for winner in (winner for pair in pairs for winner in pair):
            won = 1.0 if winner == "answer" else 0.0 if winner == _REFERENCE else 0.5
            wins[place][-1] += won
            wins[-1][place] += 1 - won
    elo = bradley_terry(names, wins).elo_scale_centred
    if elo is None:
        return []
    strengths = [Strength(name, value - elo[-1]) for name, value in zip(names, elo, strict=True)]
    return sorted(strengths, key=lambda strength: -strength.elo)


def _orders(judgements: Mapping[CellKey, Judgement]) -> dict[str, list[tuple[str, str]]]:
    orders: dict[str, list[tuple[str, str]]] = {}
    for key, judgement in _compared_pairs(judgements):
        orders.setdefault(key[1], []).extend(judgement.orders)
    return orders


def _compared_pairs(judgements: Mapping[CellKey, Judgement]) -> Iterator[tuple[CellKey, Judgement]]:
    return ((key, judgement) for key, judgement in judgements.items() if judgement.orders)
