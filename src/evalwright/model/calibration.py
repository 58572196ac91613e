"""Human labels, and how well a judge agrees with them (produced records)."""

from __future__ import annotations

import msgspec

__all__ = [
    "BALANCED",
    "ORDERS_BY_RESULTS",
    "REFUSALS",
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

ORDERS_BY_RESULTS = ("disagree", "threshold")
BALANCED = "balanced"
"""The order that draws equally many answers of each variant that an evaluator passes and that it fails."""


REFUSALS = {
    "disagreements": "fewer than 5 labels on which person and judge differ",
    "labels_of_a_kind": "fewer than 5 labels of either kind",
    "unlike_rest": "the labelled answers are unlike the others",
}
"""Why there is no powered rate or difference, in words."""


class Label(msgspec.Struct, frozen=True, gc=False):
    """A human label for what one evaluator judged, one attempt of a cell, as stored in `labels.jsonl`.

    At least one of `passed` and `score` is set; the score is on the evaluator's own scale.
    """

    case_id: str
    evaluator: str
    variant_name: str
    trial: int = 0
    attempt: int = 1
    passed: bool | None = None
    score: float | None = None
    chosen: str = ""
    """The order of labelling in which the answer came up, such as `random`; empty if it is not known."""
    stratum: str = ""
    """In a balanced sample, the evaluator's verdict when the answer was drawn, `pass` or `fail`."""
    stratum_size: int | None = None
    """The number of the variant's answers that had this verdict then."""

    @property
    def balanced(self) -> bool:
        """The answer was drawn from those of its variant that have the same verdict."""
        return self.chosen == BALANCED

    @property
    def chosen_by_results(self) -> bool:
        """The answer was labelled because of what evaluators said of it: it is no sample of the answers."""
        return self.chosen in ORDERS_BY_RESULTS


class Share(msgspec.Struct, frozen=True):
    """A share of `n` items with its 95 % Wilson interval; null without items."""

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
    """A judge's scores compared with human scores. Weighted kappa is computed only if all scores are whole numbers."""

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
    """Answers that were judged several times; `flipped` is the number of those that got both verdicts."""

    repeated: int
    flipped: int
    rate: Share


class LengthBias(msgspec.Struct, frozen=True):
    """How the judge's error (its verdict or score, minus the human one) grows with the length of the answer."""

    slope: float | None
    """Change of the error for an answer twice as long; None if all have the same length or there are fewer than 10
    cases."""
    ci95: Interval | None
    n: int
    """Labelled answers that are text."""


class SelfAgreement(msgspec.Struct, frozen=True):
    """A model that judged each answer several times (`samples`)."""

    model: str
    same: Share
    """The answers on which all its replies agreed."""


class SelfPreference(msgspec.Struct, frozen=True):
    """The judge's error (its verdict minus the human one) on systems by its own maker, compared with those by
    others."""

    maker: str
    own: int
    """Labelled answers of models by the judge's maker; `others`: by other makers. Answers of unknown models are left
    out."""
    others: int
    difference: float | None
    """How much more often it wrongly passes its own maker's; None for fewer than 10 cases."""
    ci95: Interval | None = None


class PositionBias(msgspec.Struct, frozen=True):
    """Answers of one variant compared with a reference, shown first and then second."""

    variant: str
    pairs: int
    consistency: float | None
    """The share of pairs in which the same answer won in both orders."""
    wins: int
    """Won in both orders; pairs neither won nor lost in both are ties."""
    losses: int
    ties: int
    first_won: float | None
    """The share of decided comparisons won by the answer shown first; 0.5 without a bias."""
    p: float
    """p-value for no preference for a position, from pairs whose winner changes with the order (exact, two-sided)."""


class Strength(msgspec.Struct, frozen=True):
    """The strength of one of the things that a judge compared, on the Elo scale with the reference at 0."""

    name: str
    elo: float


class Confidence(msgspec.Struct, frozen=True):
    """The judge's scores (0 to 1) read as the probability that a person passes the answer."""

    n: int
    brier: float
    """Mean squared error (Brier 1950); 0.25 for a judge that always says 0.5."""
    calibration_error: float
    """Mean distance between score and share of human passes, over ten bins of equal width (Guo et al. 2017)."""


class CorrectedRate(msgspec.Struct, frozen=True):
    """The pass rate of one variant: the judge's, and two estimates of what human labels would give.

    `corrected` inverts the judge's error rates (Rogan and Gladen 1978), with the interval of Lang and Reiczigel 2014;
    with a balanced sample, it weighs the variant's own labels (Cochran 1977).
    `powered` is prediction-powered inference (PPI++) from the labels of this variant; `refused` is why there is none.
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
    """Labelled answers on which the evaluator has no verdict: it errored or was skipped."""
    superseded: int = 0
    """Labels of answers that a later attempt replaced."""
    chosen_by_results: int = 0
    """Labels of answers that were labelled because evaluators disagreed on them or because of their scores. They are
    left out, because a judge errs more often on these than on others."""
    outdated: int = 0
    """Labels of balanced samples that are left out, because answers or verdicts have changed since they were drawn."""
    random_sample: bool = True
    """False if the evaluator's verdicts on the labelled answers show that these are no random sample: what is measured
    is then about these answers only, and no rate is corrected."""
    confusion: Confusion | None = None
    accuracy: Share | None = None
    tpr: Share | None = None
    """The share of answers passed by humans that the judge passed, too."""
    tnr: Share | None = None
    """The share of answers failed by humans that the judge failed, too."""
    cohen_kappa: float | None = None
    cohen_kappa_ci95: Interval | None = None
    gwet_ac1: float | None = None
    scores: ScoreAgreement | None = None
    flips: Flips | None = None
    confidence: Confidence | None = None
    length: LengthBias | None = None
    length_at_label: LengthBias | None = None
    """The judge's score, or its verdict without scores, by length among answers with the same human label."""
    preference: SelfPreference | None = None
    repeats: list[SelfAgreement] = []
    panel: Share | None = None
    """The share of answers judged by several models on which they disagreed."""
    position: list[PositionBias] = []
    strengths: list[Strength] = []
    rates: list[CorrectedRate] = []
    notes: list[str] = []


class CalibrationReport(msgspec.Struct):
    """All labelled evaluators of a run, as stored in `calibration.json`."""

    run_id: str
    evaluators: list[JudgeCalibration]
    schema_version: str = "1.0"
