"""The sections of `eval.yaml` as `eval_harness.core.config` has them, and `load_config`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.formats.native.surface.bases import ConfigError
from evalwright.formats.shared.environment import Expansion

__all__ = [
    "DatasetConfig",
    "EvalConfig",
    "EvalIdentity",
    "EvaluatorConfig",
    "ExecutorConfig",
    "MetricsConfig",
    "OutputConfig",
    "PassCriteria",
    "RetryPolicy",
    "RunOptions",
    "SystemConfig",
    "TraceCaptureConfig",
    "WorkspaceConfig",
    "load_config",
    "mapping_in",
]


class _Closed(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class _Open(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")


class EvalIdentity(_Closed):
    name: str
    description: str | None = None
    owner: str | None = None
    tags: list[str] = Field(default_factory=list)


class DatasetConfig(_Open):
    type: str
    path: str | None = None
    filter: dict[str, Any] = Field(default_factory=dict)
    sample: int | None = None


class SystemConfig(_Open):
    name: str
    adapter: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    timeout_seconds: int = 120
    enrich_trace_from: list[dict[str, Any]] = Field(default_factory=list)
    pool: str | None = None


class WorkspaceConfig(_Open):
    type: str
    copy_from: str | None = None


class TraceCaptureConfig(_Closed):
    capture: list[str] = Field(default_factory=list)


class EvaluatorConfig(_Closed):
    name: str
    type: str
    config: dict[str, Any] = Field(default_factory=dict)


class PassCriteria(_Closed):
    all_required: list[str] = Field(default_factory=list)
    any_required: list[str] = Field(default_factory=list)


class RetryPolicy(_Closed):
    max_attempts: int = 1
    on: list[str] = Field(default_factory=list)
    backoff_seconds: float = 0.0


class ExecutorConfig(_Open):
    type: str = "local"
    pools: dict[str, int] = Field(default_factory=dict)


class RunOptions(_Closed):
    max_concurrency: int = 4
    per_variant_concurrency: int | None = None
    retry: RetryPolicy = Field(default_factory=RetryPolicy)
    baseline_variant: str | None = None
    cost_limit_usd: float | None = None
    executor: ExecutorConfig = Field(default_factory=ExecutorConfig)


class OutputConfig(_Open):
    type: str
    path: str | None = None


class MetricsConfig(_Closed):
    price_table_path: str | None = None


class EvalConfig(_Closed):
    schema_version: str = "1.0"
    eval: EvalIdentity
    metadata: dict[str, Any] = Field(default_factory=dict)
    dataset: DatasetConfig
    systems: list[SystemConfig]
    workspace: WorkspaceConfig | None = None
    trace: TraceCaptureConfig | None = None
    evaluators: list[EvaluatorConfig]
    pass_criteria: PassCriteria = Field(default_factory=PassCriteria)
    run: RunOptions = Field(default_factory=RunOptions)
    metrics: MetricsConfig = Field(default_factory=MetricsConfig)
    output: list[OutputConfig]

    @model_validator(mode="before")
    @classmethod
    def _one_output_is_a_list(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("output"), dict):
            return {**data, "output": [data["output"]]}
        return data


def mapping_in(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises ConfigError."""
    try:
        mapping = yaml.load(path).value
    except InputError as error:
        raise ConfigError(str(error)) from error
    if not isinstance(mapping, dict):
        raise ConfigError(f"{path}: expected a mapping, found {type(mapping).__name__}")
    return mapping


def load_config(path: Path) -> EvalConfig:
    """The suite in a file, with the variables of the environment filled in. Raises ConfigError with every mistake."""
    path = Path(path)
    raw = mapping_in(path)
    expansion = Expansion(os.environ, str(path.resolve().parent))
    data = expansion.expanded(raw)
    mistakes = [
        f"{_dotted_path(place)}: the environment variable {name!r} is not set" for place, name in expansion.unset
    ]
    try:
        config = EvalConfig.model_validate(data)
    except ValidationError as error:
        mistakes += [f"{_dotted_path(mistake['loc'])}: {mistake['msg']}" for mistake in error.errors(include_url=False)]
    else:
        mistakes += _unknown_names(config)
    if mistakes:
        raise ConfigError("\n".join([f"Invalid config {path}", *(f"  {mistake}" for mistake in mistakes)]))
    return config


def _unknown_names(config: EvalConfig) -> Iterator[str]:
    evaluators = {evaluator.name for evaluator in config.evaluators}
    for key in ("all_required", "any_required"):
        for name in getattr(config.pass_criteria, key):
            if name not in evaluators:
                yield f"pass_criteria.{key}: there is no evaluator {name!r}"
    baseline = config.run.baseline_variant
    if baseline is not None and baseline not in {system.name for system in config.systems}:
        yield f"run.baseline_variant: there is no system {baseline!r}"


def _dotted_path(place: tuple[Any, ...]) -> str:
    return ".".join(map(str, place))
