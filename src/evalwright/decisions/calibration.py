"""Agreement of an evaluator with human labels, and pass rates corrected for its errors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from evalwright.decisions.judge_bias import (
    UnitOf,
    confidence_of,
    length_at_label,
    length_bias,
    panel_split,
    position_biases,
    self_agreements,
    self_preference,
    share_by_unit,
    strengths_of,
    wilson_share,
)
from evalwright.decisions.label_samples import cell_of, label_sample
from evalwright.decisions.weighted_labels import weigh
from evalwright.errors import counted
from evalwright.model.calibration import (
    REFUSALS,
    Confusion,
    CorrectedRate,
    Flips,
    JudgeCalibration,
    Label,
    ScoreAgreement,
    Share,
)
from evalwright.model.facts import CellKey
from evalwright.scoring.judged_answers import JudgedAnswers, Judgement, verdicts_by_variant
from evalwright.statistics.clusters import cluster_jackknife
from evalwright.statistics.judges import (
    LabelledUnits,
    corrected_rate_interval,
    effective_labels,
    powered_rate,
    rogan_gladen,
)
from evalwright.statistics.means import mean_interval
from evalwright.statistics.ranks import spearman
from evalwright.statistics.raters import agreement, agreement_binary, kappa_interval, krippendorff_alpha
from evalwright.statistics.rates import rate_with_design_effect

__all__ = ["Makers", "calibrate"]

_MOST_GRADES = 100
_FEW = 30
"""Below this many labels of a kind the interval of an error rate is 30 points wide or more."""


class _Pair(NamedTuple):
    """One answer with a human label and a verdict of the judge."""

    key: CellKey
    human: bool | None
    human_score: float | None
    judge: bool
    judge_score: float | None


class Makers(NamedTuple):
    """Who made the model of a judge, and those of the variants that it judges; None where that is not known."""

    judge: str | None = None
    variants: Mapping[str, str | None] = {}


def calibrate(
    evaluator: str,
    labels: Iterable[Label],
    answers: JudgedAnswers,
    threshold: float | None = None,
    makers: Makers | None = None,
) -> JudgeCalibration:
    """Agreement of `evaluator` with the labels, its biases, and its corrected pass rates.

    A human score becomes a verdict by the threshold in the evaluator's result, else by `threshold`.
    """
    judgements = answers.judgements[evaluator]
    own_labels = [label for label in labels if label.evaluator == evaluator]
    sample = label_sample(evaluator, own_labels, answers)
    pairs = [pair for x in sample.labels if (pair := _pair(x, judgements.get(cell_of(x)), threshold)) is not None]
    result = JudgeCalibration(
        evaluator,
        len(own_labels),
        len(sample.labels) - len(pairs),
        sample.superseded,
        sample.chosen_by_results,
        sample.outdated,
    )
    result.flips = _flips(judgements, answers)
    result.position = position_biases(judgements)
    result.strengths = strengths_of(judgements)
    result.repeats, result.panel = self_agreements(judgements, answers.unit), panel_split(judgements, answers.unit)
    decided = [pair for pair in pairs if pair.human is not None]
    if sample.balanced:
        weighted = weigh(judgements, {pair.key: bool(pair.human) for pair in decided}, answers.unit)
        result.confusion, result.rates = _table(decided), weighted.rates
        weighted.measure(result)
        result.notes = [*weighted.notes(), *_notes_of_labels(result, decided, pairs, corrects=False)]
        drawn = {cell_of(x) for x in sample.labels if not x.balanced}
        pairs = [pair for pair in pairs if pair.key in drawn]
    else:
        if decided:
            _measure(result, decided, answers.unit)
        result.rates = _rates(judgements, decided, answers.unit)
        result.random_sample = not sample.unlike
        if sample.unlike:
            result.rates = [_uncorrected(rate) for rate in result.rates]
        result.notes = [*sample.unlike, *_notes_of_labels(result, decided, pairs, corrects=result.random_sample)]
    result.notes += sample.left_out()
    result.scores = _scores(pairs, answers.unit)
    _find_biases(result, [pair for pair in pairs if pair.human is not None], answers, makers)
    return result


def _find_biases(
    result: JudgeCalibration, decided: Sequence[_Pair], answers: JudgedAnswers, makers: Makers | None
) -> None:
    """What the judge's errors depend on. The labels are of answers that were all as likely to be drawn."""
    if not decided:
        return
    result.confidence = confidence_of([(bool(p.human), p.judge_score) for p in decided])
    errors = [(answers.unit(p.key), answers.lengths.get(p.key), float(p.judge) - float(bool(p.human))) for p in decided]
    result.length = length_bias(errors)
    lengths = [answers.lengths.get(p.key) for p in decided]
    scores = [float(p.judge) if p.judge_score is None else p.judge_score for p in decided]
    result.length_at_label = length_at_label(
        [(answers.unit(p.key), n, bool(p.human), score) for p, n, score in zip(decided, lengths, scores, strict=True)]
    )
    if makers is not None and makers.judge is not None:
        by_maker = [
            (answers.unit(p.key), makers.variants.get(p.key[1]), error)
            for p, (*_, error) in zip(decided, errors, strict=True)
        ]
        result.preference = self_preference(makers.judge, by_maker)


def _pair(label: Label, judgement: Judgement | None, threshold: float | None) -> _Pair | None:
    if judgement is None or judgement.passed is None:
        return None
    lowest = threshold if judgement.threshold is None else judgement.threshold
    human = label.passed
    if human is None and label.score is not None and lowest is not None:
        human = label.score >= lowest
    return _Pair(cell_of(label), human, label.score, judgement.passed, judgement.score)


def _table(pairs: Sequence[_Pair]) -> Confusion:
    counts = {(human, judge): 0 for human in (True, False) for judge in (True, False)}
    for pair in pairs:
        counts[bool(pair.human), pair.judge] += 1
    return Confusion(counts[True, True], counts[False, True], counts[True, False], counts[False, False])


def _measure(result: JudgeCalibration, pairs: Sequence[_Pair], unit: UnitOf) -> None:
    """Several labels of a case or group are not independent: kappa has no interval then."""
    table = result.confusion = _table(pairs)
    units = [unit(p.key) for p in pairs]
    counts = (table.true_pass, table.false_pass, table.false_fail, table.true_fail)
    result.accuracy = share_by_unit([p.judge is p.human for p in pairs], units)
    result.tpr, result.tnr = (share_by_unit(*_right(pairs, kind, unit)) for kind in (True, False))
    both, ends = agreement_binary(*counts), kappa_interval(*counts)
    result.cohen_kappa, result.gwet_ac1 = both.cohen_kappa, both.gwet_ac1
    if ends is None:
        result.cohen_kappa = None  # one rater says the same of all: chance alone explains any agreement
    result.cohen_kappa_ci95 = ends if len({*units}) == len(units) else None


def _right(pairs: Sequence[_Pair], kind: bool, unit: UnitOf) -> tuple[list[bool], list[Hashable]]:
    """Whether the judge is right about each answer with this label, and the unit of each."""
    of_kind = [pair for pair in pairs if pair.human is kind]
    return [pair.judge is kind for pair in of_kind], [unit(pair.key) for pair in of_kind]


def _scores(pairs: Sequence[_Pair], unit: UnitOf) -> ScoreAgreement | None:
    """Agreement of scores; unused grades between used ones count, because the weight is the distance between grades."""
    scored = [
        (p.human_score, p.judge_score, unit(p.key))
        for p in pairs
        if p.human_score is not None and p.judge_score is not None
    ]
    if not scored:
        return None
    human, judge = [h for h, *_ in scored], [j for _, j, _ in scored]
    values = {*human, *judge}
    low, high = min(values), max(values)
    linear = quadratic = None
    if all(value % 1 == 0 for value in values) and high - low < _MOST_GRADES:
        graded = agreement([int(x) for x in human], [int(x) for x in judge], range(int(low), int(high) + 1))
        linear, quadratic = graded.cohen_kappa_linear, graded.cohen_kappa_quadratic
    alpha = krippendorff_alpha([human, judge])
    differences, units = [j - h for h, j, _ in scored], [of for *_, of in scored]
    apart, by_unit = mean_interval(differences), cluster_jackknife(differences, units)
    spread = by_unit.se and min(differences) < max(differences)  # without, the interval's zero width would mislead
    ends = by_unit.ci if spread else None
    correlation = spearman(human, judge)
    return ScoreAgreement(len(scored), linear, quadratic, alpha.ordinal, alpha.interval, correlation, apart.mean, ends)


def _flips(judgements: Mapping[CellKey, Judgement], answers: JudgedAnswers) -> Flips | None:
    """Flips between identical answers only: those are the judge's own, not the system's."""
    passes: dict[bytes, list[bool]] = {}
    for key, judgement in judgements.items():
        if judgement.passed is not None:
            passes.setdefault(answers.answers[key], []).append(judgement.passed)
    repeated = [verdicts for verdicts in passes.values() if len(verdicts) > 1]
    if not repeated:
        return None
    flipped = sum(any(a != b for a, b in pairwise(verdicts)) for verdicts in repeated)
    return Flips(len(repeated), flipped, wilson_share(flipped, len(repeated)))


def _rates(judgements: Mapping[CellKey, Judgement], pairs: Sequence[_Pair], unit: UnitOf) -> list[CorrectedRate]:
    """Each variant with its own rate and labels; the judge's error rates come from the labels of all variants."""
    table = [count for kind in (True, False) for count in effective_labels(*_right(pairs, kind, unit))]
    labelled: dict[str, list[_Pair]] = {}
    for pair in pairs:
        labelled.setdefault(pair.key[1], []).append(pair)
    return [
        _rate(variant, judged, table, labelled.get(variant, []), unit)
        for variant, judged in verdicts_by_variant(judgements).items()
    ]


def _rate(
    variant: str, judged: Mapping[CellKey, bool], table: Sequence[float], pairs: Sequence[_Pair], unit: UnitOf
) -> CorrectedRate:
    """Answers to a case, or to cases of a group, are not independent: that is the unit of every interval.

    `table` has the true passes, false failures, true failures and false passes of the judge.
    """
    units_of_all = [unit(key) for key in judged]
    several = len({*units_of_all}) < len(judged)
    raw = rate_with_design_effect([float(passed) for passed in judged.values()], units_of_all)
    worth, rate = raw.effective_n if several else len(judged), raw.rate or 0.0
    counts = (rate * worth, worth, *table)
    ends = corrected_rate_interval(*counts)
    corrected = None if ends is None else rogan_gladen(*counts).corrected_rate
    keys = {pair.key for pair in pairs}
    rest = [(float(passed), unit(key)) for key, passed in judged.items() if key not in keys]
    human, judge = [float(bool(p.human)) for p in pairs], [float(p.judge) for p in pairs]
    units = LabelledUnits([unit(p.key) for p in pairs], [cell_unit for _, cell_unit in rest]) if several else None
    powered = powered_rate(human, judge, [passed for passed, _ in rest], units=units) if pairs else None
    return CorrectedRate(
        variant,
        Share(rate, len(judged), raw.ci),
        len(pairs),
        None if corrected is None else _clipped(corrected),
        ends,
        None if powered is None else powered.estimate,
        None if powered is None else powered.ci,
        REFUSALS[powered.refused] if powered is not None and powered.refused else "",
    )


def _uncorrected(rate: CorrectedRate) -> CorrectedRate:
    return CorrectedRate(rate.variant, rate.judge, rate.labels, refused=REFUSALS["unlike_rest"])


def _clipped(rate: float) -> float:
    return min(1.0, max(0.0, rate))


def _notes_of_labels(
    result: JudgeCalibration, decided: Sequence[_Pair], pairs: Sequence[_Pair], corrects: bool
) -> Iterable[str]:
    """What the labels lack; `corrects`: pass rates are corrected by the judge's error rates."""
    if undecided := len(pairs) - len(decided):
        yield f"{counted(undecided, 'label')} without a verdict: only a score, and the evaluator has no threshold"
    if result.tpr is None or result.tnr is None:
        return
    chance = (result.tpr.value or 0.0) + (result.tnr.value or 0.0) <= 1
    if corrects and (not result.tpr.n or not result.tnr.n):
        missing = "passed" if not result.tpr.n else "failed"
        yield f"no answer was labelled as {missing}: pass rates cannot be corrected"
    elif corrects and chance:
        yield "the judge is no better than chance on the labels: pass rates cannot be corrected"
    elif min(result.tpr.n, result.tnr.n) < _FEW:
        yield f"fewer than {_FEW} labels of a kind: TPR and TNR are rough estimates"
    unexplained = [rate.variant for rate in result.rates if rate.corrected is None]
    if corrects and unexplained and not chance:
        names = ", ".join(unexplained)
        yield f"{names}: no rate explains both the judge's rate and the labels; are these of randomly chosen answers?"
