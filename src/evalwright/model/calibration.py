"""What people say about a judge: their labels, and how far the judge agrees with them (produced records)."""

from __future__ import annotations

import msgspec

__all__ = [
    "CalibrationReport",
    "Confusion",
    "CorrectedRate",
    "Flips",
    "JudgeCalibration",
    "Label",
    "ScoreAgreement",
    "Share",
]

Interval = tuple[float, float]


class Label(msgspec.Struct, frozen=True, gc=False):
    """A person's word on what one evaluator judged: one attempt at one cell, as stored in `labels.jsonl`.

    At least one of `passed` and `score` is set; the score is on the evaluator's own scale.
    """

    case_id: str
    evaluator: str
    variant_name: str
    trial: int = 0
    attempt: int = 1
    passed: bool | None = None
    score: float | None = None


class Share(msgspec.Struct, frozen=True):
    """A share of `n` items with its 95 % Wilson interval; null where there are no items."""

    value: float | None
    n: int
    ci95: Interval | None = None


class Confusion(msgspec.Struct, frozen=True):
    """How often a judge and people said what: the first word is whether the judge was right, pass is positive."""

    true_pass: int = 0
    false_pass: int = 0
    false_fail: int = 0
    true_fail: int = 0


class ScoreAgreement(msgspec.Struct, frozen=True):
    """Scores of a judge against people's. Weighted kappa only where all scores are whole numbers."""

    n: int
    kappa_linear: float | None
    kappa_quadratic: float | None
    alpha_ordinal: float | None
    alpha_interval: float | None
    spearman: float | None
    mean_difference: float | None
    """Judge minus people."""


class Flips(msgspec.Struct, frozen=True):
    """Answers that were judged several times: `flipped` ones got both verdicts."""

    repeated: int
    flipped: int
    rate: Share


class CorrectedRate(msgspec.Struct, frozen=True):
    """The pass rate of one variant: as the judge says, and as people would say, by two estimators.

    `corrected` inverts the judge's error rates (Rogan and Gladen 1978), with the interval of Lang and Reiczigel 2014;
    `powered` is prediction-powered inference (PPI++) from the labels of this variant.
    """

    variant: str
    judge: Share
    labels: int
    corrected: float | None = None
    corrected_ci95: Interval | None = None
    powered: float | None = None
    powered_ci95: Interval | None = None


class JudgeCalibration(msgspec.Struct):
    """One evaluator measured against people's labels; `labels` is 0 for one that nobody has labelled."""

    evaluator: str
    labels: int = 0
    unjudged: int = 0
    """Labelled answers of which the evaluator gave no verdict: an error, or skipped."""
    superseded: int = 0
    """Labels of answers that a later attempt has replaced."""
    confusion: Confusion | None = None
    accuracy: Share | None = None
    tpr: Share | None = None
    """Of the answers that people passed, the share that the judge passed."""
    tnr: Share | None = None
    """Of the answers that people failed, the share that the judge failed."""
    cohen_kappa: float | None = None
    cohen_kappa_ci95: Interval | None = None
    gwet_ac1: float | None = None
    scores: ScoreAgreement | None = None
    flips: Flips | None = None
    rates: list[CorrectedRate] = []
    notes: list[str] = []


class CalibrationReport(msgspec.Struct):
    """All labelled evaluators of a run, as stored in `calibration.json`."""

    run_id: str
    evaluators: list[JudgeCalibration]
    schema_version: str = "1.0"
