"""Wraps plug-ins of evalh as ours: evaluators, system adapters and enrichers from its entry point groups.

They are written for the package `eval_harness`: the installed one, or our stand-in for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from evalwright.errors import EvaluatorError, InputError, Problem
from evalwright.model.artifact import Artifact
from evalwright.model.plan import Variant
from evalwright.model.protocols import Enricher, Target
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Trace
from evalwright.session.imports import stand_in_where_missing
from evalwright.session.workspace import workspace_path

__all__ = ["enricher", "evaluator", "system_adapter"]

_PARTS = ("output", "messages", "tool_calls", "tool_results", "metrics", "error", "extra")
"""The parts of a trace that an adapter makes or an enricher changes: ids and times are the run's."""


def evaluator(load: Callable[[], Any]) -> type:
    """A class of ours that judges as the loaded class of evalh does."""
    kind = _load_kind(load)
    return type(kind.__name__, (_Judged,), {"kind": kind, "__doc__": kind.__doc__})


def system_adapter(load: Callable[[], Any]) -> Callable[[Variant], Target]:
    """A target of ours that calls the loaded system adapter of evalh."""
    return partial(_EvalhCase, _load_kind(load))


def enricher(load: Callable[[], Any]) -> Callable[[dict[str, Any]], Enricher]:
    """An enricher of ours that has the loaded one of evalh complete the trace."""
    return partial(_CompletingEnricher, _load_kind(load))


def _load_kind(load: Callable[[], Any]) -> Any:
    stand_in_where_missing()
    return load()


def _records() -> Any:
    return import_module("eval_harness.core.models")


def _create(kind: Any, **config: Any) -> Any:
    """An object of a plug-in's class. Raises InputError with its complaint about the configuration."""
    try:
        return kind(**config)
    except Exception as error:
        raise InputError(Problem("", _message_of(error))) from error


def _message_of(error: Exception) -> str:
    known = type(error).__name__ == "ConfigError" or isinstance(error, ValueError | TypeError)
    return str(error) if known and str(error) else f"{type(error).__name__}: {error}"


def _evalh_record(kind: type[BaseModel], data: Mapping[str, Any], what: str) -> Any:
    """A record of evalh. Raises ValueError if ours holds something that evalh's cannot."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        places = [
            f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}" for mistake in error.errors(include_url=False)
        ]
        raise ValueError(f"evalh has no such {what}: {'; '.join(places)}") from error


def _case(case: Case) -> Any:
    return _evalh_record(_records().EvalCase, case.argument(), "case")


def _trace(trace: Trace) -> Any:
    data = msgspec.to_builtins(trace)
    return _evalh_record(_records().Trace, {**data, "latency_ms": trace.latency_ms or 0}, "trace")


def _parts(trace: Any) -> dict[str, Any]:
    data: dict[str, Any] = trace.model_dump(mode="json", include=set(_PARTS))
    return data


class _Judged:
    kind: ClassVar[Any]
    uses_artifact = True

    def __init__(self, **config: Any) -> None:
        try:
            self.kind.validate_config(config)
        except Exception as error:
            raise InputError(Problem("", _message_of(error))) from error
        self._evaluator = _create(self.kind, name=self.kind.type or self.kind.__name__, **config)

    async def evaluate(self, case: Case, trace: Trace, artifact: Artifact | None = None) -> Evaluation:
        files = None
        if artifact is not None:
            record = {**msgspec.to_builtins(artifact.record), "artifacts_path": str(artifact.folder)}
            files = _evalh_record(_records().FilesystemArtifact, record, "artifact")
        evaluation = await self._evaluator.evaluate(_case(case), _trace(trace), files)
        detail = to_jsonable_python(evaluation.detail)
        if evaluation.error is not None:
            raise EvaluatorError(evaluation.error.message, evaluation.error.type, detail)
        return Evaluation(passed=evaluation.passed, score=evaluation.score, reason=evaluation.reason, detail=detail)


class _EvalhCase:
    def __init__(self, kind: Any, variant: Variant) -> None:
        self._adapter = _create(kind, name=variant.name, **variant.config)
        self._variant = variant

    async def open(self) -> None:
        self._adapter = await self._adapter.__aenter__()

    async def run(self, case: Case, trial: int) -> Answer:
        records = _records()
        variant = records.RunVariant(
            name=self._variant.name,
            adapter=self._variant.adapter,
            config=msgspec.to_builtins(self._variant.config),
            metadata=msgspec.to_builtins(self._variant.metadata),
        )
        path = workspace_path()
        base = import_module("eval_harness.adapters.workspace.base")
        workspace = None if path is None else base.Workspace(path=path)
        return msgspec.convert(_parts(await self._adapter.run(_case(case), variant, workspace)), Answer)

    async def close(self) -> None:
        await self._adapter.__aexit__(None, None, None)


class _CompletingEnricher:
    def __init__(self, kind: Any, config: dict[str, Any]) -> None:
        self._enricher = _create(kind, **config)

    async def enrich(self, trace: Trace) -> None:
        # evalh opens an enricher once per run; ours have no such moment.
        async with self._enricher as opened:
            parts = _parts(await opened.enrich(_trace(trace)))
        completed = msgspec.convert({**msgspec.to_builtins(trace), **parts}, Trace)
        for part in _PARTS:
            setattr(trace, part, getattr(completed, part))
