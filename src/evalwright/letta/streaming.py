"""Reads result folders back, like `letta_evals.streaming`: the original's, and those that `--output` wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalwright.formats.letta.surface.results import SampleResult
from evalwright.letta.runner import RunnerResult, as_fields

__all__ = ["StreamingReader"]


class StreamingReader:
    @staticmethod
    async def to_runner_result(path: Path | str) -> RunnerResult:
        """The contents of a folder."""
        folder = Path(path)
        newer = (folder / "suite.json").is_file()
        return await asyncio.to_thread(_newer if newer else _older, folder)


def _older(folder: Path) -> RunnerResult:
    header, summary = _json(folder / "header.json"), _json(folder / "summary.json")
    rows = [as_fields(row["result"]) for row in _lines(folder / "results.jsonl")]
    metrics = as_fields(summary["metrics"])
    return RunnerResult(header["suite"], header["config"], rows, metrics, bool(summary.get("gates_passed")))


def _newer(folder: Path) -> RunnerResult:
    """That of suites with a reward: a file for each model, and for each of its runs if it has several."""
    suite, summary = _json(folder / "suite.json"), as_fields(_json(folder / "summary.json"))
    samples = {str(sample["id"]): sample for sample in suite["samples"]}
    files = sorted(folder.glob("*.jsonl")) or sorted(folder.glob("*/run_*.jsonl"))
    rows: list[Any] = [
        SampleResult.model_validate({**row, "sample": samples.get(str(row["sample_id"]))})
        for file in files
        for row in _lines(file)
    ]
    return RunnerResult(suite["suite"], suite["config"], rows, summary, True)  # a reward has no gate to fail


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
