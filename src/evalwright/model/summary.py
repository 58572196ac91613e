"""Folds over the records of a run (produced): safe to delete, rebuilt on demand.

Every rate carries `n` and a 95 % interval, every mean its `n`. Field names without a comment are those of the evalh
format.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from evalwright.model.calibration import JudgeCalibration
from evalwright.model.decision import Decision
from evalwright.model.result import FAILED, Status
from evalwright.model.trace import SCHEMA_VERSION

__all__ = [
    "ComparisonReport",
    "DoubtCount",
    "EvaluatorRate",
    "EvaluatorRollup",
    "GateOutcome",
    "GatePart",
    "NamedMetric",
    "Replies",
    "RunSummary",
    "ShardCounts",
    "TrialStatistics",
    "VariantDelta",
    "VariantSummary",
    "decisions_of",
]

Interval = tuple[float, float]


class TrialStatistics(msgspec.Struct):
    """Several trials of each case: unbiased pass@k and pass^k for k = 1 .. trials, means over cases.

    pass@k = 1 - C(n-c, k)/C(n, k) (Chen et al. 2021); pass^k = C(c, k)/C(n, k) (Yao et al. 2024, tau-bench).
    Position k-1 of a list belongs to k; null if no case has k judged trials.
    """

    trials: int
    cases: int
    pass_at_k: list[float | None]
    pass_hat_k: list[float | None]
    cases_by_k: list[int] = []
    """Cases with at least k judged trials, on which the rates and their Wilson intervals rest."""
    pass_at_k_ci95: list[Interval | None] = []
    pass_hat_k_ci95: list[Interval | None] = []
    flake_rate: float | None = None
    """The probability that two trials of one case disagree."""
    flake_rate_ci95: Interval | None = None
    mixed_cases: int = 0
    """Cases with both passed and failed trials."""
    mixed: list[str] = []
    """The first hundred of them, the most contradictory first."""


class VariantSummary(msgspec.Struct):
    """One variant of a run.

    `pass_rate` is the mean over cases of the share of passed trials among those with a verdict: with one trial,
    passed / judged; None if no cell has a verdict. Skipped cells and errors are only in `cells`. `cases_passed` counts
    cases in which every judged trial passed and none errored, `cases_errored` those with a trial whose target errored.
    """

    name: str
    cases_total: int
    cases_passed: int
    cases_errored: int
    pass_rate: float | None
    avg_latency_ms: float | None
    avg_cost_usd: float | None = None
    avg_tokens_input: float | None = None
    avg_tokens_output: float | None = None
    pass_rate_n: int = 0
    """Number of cases behind `pass_rate`: repeats of a case are not independent and do not count."""
    pass_rate_ci95: Interval | None = None
    cells_total: int = 0
    cells: dict[str, int] = {}
    """Number of cells by verdict: pass, borderline, fail, skip, error."""
    latency_n: int = 0
    cost_n: int = 0
    tokens_input_n: int = 0
    tokens_output_n: int = 0
    cost_total_usd: float | None = None
    judge_cost_usd: float | None = None
    """Total cost of judging this variant, US dollars; never part of the system's cost."""
    trials: TrialStatistics | None = None
    """Only if some case ran more than once."""
    detectable: float | None = None
    """The smallest difference in pass rate, to another run of the same cases and trials, that would be shown with 80 %
    power at alpha 0.05 if every case's expected result differs by the same; None if the run does not tell."""
    dominated_by: list[str] = []
    """Variants shown to be no worse in pass rate, cost and latency, and better in one of them (Pareto). Only reports,
    and runs with a baseline variant, look for them."""


class EvaluatorRate(msgspec.Struct):
    """One evaluator on one variant: `n` counts results with a verdict, `scored` the scores behind `avg_score`.

    `pass_rate` is the mean over cases of the share of passed results, with the same kind of interval as a variant's
    rate; there is none without results. Errors and skipped results are counted separately. `cases` is the number of
    cases, or of groups of cases, behind it: repeats of a case are not independent, nor are cases of a group.
    """

    pass_rate: float | None
    avg_score: float | None
    n: int = 0
    pass_rate_ci95: Interval | None = None
    scored: int = 0
    errors: int = 0
    skipped: int = 0
    cases: int = 0
    cost_usd: float | None = None
    """Total cost of this evaluator's models, US dollars."""
    grouped: bool = False
    """Whether any case has a group, so that `cases` counts groups."""


class EvaluatorRollup(msgspec.Struct):
    """One evaluator over all variants."""

    evaluator: str
    by_variant: dict[str, EvaluatorRate]
    calibration: JudgeCalibration | None = None
    """How well it agrees with human labels; only for judges, and for other evaluators that have labels."""


class NamedMetric(msgspec.Struct):
    """A number to which the suite gives a name, on one variant."""

    metric: str
    variant: str
    value: float | None
    """As the suite defines it: a weighted sum of scores, or computed from such sums; None if that is impossible."""
    mean: float | None = None
    """The weighted mean, for a sum of scores."""
    n: int = 0
    """Scores behind the mean."""


class VariantDelta(msgspec.Struct):
    """One variant compared with the baseline: rates as fractions, latency in milliseconds, ids sorted.

    Interval and `p_value` are about the cases that both sides judged, and never contradict each other: p is at most
    0.05 exactly when the interval excludes 0 (`evalwright.statistics.decide_difference`).
    """

    variant: str
    pass_rate_delta: float | None
    avg_latency_delta_ms: float | None
    regressions: list[str]
    """Cases in which a smaller share of the trials passed, by chance or not."""
    improvements: list[str]
    n: int = 0
    """Cases that were judged on both sides."""
    pass_rate_delta_ci95: Interval | None = None
    p_value: float | None = None
    p_holm: float | None = None
    """`p_value` adjusted for all variants of the comparison (Holm 1979), if there are several."""


class ComparisonReport(msgspec.Struct):
    """Variants of a run compared with its baseline variant (`ad_hoc`), or a run with a baseline run (`drift`)."""

    baseline: str
    deltas: list[VariantDelta]
    kind: str = "ad_hoc"
    baseline_run_id: str | None = None
    regressions_count: int | None = None
    improvements_count: int | None = None
    counted: int | None = None
    """For `drift`: the number of cases in both runs, on which the two counts without an error rate rest."""
    union_delta: float | None = None
    """For `drift`: the difference of the rates over these cases."""
    decision: Decision | None = None
    """The comparison of the cases that both runs judged, if a variant is in both."""
    decisions: list[Decision] = []
    """One for each variant, if there are several."""


class GatePart(msgspec.Struct):
    """One condition of a gate: what was measured, and what it was compared with."""

    name: str
    passed: bool
    value: float | None = None
    """None if nothing was measured."""
    op: str = ""
    threshold: float | None = None
    n: int = 0
    """Scores behind the value; cases behind a rate or a difference."""
    ci: Interval | None = None
    """For a claim: the interval that decides it, at its own error rate."""
    undecided: bool = False
    """For a claim: the interval contains the threshold, or the outcome depends on errors."""
    ci95: Interval | None = None
    """For a condition on a value: the interval around it, which decides nothing."""
    interval_reason: str = ""
    """Why a measured value has no interval."""
    unit: str = ""
    """The unit of value, threshold and interval: `rate` (a share), `points` (a difference of shares), `ratio` (B/A);
    empty for plain numbers."""


class GateOutcome(msgspec.Struct):
    """Whether the run as a whole passed, by the rule of its suite."""

    passed: bool
    parts: list[GatePart] = []
    reason: str = ""
    runs: list[GateOutcome] = []
    """The outcome of each run, in order, if the suite ran several times and each run was decided separately."""
    undecided: bool = False
    """Nothing was measured, or errors could change the outcome: neither passed nor failed."""
    tolerated: bool = False
    """Undecided, and the suite asks for this to pass (`on_undecided: pass`)."""
    decision: Decision | None = None
    """The outcome of a claim compared with a baseline, if there is one comparison."""
    decisions: list[Decision] = []
    """If there are several comparisons."""
    baselines: dict[str, str | None] | msgspec.UnsetType = msgspec.UNSET
    """For claims about other runs: by the name that the suite gives it (`baseline`, a path), the id of the run that it
    was compared with; null if there was none. Unset in runs that did not keep it."""


def decisions_of(report: ComparisonReport | GateOutcome) -> list[Decision]:
    """All decisions of a comparison or a gate, of which a single one is stored apart."""
    return [report.decision] if report.decision is not None else report.decisions


class DoubtCount(msgspec.Struct):
    """A kind of doubt (`model.trace.Doubt`) about replies of a system, and in how many of them."""

    what: str
    times: int
    example: str = ""
    """That of the first case in question, whichever reply came first."""
    if_all: bool = False
    case_index: int = 0
    trial: int = 0


class Replies(msgspec.Struct):
    """How many replies a system gave in the last session that called it, and the doubts about them."""

    total: int
    doubts: list[DoubtCount] = []


class ShardCounts(msgspec.Struct):
    """What a merge counts for the whole run."""

    replies: dict[str, Replies]
    """By variant."""
    warnings: list[str] = []
    """Those that follow from the shard's own numbers, and say nothing about the run's."""


class RunSummary(msgspec.Struct):
    """One run in numbers, as stored in `summary.yaml`."""

    run_id: str
    started_at: datetime
    finished_at: datetime
    config_path: str
    config_hash: str
    cases_total: int
    variants: list[VariantSummary]
    by_evaluator: list[EvaluatorRollup]
    comparison: ComparisonReport | None = None
    sink_errors: list[dict[str, Any]] = []
    status: str = "complete"
    """`complete`, or `partial` while cells are missing."""
    cells_total: int = 0
    cells_missing: int = 0
    gate: GateOutcome | None = None
    named_metrics: list[NamedMetric] | msgspec.UnsetType = msgspec.UNSET
    """By metric, each on all variants; unset if the suite names none."""
    native: dict[str, Any] | None = None
    """The original system's own totals under its own names, if the suite has another format."""
    warnings: list[str] = []
    """The plan's (`Plan.warnings`), and what the numbers alone do not show."""
    call_warnings: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Those that the calls of systems gave, if any: they hold however often the answers are re-evaluated."""
    cells_unread: int | msgspec.UnsetType = msgspec.UNSET
    """Cells whose case could not be read, if there are any: they are errors until the suite is fixed."""
    scored: bool | msgspec.UnsetType = msgspec.UNSET
    """True if the suite has no score from which a cell passes: reports then show scores instead of pass rates."""
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """The suite's own, if it has any."""
    shard: str | msgspec.UnsetType = msgspec.UNSET
    """`shard 2 of 8`, if these are the numbers of one shard; the run's gate is decided once all are merged."""
    to_merge: ShardCounts | msgspec.UnsetType = msgspec.UNSET
    """Only in a shard's."""
    schema_version: str = SCHEMA_VERSION

    @property
    def failing(self) -> tuple[Status, ...]:
        """The statuses of cells that failed: none in a suite that has only scores, of which its gate alone decides."""
        return () if self.scored is True else FAILED

    @property
    def nothing_judged(self) -> bool:
        """Whether every cell was skipped, or there was none to run."""
        counts = [variant.cells for variant in self.variants]
        cells = sum(sum(cells.values()) for cells in counts)
        return cells == sum(cells.get("skip", 0) for cells in counts) and (cells > 0 or not self.cells_missing)
