"""Rates that a fallible judge gave, corrected by a sample that people judged too."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import two_sided_z
from evalwright.statistics.means import variance_of
from evalwright.statistics.proportions import Interval

__all__ = [
    "PredictionPoweredMean",
    "RoganGladen",
    "corrected_rate_interval",
    "prediction_powered_mean",
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


def rogan_gladen(judge_pass: int, n: int, tp: int, fn: int, tn: int, fp: int, confidence: float = 0.95) -> RoganGladen:
    """(q + tnr - 1)/(tpr + tnr - 1) for a judge's share q of passes (Rogan and Gladen 1978; Lee et al. 2025).

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
    judge_pass: int, n: int, tp: int, fn: int, tn: int, fp: int, confidence: float = 0.95
) -> Interval | None:
    """The interval of a corrected rate that also holds for few labels, within 0..1 (Lang and Reiczigel 2014).

    Unlike the delta method's it does not take a judge that made no mistake on a few labels for a perfect one.
    None where the correction is undefined, or so few labels cannot tell the judge from chance.
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
    low, high = middle + shift - half, middle + shift + half
    return min(1.0, max(0.0, low)), max(0.0, min(1.0, high))


class PredictionPoweredMean(NamedTuple):
    """A mean from few human and many judge scores; `ppi_plus_estimate` with its interval is the one to use."""

    classical_mean: float
    classical_se_ddof1: float
    ppi_estimate: float
    rectifier: float
    """Mean of human minus judge on the items that have both."""
    ppi_se_ddof0: float
    ppi_se_ddof1: float
    ppi_ci_ddof0: Interval
    lambda_ppi_plus_unclipped: float | None
    lambda_ppi_plus: float | None
    ppi_plus_estimate: float | None
    ppi_plus_se_ddof0: float | None
    ppi_plus_ci_ddof0: Interval | None
    judge_only_mean_all: float
    lambda_library_variant: float | None
    """As the package ppi-python computes it: with the sample variance (ddof 1) of the judge's scores."""
    ppi_plus_estimate_library_variant: float | None
    ppi_plus_ci_library_variant: Interval | None


def prediction_powered_mean(
    human_labeled: Sequence[float],
    judge_labeled: Sequence[float],
    judge_unlabeled: Sequence[float],
    confidence: float = 0.95,
) -> PredictionPoweredMean:
    """Prediction-powered inference (Angelopoulos et al. 2023, arXiv 2301.09633 and 2311.01453).

    PPI: mean(judge, unlabelled) + mean(human - judge, labelled). PPI++ weighs the judge by
    lambda = cov(h, j)/((1 + n/N) var(j)), population moments, clipped to 0..1; None where the judge never varies.
    Raises ValueError below two items of a kind, or unless the labelled ones are of one length.
    """
    n, many = len(human_labeled), len(judge_unlabeled)
    if n != len(judge_labeled) or n < 2 or many < 2:
        raise ValueError(f"expected two items of each kind, found {n}, {len(judge_labeled)} and {many}")
    z, judge = two_sided_z(confidence), [*judge_labeled, *judge_unlabeled]
    sample = _Sample(human_labeled, judge_labeled, judge_unlabeled)
    estimate, error, error1 = sample.weighted(1.0)
    spread = variance_of(judge) or 0.0
    covariance = sample.covariance() / (1 + n / many)
    unclipped = covariance / (spread * (len(judge) - 1) / len(judge)) if spread else None
    weight = None if unclipped is None else min(1.0, max(0.0, unclipped))
    library = min(1.0, max(0.0, covariance / spread)) if spread else None
    plus = None if weight is None else sample.weighted(weight)
    plus_library = None if library is None else sample.weighted(library)
    return PredictionPoweredMean(
        fsum(human_labeled) / n,
        sqrt((variance_of(human_labeled) or 0.0) / n),
        estimate,
        estimate - fsum(judge_unlabeled) / many,
        error,
        error1,
        _around((estimate, error, error1), z),
        unclipped,
        weight,
        None if plus is None else plus[0],
        None if plus is None else plus[1],
        None if plus is None else _around(plus, z),
        fsum(judge) / len(judge),
        library,
        None if plus_library is None else plus_library[0],
        None if plus_library is None else _around(plus_library, z),
    )


def _around(found: tuple[float, float, float], z: float) -> Interval:
    return found[0] - z * found[1], found[0] + z * found[1]


class _Sample(NamedTuple):
    human: Sequence[float]
    judge: Sequence[float]
    unlabeled: Sequence[float]

    def weighted(self, weight: float) -> tuple[float, float, float]:
        """The estimate that trusts the judge by `weight`, with its standard error (ddof 0 and 1)."""
        n, many = len(self.human), len(self.unlabeled)
        rest = [h - weight * j for h, j in zip(self.human, self.judge, strict=True)]
        scaled = [weight * j for j in self.unlabeled]
        of_rest, of_judge = variance_of(rest) or 0.0, variance_of(scaled) or 0.0
        population = of_rest * (n - 1) / n / n + of_judge * (many - 1) / many / many
        estimate = fsum(scaled) / many + fsum(rest) / n
        return estimate, sqrt(population), sqrt(of_rest / n + of_judge / many)

    def covariance(self) -> float:
        n = len(self.human)
        mean_h, mean_j = fsum(self.human) / n, fsum(self.judge) / n
        return fsum((h - mean_h) * (j - mean_j) for h, j in zip(self.human, self.judge, strict=True)) / n
