"""Running a suite from Python, as `letta_evals.run_suite` does (specification letta, 8.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.dialects import load_suite
from evalwright.dialects.letta import Letta
from evalwright.files import yaml
from evalwright.letta.progress import LISTENER, Listener, ProgressStyle
from evalwright.model.plan import Plugin
from evalwright.model.result import EvaluationResult
from evalwright.model.suite import Suite
from evalwright.model.trace import Trace
from evalwright.run.api import Outcome, RunOptions, open_run
from evalwright.run.api import run_suite as run

__all__ = ["Runner", "RunnerResult", "SuiteSpec", "run_suite"]


@dataclass
class RunnerResult:
    """What came of a suite: `metrics` and `run_statistics` are those of the original's files."""

    suite: str
    config: dict[str, Any]
    results: list[dict[str, Any]]
    metrics: dict[str, Any]
    gates_passed: bool
    run_statistics: dict[str, Any] | None = None
    run_dir: Path = field(default_factory=Path)


class SuiteSpec:
    """A suite as data, with the keys of its file as attributes. Its paths start from `base_dir`."""

    def __init__(self, data: Mapping[str, Any], base_dir: Path | str | None = None) -> None:
        self._data, self._file = dict(data), Path(base_dir or ".") / "suite.yaml"

    @classmethod
    def from_yaml(cls, yaml_data: Mapping[str, Any], base_dir: Path | str | None = None) -> SuiteSpec:
        """What a suite's file holds. It is checked when it is run."""
        return cls(yaml_data, base_dir)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._data.get(name)

    def load(self, **options: Any) -> Suite:
        """Raises InputError for a suite that cannot be run."""
        document = yaml.parse(yaml.dump(self._data).encode(), str(self._file), "native")
        return Letta().read(self._file, document, {}, **options)


class Runner:
    """Runs a suite that was put together in Python."""

    def __init__(
        self,
        suite: SuiteSpec,
        max_concurrent: int = 15,
        progress_callback: Any = None,
        *,
        output_path: Path | None = None,
        target: str | None = None,
        **_letta: Any,
    ) -> None:
        """Raises ValueError for results in memory that are to be judged again: `run_suite` reads those of a folder."""
        if _letta.get("cached_results") is not None:
            raise ValueError("cached_results: expected None; run_suite(..., cached_results_path=DIR) replays results")
        self._suite, self._width, self._callback = suite, max_concurrent, progress_callback
        self._options = {"output": output_path, "target": target}

    async def run(self) -> RunnerResult:
        return await _listened_to(
            self._callback, lambda: self._suite.load(**self._options), RunOptions(concurrency=self._width)
        )


async def run_suite(
    suite_path: Path | str,
    max_concurrent: int = 15,
    *,
    custom_progress_callback: Any = None,
    progress_style: Any = "none",
    cached_results_path: Path | None = None,
    output_path: Path | None = None,
    num_runs: int | None = None,
    target: str | None = None,
    **_letta: Any,
) -> RunnerResult:
    """Run a suite and give back its results; with `output_path` they lie there too, in the original's files.

    A progress callback is told in the caller's event loop. Addresses and keys of a Letta server are accepted and not
    needed. Raises InputError, ValueError for a progress callback beside a style, and what a callback raises.
    """
    if custom_progress_callback is not None and ProgressStyle(progress_style) is not ProgressStyle.NONE:
        raise ValueError("expected a progress callback or a progress style, found both")
    given = {"cached": cached_results_path, "target": target, "output": output_path}
    options = RunOptions(trials=num_runs, concurrency=max_concurrent)
    return await _listened_to(
        custom_progress_callback, lambda: load_suite(Path(suite_path), "letta", options=given), options
    )


async def _listened_to(callback: Any, load: Callable[[], Suite], options: RunOptions) -> RunnerResult:
    if callback is None:
        return await asyncio.to_thread(_run, load, options)
    listener = Listener(callback)
    token = LISTENER.set(listener)
    listener.tell("start")
    listening = asyncio.create_task(listener.work())
    try:
        result = await asyncio.to_thread(_run, load, options)
        listener.tell("suite_completed", result)
        return result
    finally:
        LISTENER.reset(token)
        listener.tell("stop")
        listener.end()
        await listening


def _run(load: Callable[[], Suite], options: RunOptions) -> RunnerResult:
    suite = load()
    if LISTENER.get() is not None:
        suite.mirrors = [*suite.mirrors, Plugin("letta_progress", {})]
    return _result(suite.name, suite.document, run(suite, options))


def _result(name: str, config: dict[str, Any], outcome: Outcome) -> RunnerResult:
    native = outcome.summary.native or {}
    gate = outcome.summary.gate
    statistics = native.get("statistics")
    metrics = native.get(f"run_{statistics['num_runs']}", native) if statistics else native
    passed = gate.passed if gate is not None else True
    return RunnerResult(name, config, _rows(outcome), metrics, passed, statistics, outcome.run_dir)


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    """One row a sample: its trajectory and its grades."""
    reader, _ = open_run(outcome.run_dir)
    with closing(reader):
        grades: dict[tuple[str, str, int], dict[str, Any]] = {}
        for row in reader.results(EvaluationResult):
            said = {"score": row.score, "rationale": row.reason, "metadata": row.detail}
            if row.error is not None:
                said["error"] = row.error.message
            grades.setdefault((row.case_id, row.variant_name, row.trial), {})[row.evaluator] = said
        return [
            {
                "sample_id": trace.case_id,
                "model_name": trace.extra.get("model"),
                "run": trace.trial + 1,
                "trajectory": trace.extra.get("turns", []),
                "agent_id": trace.extra.get("agent_id"),
                "error": None if trace.error is None else trace.error.message,
                "grades": grades.get((trace.case_id, trace.variant_name, trace.trial), {}),
            }
            for trace in reader.traces(Trace)
        ]
