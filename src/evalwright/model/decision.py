"""The decision about two sides, A and B (produced): every number, together with its n.

Every difference is B - A over the cases that both sides judged; every interval has the level 1 - alpha.
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = [
    "ALL_LOOKED_AT",
    "BETTING",
    "PARTIAL",
    "UNREAD",
    "Bound",
    "ChangedPart",
    "Decision",
    "DecisionVerdict",
    "ErrorCounts",
    "ErrorPart",
    "EvaluatorPart",
    "FailureCluster",
    "GuardPart",
    "GuardState",
    "IdentityPart",
    "JudgePart",
    "NextPart",
    "ShiftedCase",
    "SideRate",
    "SlicePart",
]

Interval = tuple[float, float]
DecisionVerdict = Literal["ship", "dont", "undecided"]
GuardState = Literal["holds", "broken", "undecided"]

UNREAD = "unreadable records"
"""A reason of an undecided decision: these records could change it."""

PARTIAL = "partial"
"""A reason of an undecided decision: a run is not finished, and the cells that were not run could change it."""

ALL_LOOKED_AT = "every unit was looked at"
"""A reason of an undecided decision of a run that ran until decided: it has no units left."""

BETTING = "betting"
"""The method of a decision that was made while the run was still going on."""


class SideRate(msgspec.Struct):
    """One side over all of its own cases; None if none was judged."""

    rate: float | None = None
    ci: Interval | None = None
    n: int = 0


class ErrorCounts(msgspec.Struct):
    """Trials without a verdict, by what went wrong."""

    target: int = 0
    evaluator: int = 0
    not_run: int = 0
    """Planned, and without a trace: the run is not finished."""

    @property
    def missing(self) -> list[str]:
        """Why trials have no verdict, as reasons: `errors`, `partial`."""
        return ["errors"] * bool(self.target or self.evaluator) + [PARTIAL] * bool(self.not_run)


class Bound(msgspec.Struct):
    """The decision if trials without a verdict had one."""

    difference: float | None
    ci: Interval | None
    verdict: DecisionVerdict


class ErrorPart(msgspec.Struct):
    """Trials without a verdict on both sides, and what the decision would be if they had one."""

    a: ErrorCounts
    b: ErrorCounts
    counting: str = "exclude"
    """`exclude`; `fail`: the system's errors are its failures; `strict`: both extremes must lead to the verdict,
    too."""
    share_difference: float | None = None
    """Mean over cases of the share of errored trials, B - A."""
    ci: Interval | None = None
    all_failed: Bound | None = None
    """None if every trial has a verdict."""
    all_passed: Bound | None = None
    lowest: float | None = None
    """A's missing verdicts passed, B's failed."""
    highest: float | None = None
    """A's missing verdicts failed, B's passed."""
    same_verdict: bool = True

    @property
    def missing(self) -> list[str]:
        """Why trials of either side have no verdict, as reasons."""
        return sorted({*self.a.missing, *self.b.missing})


class JudgePart(msgspec.Struct):
    """The difference that human labels of all answers would have shown, estimated from labels of both sides."""

    evaluator: str
    labels: int
    """Labels of both sides that the estimate uses: those of cases with labels on both, if it is powered."""
    method: str
    """`powered`, `corrected` or `stratified`; empty if none is possible."""
    difference: float | None = None
    ci: Interval | None = None
    verdict: DecisionVerdict = "undecided"
    refused: str | None = None
    """Why there is no powered difference."""
    turns: bool = False
    """Whether human labels would have led to another decision than the judge's, or show that this one says nothing."""
    note: str = ""


class SlicePart(msgspec.Struct):
    """The cases of one tag, or of one value of a metadata key."""

    key: str
    value: str
    n: int
    units: int
    difference: float | None = None
    ci: Interval | None = None
    p: float | None = None
    p_holm: float | None = None
    q: float | None = None
    p_margin: float | None = None
    """Two-sided, for a difference of -margin, Holm-adjusted over the slices; None if slices do not decide."""


class GuardPart(msgspec.Struct):
    """A further limit that must hold; `value` is B/A for costs and times, else B - A as a share of the range of
    scores."""

    name: str
    limit: float
    value: float | None
    ci: Interval | None
    state: GuardState
    reason: str = ""
    """Why there is no value or interval, or why it decides nothing."""


class EvaluatorPart(msgspec.Struct):
    """One evaluator: additional information, never a verdict."""

    name: str
    difference: float | None
    ci: Interval | None
    p: float | None
    n: int
    q: float | None = None
    scored: bool = False
    """Whether its scores say more than whether it passed; the numbers above are then about scores."""
    rate_difference: float | None = None
    """The difference of its pass rates; the same as above if it is not scored."""
    rate_ci: Interval | None = None
    rate_p: float | None = None


class ShiftedCase(msgspec.Struct):
    """A case that changed beyond noise."""

    case_id: str
    p: float
    q: float


class ChangedPart(msgspec.Struct):
    """Cases whose share of passed trials changed, the largest change first; most of them may be noise."""

    worse: list[str] = []
    better: list[str] = []
    beyond_noise: list[ShiftedCase] = []
    flipped: int = 0
    flipped_expected: float | None = None
    """How many an unchanged system would show; None with one trial per side."""
    b_won: float | None = None
    """The share of the changed cases that B won; this and the next three only with one trial per side and no groups."""
    b_won_ci: Interval | None = None
    """Exact (Clopper and Pearson 1934): it excludes 1/2 exactly when the difference is beyond noise."""
    chance_b_better: float | None = None
    """The chance that B is better, from a flat prior (Bowyer, Aitchison and Ivanova 2025, arXiv 2503.01747)."""
    e_value: float | None = None
    """Evidence of a change. Values of separate nights multiply; 1/alpha is enough, however often it is checked."""
    too_few_trials: bool = False
    """Nothing is beyond noise, and no case has the 4 trials per side that it usually takes to show that."""


class FailureCluster(msgspec.Struct):
    """Failures and errors with about the same reason, and in how many cells of A and of B they occur.

    If a case has more trials on one side, these are cells per trial: on average over its trials, and at least 1.
    """

    signature: str
    a: int
    b: int
    cases: list[str] = []
    gained: list[str] = []
    """Cases that have it in B but not in A."""
    lost: list[str] = []
    """Cases that have it in A but not in B."""


class NextPart(msgspec.Struct):
    """What it would take to decide if the difference holds."""

    cases: int
    trials: int
    """Of B. A has as many as now if cases are needed, and as many as B if trials are."""
    cost_usd: float | None = None
    """Of the further cells of B."""
    claim: str = "not worse"
    """What would be shown: `not worse`, `worse`, `better`."""


class IdentityPart(msgspec.Struct):
    """What differs between the runs besides the system."""

    cases_changed: list[str] = []
    evaluators_changed: list[str] = []
    a_only: list[str] = []
    b_only: list[str] = []


class Decision(msgspec.Struct, kw_only=True):
    """Whether B is better than A, whether it may ship, and how certain that is."""

    schema_version: str = "1.0"
    verdict: DecisionVerdict
    reasons: list[str] = []
    """Why it is undecided: `data`, `units` (all cases are one group), `errors`, `guard`, `judge`, `unreadable records`,
    `every unit was looked at`; or the slices that prevent it."""
    exit_code: int = 3
    metric: str = "pass_rate"
    variant_a: str
    variant_b: str
    alpha: float = 0.05
    margin: float = 0.0
    better: bool = False
    """Whether B must be better, rather than no worse."""
    population: str = "cases"
    group: str | None = None
    """The metadata key that groups the cases, or `none`; None: their own groups."""
    family: int = 1
    """Number of comparisons that are decided together; alpha is divided by it."""
    method: str | None = None
    difference: float | None = None
    ci: Interval | None = None
    p_better: float | None = None
    """Two-sided, for no difference."""
    p_margin: float | None = None
    """Two-sided, for a difference of -margin."""
    p_equivalent: float | None = None
    """One-sided, for a difference of the margin or more (two t-tests, Schuirmann 1987); None with other methods and
    with groups."""
    n: int = 0
    units: int = 0
    effective_units: float = 0.0
    trials: tuple[int, int] = (0, 0)
    """The highest number of trials of a case on each side."""
    a: SideRate
    b: SideRate
    errors: ErrorPart
    judge: JudgePart | None = None
    slices: list[SlicePart] = []
    guards: list[GuardPart] = []
    evaluators: list[EvaluatorPart] = []
    changed: ChangedPart
    clusters: list[FailureCluster] = []
    next: NextPart | None = None
    identity: IdentityPart
    warnings: list[str] = []

    @property
    def readings(self) -> list[Interval]:
        """The interval, and what it would be with all missing verdicts failed, and all passed: what is said of the
        difference must hold in each. Empty if no case was judged on both sides."""
        if self.ci is None:
            return []
        bounds = self.errors.all_failed, self.errors.all_passed
        return [self.ci, *(bound.ci for bound in bounds if bound is not None and bound.ci is not None)]
