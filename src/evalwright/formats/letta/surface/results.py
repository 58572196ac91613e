"""The records of letta-evals' result files as models, for programs that read or make them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from evalwright.formats.letta.surface.graders import load_object
from evalwright.formats.letta.surface.models import GradeResult, Open, RewardOutput, Sample
from evalwright.formats.letta.surface.specs import MetricRewardSpec
from evalwright.formats.letta.surface.types import ErrorCategory

__all__ = [
    "CostMetrics",
    "Error",
    "ErrorSummary",
    "MetricAggregate",
    "Metrics",
    "ModelMetrics",
    "ModelRun",
    "ModelSummary",
    "PerRunSummary",
    "RewardContext",
    "RunStatistics",
    "SampleResult",
    "Summary",
    "TargetResult",
    "TargetTrace",
    "Timing",
    "TimingStats",
    "TurnTokenData",
    "Usage",
    "coerce_reward_output",
    "load_reward_composer",
]


class TurnTokenData(Open):
    role: str
    content: str | None = None
    input_ids: list[int] | None = None
    output_ids: list[int] | None = None
    output_token_logprobs: list[Any] | None = None


class TargetResult(Open):
    """What a target returns; releases before 0.17 have the trajectory here, and `model_name`."""

    agent_id: str | None = None
    model_name: str | None = None
    model_handle: str | None = None
    trajectory: list[list[Any]] = Field(default_factory=list)
    agent_usage: list[dict[str, Any]] | None = None
    agent_state: Any = None


class TargetTrace(TargetResult):
    token_data: list[TurnTokenData] | None = None


class Usage(Open):
    """Tokens and US dollars."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None


class Timing(Open):
    """Seconds of one sample."""

    total: float
    target: float
    extraction: float | None = None
    per_grader: dict[str, float] | None = None


class TimingStats(Open):
    """Seconds over samples."""

    mean_total: float
    mean_target: float
    mean_extraction: float | None = None
    p50_total: float
    p95_total: float
    per_grader_mean: dict[str, float] | None = None


class Error(Open):
    category: ErrorCategory
    exception_type: str
    message: str


class ErrorSummary(Open):
    total_errors: int
    by_category: dict[str, int] = Field(default_factory=dict)
    by_exception_type: dict[str, int] = Field(default_factory=dict)


class SampleResult(TargetTrace):
    """One row. Releases before 0.17 have the sample itself, `submission` and `grade`."""

    sample_id: int | str | None = None
    sample: Sample | None = None
    submission: str = ""
    submissions: dict[str, str] | None = None
    grade: GradeResult | None = None
    grades: dict[str, GradeResult] | None = None
    reward: RewardOutput | None = None
    usage: Usage | None = None
    timing: Timing | None = None
    error: Error | None = None
    cost: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class CostMetrics(Open):
    total_cost: float
    total_prompt_tokens: int
    total_completion_tokens: int
    total_cached_input_tokens: int = 0
    total_cache_write_tokens: int = 0
    total_reasoning_tokens: int = 0


class MetricAggregate(Open):
    avg_score_attempted: float
    avg_score_total: float
    pass_rate: float


class _Averages(Open):
    total: int
    total_attempted: int
    avg_score_attempted: float
    avg_score_total: float
    metrics: dict[str, float] = Field(default_factory=dict)
    cost: CostMetrics | None = None


class ModelMetrics(_Averages):
    model_name: str


class Metrics(_Averages):
    per_model: list[ModelMetrics] | None = None
    by_metric: dict[str, MetricAggregate] | None = None


class RunStatistics(Open):
    num_runs: int
    runs_passed: int
    mean_avg_score_attempted: float
    std_avg_score_attempted: float
    mean_avg_score_total: float
    std_avg_score_total: float
    mean_scores: dict[str, float] = Field(default_factory=dict)
    std_scores: dict[str, float] = Field(default_factory=dict)
    individual_run_metrics: list[Metrics]


class PerRunSummary(Open):
    run: int
    reward: float
    per_metric: dict[str, float]
    usage: Usage
    timing: TimingStats
    n_errors: int = 0


class ModelSummary(Open):
    model: str
    n_total: int
    n_attempted: int
    reward: float
    reward_std: float | None = None
    per_metric: dict[str, float]
    per_metric_std: dict[str, float] | None = None
    usage: Usage
    timing: TimingStats
    errors: ErrorSummary | None = None
    runs: list[PerRunSummary] | None = None


class Summary(Open):
    suite: str
    models: list[ModelSummary]


class ModelRun(Open):
    model: str
    results: list[SampleResult]
    runs: list[list[SampleResult]] | None = None
    summary: ModelSummary


@dataclass(frozen=True)
class RewardContext:
    """What a reward composer gets."""

    sample: Sample
    grades: Mapping[str, GradeResult]
    submissions: Mapping[str, str]
    trajectory: list[list[Any]]
    agent_id: str | None
    model_handle: str | None
    agent_state: Any
    usage: Any
    timing: Any


def coerce_reward_output(value: Any) -> RewardOutput:
    """A composer's return value as a RewardOutput. Raises TypeError, and ValueError for a score outside 0 to 1."""
    if isinstance(value, RewardOutput):
        return value
    if isinstance(value, (int, float)):
        return RewardOutput(score=float(value))
    if isinstance(value, dict):
        return RewardOutput(**value)
    raise TypeError(f"expected a RewardOutput, a number or a mapping, found {type(value).__name__}")


def load_reward_composer(reward: Any, base_dir: Path | None) -> Callable[[RewardContext], Awaitable[RewardOutput]]:
    """The function that makes the reward for a suite's section. Raises like `load_object` if its function does not
    exist.

    When called, it raises KeyError for a metric without a grade.
    """
    composer = (
        None if isinstance(reward, MetricRewardSpec) else load_object(reward.function, base_dir, "reward_composer")
    )

    async def made(context: RewardContext) -> RewardOutput:
        score = context.grades[reward.metric_key].score if composer is None else composer(context)
        return coerce_reward_output(await score if inspect.isawaitable(score) else score)

    return made
