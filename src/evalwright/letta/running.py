"""Running a suite from Python, as `letta_evals.run_suite` does (specification letta, 8.5)."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.dialects import load_suite
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.api import Outcome, RunOptions, open_run
from evalwright.run.api import run_suite as run

__all__ = ["RunnerResult", "run_suite"]


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


async def run_suite(
    suite_path: Path | str,
    max_concurrent: int = 15,
    *,
    cached_results_path: Path | None = None,
    output_path: Path | None = None,
    num_runs: int | None = None,
    target: str | None = None,
    **_letta: Any,
) -> RunnerResult:
    """Run a suite and give back its results; with `output_path` they lie there too, in the original's files.

    Addresses and keys of a Letta server are accepted and not needed; progress callbacks are not called. Raises
    InputError, and ValueError for a progress callback beside a style.
    """
    if _letta.get("custom_progress_callback") is not None and _letta.get("progress_style", "none") != "none":
        raise ValueError("expected a progress callback or a progress style, found both")
    return await asyncio.to_thread(_run, suite_path, max_concurrent, cached_results_path, output_path, num_runs, target)


def _run(
    path: Path | str, width: int, cached: Path | None, out: Path | None, runs: int | None, target: str | None
) -> RunnerResult:
    suite = load_suite(Path(path), "letta", options={"cached": cached, "target": target, "output": out})
    outcome = run(suite, RunOptions(trials=runs, concurrency=width))
    return _result(suite.name, suite.document, outcome)


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
