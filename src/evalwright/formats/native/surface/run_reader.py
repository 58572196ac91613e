"""`eval_harness.core.run_reader`: a run folder, or a run in a store, as records of evalh."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evalwright.formats.native.surface.bases import ConfigError, TraceStore
from evalwright.formats.native.surface.records import EvaluationResult, RunSummary, Trace
from evalwright.formats.native.surface.settings import mapping_in

__all__ = ["RunReader"]

Record = TypeVar("Record", bound=BaseModel)

_CONFIG = "config.yaml"
_FILES = (_CONFIG, "traces.jsonl", "results.jsonl", "summary.yaml")


class RunReader:
    """Raises ConfigError for a folder that lacks a file, and for data that fits none of the records."""

    def __init__(self, run_dir: Path, *, store: TraceStore | None = None, run_id: str | None = None) -> None:
        """With a `store`, the folder holds only the configuration."""
        self.run_dir: Path = Path(run_dir)
        self._store = store
        self._run_id = self.run_dir.name if run_id is None else run_id
        if not self.run_dir.is_dir():
            raise ConfigError(f"there is no run folder {self.run_dir}")
        for name in _FILES if store is None else (_CONFIG,):
            if not (self.run_dir / name).is_file():
                raise ConfigError(f"the run folder {self.run_dir} has no {name}")

    async def load_summary(self) -> RunSummary:
        if self._store is None:
            return _record(
                RunSummary, await asyncio.to_thread(mapping_in, self.run_dir / "summary.yaml"), "summary.yaml"
            )
        summary = await self._store.load_summary(self._run_id)
        if summary is None:
            raise ConfigError(f"the store has no summary of the run {self._run_id!r}")
        return summary

    async def load_config(self) -> dict[str, Any]:
        return await asyncio.to_thread(mapping_in, self.run_dir / _CONFIG)

    def iter_traces(self) -> AsyncIterator[Trace]:
        if self._store is None:
            return _records(Trace, self.run_dir / "traces.jsonl")
        return self._store.iter_traces(run_id=self._run_id)

    def iter_results(self) -> AsyncIterator[EvaluationResult]:
        if self._store is None:
            return _records(EvaluationResult, self.run_dir / "results.jsonl")
        return self._store.iter_results(run_id=self._run_id)

    async def get_trace(self, case_id: str, variant_name: str) -> Trace | None:
        """The newest one of the cell, which replaces those of earlier attempts."""
        newest = None
        async for trace in self.iter_traces():
            if (trace.case_id, trace.variant_name) == (case_id, variant_name):
                newest = trace
        return newest

    async def get_results(self, case_id: str, variant_name: str) -> list[EvaluationResult]:
        """The newest one of each evaluator."""
        cell = (case_id, variant_name)
        results = {
            result.evaluator: result
            async for result in self.iter_results()
            if (result.case_id, result.variant_name) == cell
        }
        return [*results.values()]

    async def list_case_ids(self) -> list[str]:
        """In the order of the traces."""
        return [*dict.fromkeys([trace.case_id async for trace in self.iter_traces()])]

    async def list_variant_names(self) -> list[str]:
        """In the order of the traces."""
        return [*dict.fromkeys([trace.variant_name async for trace in self.iter_traces()])]


async def _records(kind: type[Record], path: Path) -> AsyncIterator[Record]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield kind.model_validate(_with_zeros(json.loads(line), nested=False))
                except ValueError as error:  # also pydantic's
                    raise ConfigError(f"{path.name}:{number}: {error}") from error


_MEASURED = frozenset({"avg_latency_delta_ms", "avg_latency_ms", "latency_ms", "pass_rate", "pass_rate_delta"})
"""Numbers that evalh's records always have: 0 where nothing was measured, for which our files have null."""


def _with_zeros(data: Any, *, nested: bool) -> Any:
    """A record with evalh's zeros; in a trace or result only its own numbers, as the rest is a user's."""
    if isinstance(data, dict):
        inner = {key: _with_zeros(value, nested=True) if nested else value for key, value in data.items()}
        return {key: 0 if value is None and key in _MEASURED else value for key, value in inner.items()}
    return [_with_zeros(item, nested=True) for item in data] if nested and isinstance(data, list) else data


def _record(kind: type[Record], data: dict[str, Any], place: str) -> Record:
    try:
        return kind.model_validate(_with_zeros(data, nested=True))
    except ValidationError as error:
        raise ConfigError(f"{place}: {error}") from error
