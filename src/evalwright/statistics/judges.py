"""Rates from a fallible judge, corrected with a sample that people judged too."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum, hypot, sqrt
from typing import Any, NamedTuple

from evalwright.statistics.distributions import Interval, t_quantile, two_sided_z
from evalwright.statistics.means import variance_of
from evalwright.statistics.rates import rate_with_design_effect
from evalwright.statistics.units import Cluster

__all__ = [
    "CorrectedDifference",
    "LabelledUnits",
    "PoweredRate",
    "RoganGladen",
    "corrected_difference",
    "corrected_rate_interval",
    "difference_of_rates",
    "effective_labels",
    "powered_rate",
    "rogan_gladen",
]


class RoganGladen(NamedTuple):
    """A judge's rate corrected by its known errors; clip `corrected_rate` to 0..1 for display only."""

    raw_judge_rate: float | None
    tpr: float | None
    tnr: float | None
    corrected_rate: float | None
    se_delta: float | None
    ci_normal: Interval | None


def rogan_gladen(
    judge_pass: float, n: float, tp: float, fn: float, tn: float, fp: float, confidence: float = 0.95
) -> RoganGladen:
    """(q + tnr - 1)/(tpr + tnr - 1) for a judge's share q of passes (Rogan and Gladen 1978; Lee et al. 2025).

    All counts may be fractional: trials of a case count as the number of independent answers that say as much.
    The delta method's error carries the uncertainty of the calibration table (tp, fn, tn, fp) too.
    Undefined for a judge no better than chance, tpr + tnr <= 1.
    """
    rate = judge_pass / n if n else None
    tpr = tp / (tp + fn) if tp + fn else None
    tnr = tn / (tn + fp) if tn + fp else None
    if rate is None or tpr is None or tnr is None or tpr + tnr <= 1:
        return RoganGladen(rate, tpr, tnr, None, None, None)
    skill = tpr + tnr - 1
    corrected = (rate + tnr - 1) / skill
    variance = rate * (1 - rate) / n
    variance += corrected**2 * tpr * (1 - tpr) / (tp + fn) + (1 - corrected) ** 2 * tnr * (1 - tnr) / (tn + fp)
    error = sqrt(variance) / skill
    half = two_sided_z(confidence) * error
    return RoganGladen(rate, tpr, tnr, corrected, error, (corrected - half, corrected + half))


def corrected_rate_interval(
    judge_pass: float, n: float, tp: float, fn: float, tn: float, fp: float, confidence: float = 0.95
) -> Interval | None:
    """An interval of a corrected rate that is valid for few labels, too, within 0..1 (Lang and Reiczigel 2014).

    Unlike the delta method's, it does not treat a judge without mistakes on a few labels as perfect. None where the
    correction is undefined, where so few labels cannot tell the judge from chance, and where no corrected rate would
    explain the judge's rate.
    """
    if rogan_gladen(judge_pass, n, tp, fn, tn, fp).corrected_rate is None:
        return None
    z = two_sided_z(confidence)
    many, positive, negative = n + z * z, tp + fn + 2, tn + fp + 2
    rate, tpr, tnr = (judge_pass + z * z / 2) / many, (tp + 1) / positive, (tn + 1) / negative
    skill = tpr + tnr - 1
    if skill <= 0:
        return None
    middle = (rate + tnr - 1) / skill
    of_tpr, of_tnr = tpr * (1 - tpr) / positive, tnr * (1 - tnr) / negative
    shift = 2 * z * z * (middle * of_tpr - (1 - middle) * of_tnr)
    half = z * sqrt(rate * (1 - rate) / many + middle**2 * of_tpr + (1 - middle) ** 2 * of_tnr) / skill
    return _within(middle + shift - half, middle + shift + half, 0.0, 1.0)


def _within(low: float, high: float, least: float, most: float) -> Interval | None:
    """An interval cut to the possible range; None if nothing is left, so that no interval has the width 0."""
    return None if low >= most or high <= least else (max(least, low), min(most, high))


def effective_labels(right: Sequence[bool], units: Sequence[Hashable]) -> tuple[float, float]:
    """The labels of one kind on which the judge is right, and on which it is wrong; where several are of one unit,
    the number of independent labels that say as much."""
    yes, n = sum(right), len(right)
    if len({*units}) < n:
        worth = min(float(n), rate_with_design_effect([float(is_right) for is_right in right], units).effective_n)
        return yes / n * worth, (n - yes) / n * worth
    return yes, n - yes


class CorrectedDifference(NamedTuple):
    """Corrected rates of two variants and their difference; None where a correction is undefined."""

    rate_a: float | None
    ci_a: Interval | None
    rate_b: float | None
    ci_b: Interval | None
    difference: float | None
    ci: Interval | None


def corrected_difference(a: Mapping[str, Any], b: Mapping[str, Any], confidence: float = 0.95) -> CorrectedDifference:
    """The difference B - A of rates that each variant's own labels correct (Rogan and Gladen 1978).

    Each side has the arguments of `corrected_rate_interval`. The interval recovers variances from those of both rates
    (Zou and Donner 2008). A judge may err on one variant more often than on the other (arXiv 2511.21140).
    """
    rate_a, rate_b = (_cut(rogan_gladen(**side).corrected_rate) for side in (a, b))
    ends_a, ends_b = (corrected_rate_interval(**side, confidence=confidence) for side in (a, b))
    if rate_a is None or rate_b is None or ends_a is None or ends_b is None:
        return CorrectedDifference(rate_a, ends_a, rate_b, ends_b, None, None)
    return CorrectedDifference(rate_a, ends_a, rate_b, ends_b, *difference_of_rates(rate_a, ends_a, rate_b, ends_b))


def difference_of_rates(rate_a: float, ends_a: Interval, rate_b: float, ends_b: Interval) -> tuple[float, Interval]:
    """B - A with an interval that recovers variances from those of both rates (Zou and Donner 2008)."""
    difference = rate_b - rate_a
    below = hypot(max(0.0, rate_b - ends_b[0]), max(0.0, ends_a[1] - rate_a))
    above = hypot(max(0.0, ends_b[1] - rate_b), max(0.0, rate_a - ends_a[0]))
    return difference, (max(-1.0, difference - below), min(1.0, difference + above))


def _cut(rate: float | None) -> float | None:
    return None if rate is None else min(1.0, max(0.0, rate))


_FEW_LABELS = 5


class PoweredRate(NamedTuple):
    """A mean from people's few labels and a judge's many; `refused` says why there is none."""

    refused: str | None
    """`disagreements` or `labels_of_a_kind`: fewer than 5 of them; `unlike_rest`: what the judge says of the labelled
    answers and of the others fits no possible mean."""
    weight: float
    """How far the judge is trusted, 0 to 1."""
    estimate: float | None
    se: float | None
    df: int
    ci: Interval | None


class LabelledUnits(NamedTuple):
    """The case or group of each labelled answer and of each other one; answers of one unit are not independent."""

    labelled: Sequence[Hashable]
    rest: Sequence[Hashable]


def powered_rate(
    human_labeled: Sequence[float],
    judge_labeled: Sequence[float],
    judge_unlabeled: Sequence[float],
    confidence: float = 0.95,
    low: float = 0.0,
    high: float = 1.0,
    units: LabelledUnits | None = None,
) -> PoweredRate:
    """PPI++ (Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453), refused where its interval would be too narrow.

    The judge weighs cov(h, j)/((1 + n/N) var(j)), population moments, within 0..1; variances with ddof 1, Student's t
    with n - 1 degrees of freedom, cut to `low`..`high`. A few labels on which judge and person agree say nothing of how
    often they do not: below 5 disagreements, or 5 labels of either kind, there is no estimate. With `units` the error
    is that of leaving out one unit at a time, of n labelled units.
    Raises ValueError unless the labelled ones are of one length.
    """
    n, many = len(human_labeled), len(judge_unlabeled)
    if n != len(judge_labeled):
        raise ValueError(f"expected a judgement for each label, found {len(judge_labeled)} for {n}")
    weight = _weight(human_labeled, judge_labeled, judge_unlabeled)
    df = (n if units is None else len(set(units.labelled))) - 1
    if refused := _refusal(human_labeled, judge_labeled):
        return PoweredRate(refused, weight, None, None, df, None)
    rest = [h - weight * j for h, j in zip(human_labeled, judge_labeled, strict=True)]
    scaled = [weight * j for j in judge_unlabeled]
    estimate = fsum(rest) / n + (fsum(scaled) / many if many else 0.0)
    if units is None:
        error = sqrt((variance_of(rest) or 0.0) / n + (variance_of(scaled) or 0.0) / max(1, many))
    else:
        error = _error_of_units(rest, scaled, units)
    half = t_quantile((1 + confidence) / 2, max(1, df)) * error
    ends = _within(estimate - half, estimate + half, low, high) if error else None
    if ends is None:
        return PoweredRate("unlike_rest", weight, None, None, df, None)
    return PoweredRate(None, weight, min(high, max(low, estimate)), error, df, ends)


def _error_of_units(rest: Sequence[float], scaled: Sequence[float], units: LabelledUnits) -> float:
    """The jackknife of mean(rest) + mean(scaled) over units that may have a part in both; 0 below two units."""
    totals: dict[Hashable, list[Cluster]] = {}
    for place, (values, names) in enumerate(((rest, units.labelled), (scaled, units.rest))):
        for value, name in zip(values, names, strict=True):
            pair = totals.setdefault(name, [Cluster(0.0, 0), Cluster(0.0, 0)])
            pair[place] = Cluster(pair[place].total + value, pair[place].size + 1)
    sums = [(fsum(values), len(values)) for values in (rest, scaled)]
    whole = fsum(total / size for total, size in sums if size)
    without = []
    for pair in totals.values():
        left = [(total - unit.total, size - unit.size) for (total, size), unit in zip(sums, pair, strict=True)]
        if any(size == 0 for (_, size), (_, before) in zip(left, sums, strict=True) if before):
            return 0.0  # one unit has all labels: nothing is known about the others
        without.append(fsum(total / size for total, size in left if size))
    number = len(without)
    return sqrt((number - 1) / number * fsum((found - whole) ** 2 for found in without)) if number > 1 else 0.0


def _refusal(human: Sequence[float], judge: Sequence[float]) -> str | None:
    if sum(h != j for h, j in zip(human, judge, strict=True)) < _FEW_LABELS:
        return "disagreements"
    most = max(human.count(value) for value in set(human))
    return "labels_of_a_kind" if len(human) - most < _FEW_LABELS else None


def _weight(human: Sequence[float], judge: Sequence[float], unlabeled: Sequence[float]) -> float:
    """How much of the judge to use: 0 without unlabelled answers, and where the judge never varies."""
    n, many, everything = len(human), len(unlabeled), [*judge, *unlabeled]
    spread = variance_of(everything)
    if not many or not n or not spread:
        return 0.0
    mean_h, mean_j = fsum(human) / n, fsum(judge) / n
    covariance = fsum((h - mean_h) * (j - mean_j) for h, j in zip(human, judge, strict=True)) / n
    population = spread * (len(everything) - 1) / len(everything)
    return min(1.0, max(0.0, covariance / ((1 + n / many) * population)))
