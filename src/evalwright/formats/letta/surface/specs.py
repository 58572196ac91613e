"""The parts of a suite as models, for programs that put suites together or annotate their functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from evalwright.formats.letta.surface.models import Open
from evalwright.formats.letta.surface.types import (
    Aggregation,
    GateKind,
    GraderKind,
    LLMProvider,
    LogicalOp,
    MetricOp,
    RewardKind,
    TargetKind,
)

__all__ = [
    "BaseGraderSpec",
    "BaseTargetSpec",
    "CustomRewardSpec",
    "GateSpec",
    "GraderSpec",
    "LettaAgentTargetSpec",
    "LettaCodeTargetSpec",
    "LettaJudgeGraderSpec",
    "LogicalGateSpec",
    "MetricRewardSpec",
    "ModalSandboxSpec",
    "ModelJudgeGraderSpec",
    "RewardSpec",
    "SandboxSpec",
    "SimpleCondition",
    "SimpleGateSpec",
    "TargetSpec",
    "ToolGraderSpec",
    "WeightedAverageGateSpec",
    "normalize_weights",
    "section",
]


class TargetSpec(Open):
    """What all targets have in common; in the original, a union of the two below."""

    kind: TargetKind
    base_url: str | None = "http://localhost:8283"
    api_key: str | None = None
    timeout: float = 300.0
    project_id: str | None = None
    max_retries: int = 0
    model_configs: list[str] | None = None
    model_handles: list[str] | None = None


BaseTargetSpec = TargetSpec


class LettaAgentTargetSpec(TargetSpec):
    kind: TargetKind = TargetKind.LETTA_AGENT
    agent_id: str | None = None
    agent_file: str | None = None
    agent_script: str | None = None


class LettaCodeTargetSpec(TargetSpec):
    kind: TargetKind = TargetKind.LETTA_CODE
    working_dir: str | None = None
    skills_dir: str | None = None
    agent_script: str | None = None


class GraderSpec(Open):
    """What all graders have in common; in the original, a union of those below."""

    kind: GraderKind
    display_name: str | None = None
    extractor: str = "last_assistant"
    extractor_config: dict[str, Any] | None = None


BaseGraderSpec = GraderSpec


class ToolGraderSpec(GraderSpec):
    kind: GraderKind = GraderKind.TOOL
    function: str


class ModelJudgeGraderSpec(GraderSpec):
    kind: GraderKind = GraderKind.MODEL_JUDGE
    prompt: str | None = None
    prompt_path: str | None = None
    model: str = "gpt-4o-mini"
    temperature: float = 0.0
    provider: LLMProvider = LLMProvider.OPENAI
    max_retries: int = 5
    timeout: float = 120.0
    rubric_vars: list[str] | None = None
    system_prompt: str | None = None


class LettaJudgeGraderSpec(GraderSpec):
    kind: GraderKind = GraderKind.LETTA_JUDGE
    prompt: str | None = None
    prompt_path: str | None = None
    agent_file: str | None = None
    judge_tool_name: str = "submit_grade"
    rubric_vars: list[str] | None = None


class SimpleCondition(Open):
    metric_key: str
    aggregation: Aggregation
    op: MetricOp
    value: float
    pass_threshold: float | None = None


class GateSpec(Open):
    """What all gates have in common; in the original, a union of those below."""

    kind: GateKind


class SimpleGateSpec(GateSpec):
    metric_key: str
    aggregation: Aggregation = Aggregation.AVG_SCORE
    op: MetricOp
    value: float
    pass_threshold: float | None = None


class WeightedAverageGateSpec(GateSpec):
    aggregation: Aggregation
    weights: dict[str, float] = Field(min_length=1)
    op: MetricOp
    value: float


class LogicalGateSpec(GateSpec):
    operator: LogicalOp
    conditions: list[SimpleCondition | LogicalGateSpec] = Field(min_length=1)


class RewardSpec(Open):
    """What both rewards have in common; in the original, a union of those below."""

    kind: RewardKind


class MetricRewardSpec(RewardSpec):
    metric_key: str


class CustomRewardSpec(RewardSpec):
    function: str


class ModalSandboxSpec(Open):
    """Where samples would run in the original; suites that ask for it are rejected here."""

    kind: Literal["modal"] = "modal"
    image: str | None = None
    letta_evals_version: str | None = None
    letta_code_version: str | None = None
    secrets: list[str] = Field(default_factory=list)
    forward_env: list[str] = Field(default_factory=list)
    volumes: dict[str, str] = Field(default_factory=dict)
    project_root: Path | None = None


SandboxSpec = ModalSandboxSpec


_KINDS: dict[str, dict[str, type[Open]]] = {
    "target": {"letta_agent": LettaAgentTargetSpec, "letta_code": LettaCodeTargetSpec},
    "graders": {"tool": ToolGraderSpec, "model_judge": ModelJudgeGraderSpec, "letta_judge": LettaJudgeGraderSpec},
    "gate": {"simple": SimpleGateSpec, "weighted_average": WeightedAverageGateSpec, "logical": LogicalGateSpec},
    "reward": {"metric": MetricRewardSpec, "custom": CustomRewardSpec},
}
_DEFAULTS = {"num_runs": 1, "cleanup": False}


def section(name: str, value: Any) -> Any:
    """A section of a suite in the original's form: a model of its kind, by name for graders; plain values unchanged.

    What only we read is a model with the keys that it has.
    """
    if value is None:
        return _DEFAULTS.get(name)
    if name not in _KINDS or not isinstance(value, dict):
        return value
    if name == "graders":
        return {key: _spec_of_kind(name, grader) for key, grader in value.items()}
    return _spec_of_kind(name, value)


def _spec_of_kind(name: str, value: dict[str, Any]) -> Open:
    kind = str(value.get("kind", "simple" if name == "gate" else ""))
    try:
        return _KINDS[name].get(kind, Open).model_validate({**value, "kind": kind})
    except (ValidationError, TypeError):
        return Open.model_validate(value)


def normalize_weights(weights: dict[str, float]) -> dict[str, float]:
    """The weights as shares of their sum. Raises ValueError if that is 0."""
    total = sum(weights.values())
    if total == 0:
        raise ValueError("weights: expected a sum other than 0")
    return {key: weight / total for key, weight in weights.items()}
