"""The classes that plug-ins of evalh derive from, implement and raise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from pydantic import BaseModel, Field

from evalwright.formats.native.surface.records import (
    EvalCase,
    EvaluationResult,
    FilesystemArtifact,
    RunSummary,
    RunVariant,
    Trace,
)

__all__ = [
    "VERSION",
    "AdapterError",
    "ConfigError",
    "DatasetAdapter",
    "Evaluator",
    "JudgeBackend",
    "LlmBackend",
    "LlmBackendError",
    "LlmBackendParseError",
    "LlmCall",
    "RetriableError",
    "SystemAdapter",
    "TraceEnricher",
    "TraceStore",
    "Workspace",
    "WorkspaceAdapter",
]

VERSION = "2.0.2"
"""The release of eval_harness whose names these are."""


class ConfigError(ValueError):
    """A mistake in a suite, found before anything runs."""


class AdapterError(Exception):
    """A system could not answer: the message becomes the error of the trace."""


class RetriableError(AdapterError):
    """An error that may not happen again on another attempt."""


class Evaluator(ABC):
    type: ClassVar[str] = ""

    def __init__(self, name: str, **config: Any) -> None:
        self.name = name
        self._config = config

    @classmethod
    def validate_config(cls, config: dict[str, Any]) -> None:
        """Raise ConfigError for a configuration that cannot be used."""
        return  # an empty method would count as abstract

    @abstractmethod
    async def evaluate(self, case: EvalCase, trace: Trace, artifact: FilesystemArtifact | None) -> EvaluationResult: ...


class Workspace(BaseModel):
    path: Path
    metadata: dict[str, Any] = Field(default_factory=dict)


class _Opened(Protocol):
    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...


@runtime_checkable
class SystemAdapter(_Opened, Protocol):
    name: str

    async def run(self, case: EvalCase, variant: RunVariant, workspace: Workspace | None) -> Trace: ...


@runtime_checkable
class TraceEnricher(_Opened, Protocol):
    name: str

    async def enrich(self, trace: Trace) -> Trace: ...


@runtime_checkable
class DatasetAdapter(Protocol):
    embed_full_trace: ClassVar[bool]

    async def load_cases(self) -> list[EvalCase]: ...


@runtime_checkable
class TraceStore(_Opened, Protocol):
    async def open(self, run_id: str, run_dir: Path) -> None: ...

    async def save_trace(self, trace: Trace) -> None: ...

    async def save_trace_idempotent(self, trace: Trace, cell_id: str) -> bool: ...

    async def save_evaluation(self, case_id: str, variant: str, results: list[EvaluationResult]) -> None: ...

    async def save_artifact(self, artifact: FilesystemArtifact) -> None: ...

    async def save_summary(self, summary: RunSummary) -> None: ...

    async def close(self) -> None: ...

    def iter_traces(self, run_id: str | None = None, batch_size: int = 100) -> AsyncIterator[Trace]: ...

    def iter_results(self, run_id: str | None = None, batch_size: int = 100) -> AsyncIterator[EvaluationResult]: ...

    async def load_summary(self, run_id: str) -> RunSummary | None: ...

    async def list_run_ids(self) -> list[str]: ...


@runtime_checkable
class WorkspaceAdapter(Protocol):
    name: str

    async def prepare(self, case: EvalCase, variant: RunVariant) -> Workspace: ...

    async def collect_artifacts(self, workspace: Workspace) -> FilesystemArtifact: ...

    async def cleanup(self, workspace: Workspace) -> None: ...


class LlmCall(BaseModel):
    text: str = ""
    structured: dict[str, Any] | None = None
    token_input: int = 0
    token_output: int = 0
    token_thinking: int = 0
    cost_usd: float = 0.0
    extra: dict[str, Any] = Field(default_factory=dict)


@runtime_checkable
class LlmBackend(Protocol):
    async def generate(
        self,
        prompt: str,
        *,
        model: str,
        max_tokens: int,
        system: str | None = None,
        schema: dict[str, Any] | None = None,
        cost_limit_usd: float | None = None,
    ) -> LlmCall: ...


@runtime_checkable
class JudgeBackend(Protocol):
    """The name of judges' models before `LlmBackend`."""

    async def judge(self, prompt: str, schema: dict[str, Any], max_tokens: int) -> dict[str, Any]: ...


class LlmBackendError(Exception):
    """A call of a model failed."""


class LlmBackendParseError(LlmBackendError):
    """A model did not answer with the JSON that it was asked for."""
