"""Human labels, and how well a judge agrees with them (produced records)."""

from __future__ import annotations

import msgspec

__all__ = [
    "CalibrationReport",
    "Confidence",
    "Confusion",
    "CorrectedRate",
    "Flips",
    "JudgeCalibration",
    "Label",
    "LengthBias",
    "PositionBias",
    "ScoreAgreement",
    "SelfAgreement",
    "SelfPreference",
    "Share",
    "Strength",
]

Interval = tuple[float, float]


class Label(msgspec.Struct, frozen=True, gc=False):
    """A human label for what one evaluator evaluated, one attempt of a cell, as stored in `labels.jsonl`.

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
    """Counts of the judge's verdicts against human labels, which are the reference. Pass is the positive class."""

    true_pass: int = 0
    false_pass: int = 0
    false_fail: int = 0
    true_fail: int = 0


class ScoreAgreement(msgspec.Struct, frozen=True):
    """A judge's scores compared with human scores. Weighted kappa only if all scores are whole numbers."""

    n: int
    kappa_linear: float | None
    kappa_quadratic: float | None
    alpha_ordinal: float | None
    alpha_interval: float | None
    spearman: float | None
    mean_difference: float | None
    """Judge minus human."""
    mean_difference_ci95: Interval | None = None


class Flips(msgspec.Struct, frozen=True):
    """Answers that were judged several times: `flipped` ones got both verdicts."""

    repeated: int
    flipped: int
    rate: Share


class LengthBias(msgspec.Struct, frozen=True):
    """How the judge's error (its verdict or score, minus the human one) grows with the length of the answer."""

    slope: float | None
    """Change of the error for an answer twice as long; None where all are of one length or fewer than 10 cases."""
    ci95: Interval | None
    n: int
    """Labelled answers that are a text."""


class SelfAgreement(msgspec.Struct, frozen=True):
    """A model that judged the same answers several times (`samples`)."""

    model: str
    same: Share
    """The answers to which all its replies agreed."""


class SelfPreference(msgspec.Struct, frozen=True):
    """The judge's error (its verdict minus the human one) on systems of its own maker, against those of others."""

    maker: str
    own: int
    """Labelled answers of models of the judge's maker; `others`: of other makers. Unknown ones are left out."""
    others: int
    difference: float | None
    """How much more often it passes its own wrongly; None for fewer than 10 cases."""
    ci95: Interval | None = None


class PositionBias(msgspec.Struct, frozen=True):
    """Answers of one variant compared with a reference, shown first and shown second."""

    variant: str
    pairs: int
    consistency: float | None
    """The share of pairs of orders in which the same one won."""
    wins: int
    """Won in both orders; what is neither won nor lost in both is a tie."""
    losses: int
    ties: int
    first_won: float | None
    """The share of decided comparisons that the answer shown first won; 0.5 without a bias."""
    p: float
    """p-value for no preference for a position, from pairs whose winner changes with the order (exact, two-sided)."""


class Strength(msgspec.Struct, frozen=True):
    """One of what a judge compared, on the Elo scale with the reference at 0."""

    name: str
    elo: float


class Confidence(msgspec.Struct, frozen=True):
    """The judge's scores (0 to 1) read as the probability that a person passes the answer."""

    n: int
    brier: float
    """Mean squared error (Brier 1950); 0.25 for a judge that always says 0.5."""
    calibration_error: float
    """Mean distance of score and share of human passes, over ten bins of equal width (Guo et al. 2017)."""


class CorrectedRate(msgspec.Struct, frozen=True):
    """The pass rate of one variant: the judge's, and corrected to that of human labels by two estimators.

    `corrected` inverts the judge's error rates (Rogan and Gladen 1978), with the interval of Lang and Reiczigel 2014;
    `powered` is prediction-powered inference (PPI++) from the labels of this variant; `refused` says why there is none.
    """

    variant: str
    judge: Share
    labels: int
    corrected: float | None = None
    corrected_ci95: Interval | None = None
    powered: float | None = None
    powered_ci95: Interval | None = None
    refused: str = ""


class JudgeCalibration(msgspec.Struct):
    """One evaluator compared with human labels; `labels` is 0 if it has none."""

    evaluator: str
    labels: int = 0
    unjudged: int = 0
    """Labelled answers without a verdict of the evaluator: errored or skipped."""
    superseded: int = 0
    """Labels of answers that a later attempt has replaced."""
    confusion: Confusion | None = None
    accuracy: Share | None = None
    tpr: Share | None = None
    """The share that the judge passed of the answers that humans passed."""
    tnr: Share | None = None
    """The share that the judge failed of the answers that humans failed."""
    cohen_kappa: float | None = None
    cohen_kappa_ci95: Interval | None = None
    gwet_ac1: float | None = None
    scores: ScoreAgreement | None = None
    flips: Flips | None = None
    confidence: Confidence | None = None
    length: LengthBias | None = None
    length_at_label: LengthBias | None = None
    """The judge's own score, else its verdict, by length among answers with the same human label."""
    preference: SelfPreference | None = None
    repeats: list[SelfAgreement] = []
    panel: Share | None = None
    """Of answers that several models judged, the share on which they disagreed."""
    position: list[PositionBias] = []
    strengths: list[Strength] = []
    rates: list[CorrectedRate] = []
    notes: list[str] = []


class CalibrationReport(msgspec.Struct):
    """All labelled evaluators of a run, as stored in `calibration.json`."""

    run_id: str
    evaluators: list[JudgeCalibration]
    schema_version: str = "1.0"
