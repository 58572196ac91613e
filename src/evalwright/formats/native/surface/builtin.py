"""Evalh's evaluators under the names of its classes, judging as ours do, and a factory that builds them from a
suite."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from evalwright import registry
from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import BuiltEvaluator, build_evaluator
from evalwright.formats.native.evalh_rules import lenient_keys
from evalwright.formats.native.surface.bases import ConfigError, Evaluator
from evalwright.formats.native.surface.moments import utc_now
from evalwright.formats.native.surface.records import (
    EvalCase,
    EvaluationResult,
    FilesystemArtifact,
    Trace,
    TraceError,
)
from evalwright.formats.native.surface.settings import EvaluatorConfig
from evalwright.model.artifact import Artifact
from evalwright.model.artifact import FilesystemArtifact as OurArtifact
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace as OurTrace

__all__ = ["CLASSES", "BuiltIn", "EvaluatorFactory", "Registry", "evaluator_factory"]

CLASSES = {
    f"{''.join(word.capitalize() for word in name.split('_'))}Evaluator": name
    for name in (
        "command", "contains_text", "cost_under", "exact_match", "git_diff", "latency_first_token_under",
        "latency_under", "llm_judge", "schema_match", "semantic_similarity", "stream_completed",
        "thinking_does_not_leak", "thinking_present", "thinking_tokens_under", "tokens_per_second_above", "tool_called",
    )
}  # fmt: skip
"""The name of each class, and its type in suites."""


class BuiltIn(Evaluator):
    """One of ours behind evalh's interface."""

    def __init__(self, name: str, **config: Any) -> None:
        super().__init__(name, **config)
        self._built = _built(self.type, config)

    @classmethod
    def validate_config(cls, config: dict[str, Any]) -> None:
        _built(cls.type, config)

    async def evaluate(
        self, case: EvalCase, trace: Trace, artifact: FilesystemArtifact | None = None
    ) -> EvaluationResult:
        started, error = utc_now(), None
        try:
            evaluation = await self._evaluation_of(case, trace, artifact)
        except EvaluatorError as raised:
            evaluation = Evaluation(passed=False, reason=str(raised), detail=raised.detail)
            error = TraceError(type=raised.type, message=str(raised))
        finished = utc_now()
        return EvaluationResult(
            run_id=trace.run_id,
            case_id=case.id,
            variant_name=trace.variant_name,
            evaluator=self.name,
            evaluator_type=self.type,
            passed=evaluation.passed,
            score=evaluation.score,
            reason=evaluation.reason or ("passed" if evaluation.passed else "failed"),
            detail=msgspec.to_builtins(evaluation.detail),
            started_at=started,
            finished_at=finished,
            latency_ms=max(0, int((finished - started).total_seconds() * 1000)),
            error=error,
        )

    async def _evaluation_of(self, case: EvalCase, trace: Trace, artifact: FilesystemArtifact | None) -> Evaluation:
        arguments: list[Any] = [
            msgspec.convert(case.model_dump(mode="json"), Case),
            msgspec.convert(trace.model_dump(mode="json"), OurTrace),
        ]
        if self._built.traits.uses_artifact:
            files = None
            if artifact is not None:
                record = msgspec.convert(artifact.model_dump(mode="json"), OurArtifact)
                files = Artifact(record, Path(artifact.artifacts_path))
            arguments.append(files)
        evaluation = self._built.evaluate(*arguments)
        return await evaluation if inspect.isawaitable(evaluation) else evaluation


def _built(type_name: str, config: dict[str, Any]) -> BuiltEvaluator:
    try:
        return build_evaluator(type_name, {**lenient_keys(type_name), **config})
    except InputError as error:
        raise ConfigError(f"{type_name}: {error}") from error


@cache
def _class(name: str) -> type[BuiltIn]:
    return type(name, (BuiltIn,), {"type": CLASSES[name], "__module__": __name__})


def __getattr__(name: str) -> Any:
    if name not in CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _class(name)


class Registry:
    """The evaluators by type: ours, those of plug-ins, and what a program registers itself."""

    def __init__(self, kind: str = "evaluator") -> None:
        self._kind = kind
        self._own: dict[str, Any] = {}

    def register(self, name: str, cls: Any) -> None:
        self._own[name] = cls

    def get(self, name: str) -> Any:
        """The class for a type. Raises ConfigError, which lists the known ones."""
        if name in self._own:
            return self._own[name]
        by_type = {type_name: class_name for class_name, type_name in CLASSES.items()}
        if name in by_type:
            return _class(by_type[name])
        try:
            evaluator = registry.load("evaluators", name)
        except InputError as error:
            raise ConfigError(f"Unknown {self._kind} {name!r}. Registered: {self.names()}") from error
        # A plug-in of evalh is its own class again.
        return getattr(evaluator, "kind", None) or type(name, (BuiltIn,), {"type": name})

    def names(self) -> list[str]:
        return sorted({*registry.names("evaluators"), *self._own})


class EvaluatorFactory:
    """Evaluators as a suite configures them."""

    def __init__(self) -> None:
        self.registry: Registry = Registry()

    def register(self, name: str, cls: Any) -> None:
        self.registry.register(name, cls)

    def build(self, config: EvaluatorConfig) -> Evaluator:
        """Raises ConfigError."""
        kind = self.registry.get(config.type)
        kind.validate_config(config.config)
        made: Evaluator = kind(name=config.name, **config.config)
        return made


evaluator_factory: EvaluatorFactory = EvaluatorFactory()
