"""Folds over the records of a run (produced): safe to delete, rebuilt on demand.

Every rate carries `n` and a 95 % interval, every mean its `n`. Field names without a comment are
those of the evalh format, section b.2.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from evalwright.model.calibration import JudgeCalibration
from evalwright.model.decision import Decision
from evalwright.model.trace import SCHEMA_VERSION

__all__ = [
    "ComparisonReport",
    "EvaluatorRate",
    "EvaluatorRollup",
    "GateOutcome",
    "GatePart",
    "NamedMetric",
    "RunSummary",
    "TrialStatistics",
    "VariantDelta",
    "VariantSummary",
]

Interval = tuple[float, float]


class TrialStatistics(msgspec.Struct):
    """Several trials of each case: unbiased pass@k and pass^k for k = 1 .. trials, means over cases.

    pass@k = 1 - C(n-c, k)/C(n, k) (Chen et al. 2021); pass^k = C(c, k)/C(n, k) (Yao et al. 2024, tau-bench).
    Position k-1 of a list belongs to k; null where no case has k judged trials.
    """

    trials: int
    cases: int
    pass_at_k: list[float | None]
    pass_hat_k: list[float | None]
    cases_by_k: list[int] = []
    """Cases with at least k judged trials, behind the rates and their Wilson intervals."""
    pass_at_k_ci95: list[Interval | None] = []
    pass_hat_k_ci95: list[Interval | None] = []
    flake_rate: float | None = None
    """The probability that two trials of one case disagree."""
    flake_rate_ci95: Interval | None = None
    mixed_cases: int = 0
    """Cases with trials that passed and trials that failed."""
    mixed: list[str] = []
    """The first hundred of them, those that contradict themselves most often first."""


class VariantSummary(msgspec.Struct):
    """One variant of a run.

    `pass_rate` is the mean over cases of the share of passed trials among those with a verdict: with one trial,
    passed / judged; None if no cell has a verdict. Skipped cells and errors are in `cells` alone. `cases_passed` counts
    cases whose every judged trial passed and none errored, `cases_errored` cases with a trial whose target errored.
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
    """What judging this variant cost in total, US dollars; never part of the system's cost."""
    trials: TrialStatistics | None = None
    """Only when some case ran more than once."""
    detectable: float | None = None
    """The smallest difference of pass rates to another run of the same cases and trials that would be shown with 80 %
    power at alpha 0.05, if their expected results differ by the same; None where the run says nothing of that."""
    dominated_by: list[str] = []
    """Variants shown to be not worse in pass rate, cost and latency, and better in one (Pareto).
    Only reports, and runs with a baseline variant, look for them."""


class EvaluatorRate(msgspec.Struct):
    """One evaluator on one variant: `n` counts results with a verdict, `scored` the scores behind `avg_score`.

    `pass_rate` is the mean over cases of the share of passed results, with the interval that a variant's rate has;
    without results there is none. Errors and skipped results are counted beside it. `cases` is the number of cases, or
    of groups of cases, behind it: repeats of a case are not independent, nor are cases of a group.
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
    """What this evaluator's models cost in total, US dollars."""
    grouped: bool = False
    """Whether some case has a group, so that `cases` counts groups."""


class EvaluatorRollup(msgspec.Struct):
    """One evaluator over all variants."""

    evaluator: str
    by_variant: dict[str, EvaluatorRate]
    calibration: JudgeCalibration | None = None
    """Only for judges, and for other evaluators with human labels: how well they agree."""


class NamedMetric(msgspec.Struct):
    """A number that the suite has a name for, on one variant."""

    metric: str
    variant: str
    value: float | None
    """As the suite defines it: a weighted sum of scores, or computed from such sums; None if that is impossible."""
    mean: float | None = None
    """Of scores: their mean by weight."""
    n: int = 0
    """Scores behind the mean."""


class VariantDelta(msgspec.Struct):
    """One variant against the baseline: rates as fractions, latency in milliseconds, ids sorted.

    Interval and `p_value` are those of the cases that both sides judged, and never contradict each other: p is at most
    0.05 exactly when the interval excludes 0 (`evalwright.statistics.decide_difference`).
    """

    variant: str
    pass_rate_delta: float | None
    avg_latency_delta_ms: float | None
    regressions: list[str]
    """Cases of which a smaller share of the trials passed, by chance or not."""
    improvements: list[str]
    n: int = 0
    """Cases that were judged on both sides."""
    pass_rate_delta_ci95: Interval | None = None
    p_value: float | None = None
    p_holm: float | None = None
    """The same adjusted for all variants of the comparison (Holm 1979), where there are several."""


class ComparisonReport(msgspec.Struct):
    """Variants of a run against its baseline variant (`ad_hoc`), or a run against a baseline run (`drift`)."""

    baseline: str
    deltas: list[VariantDelta]
    kind: str = "ad_hoc"
    baseline_run_id: str | None = None
    regressions_count: int | None = None
    improvements_count: int | None = None
    counted: int | None = None
    """Of `drift`: the cases of both runs together, behind the two counts, which have no error rate."""
    union_delta: float | None = None
    """Of `drift`: the difference of the rates over these cases."""
    decision: Decision | None = None
    """The comparison of the cases that both runs judged, where one variant is in both."""
    decisions: list[Decision] = []
    """One for each variant, where several are."""


class GatePart(msgspec.Struct):
    """One condition of a gate: what was measured, and what it was compared with."""

    name: str
    passed: bool
    value: float | None = None
    """None where nothing was measured."""
    op: str = ""
    threshold: float | None = None
    n: int = 0
    """Scores behind the value; cases behind a rate or a difference."""
    ci: Interval | None = None
    """Of a claim: the interval that decides it, at its own error rate."""
    undecided: bool = False
    """Of a claim: the interval contains the threshold, or the outcome depends on errors."""
    ci95: Interval | None = None
    """Of a condition on a value: the interval around it, which decides nothing."""
    interval_reason: str = ""
    """Why a measured value has no interval."""
    unit: str = ""
    """What value, threshold and ends are: `rate` (a share), `points` (a difference of shares), `ratio` (B/A); empty for
    plain numbers."""


class GateOutcome(msgspec.Struct):
    """Whether the run as a whole passed, by the rule of its suite."""

    passed: bool
    parts: list[GatePart] = []
    reason: str = ""
    runs: list[GateOutcome] = []
    """The outcome of each run, in order, if the suite ran several times and was decided run by run."""
    undecided: bool = False
    """Nothing was measured, or what had an error could turn the outcome: neither passed nor failed."""
    tolerated: bool = False
    """Undecided, which the suite asks to let pass (`on_undecided: pass`)."""
    decision: Decision | None = None
    """The outcome of a claim against a baseline, if there is one comparison."""
    decisions: list[Decision] = []
    """Where there are several."""
    baselines: dict[str, str | None] | msgspec.UnsetType = msgspec.UNSET
    """Of claims against other runs: by the name that the suite has for it (`baseline`, a path), the id of the run that
    the claim was held against; null where there was none. Unset in runs that did not keep it."""


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
    """By metric, each on all variants; unset where the suite names none."""
    native: dict[str, Any] | None = None
    """The original system's own aggregate under its own names, where the suite is of another dialect."""
    warnings: list[str] = []
    """Those of the plan (`Plan.warnings`), and what the numbers alone do not show."""
    cells_unread: int | msgspec.UnsetType = msgspec.UNSET
    """Cells whose case could not be read, where there are any: they are errors until the suite is mended."""
    scored: bool | msgspec.UnsetType = msgspec.UNSET
    """True where the suite has no score from which a cell passes: reports then show scores, no rates of passes."""
    shard: str | msgspec.UnsetType = msgspec.UNSET
    """`shard 2 of 8`, where these are the numbers of one shard; the run's gate is asked when all are merged."""
    schema_version: str = SCHEMA_VERSION
