"""The results of `pixie test` as records, and the files that contain them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.files.durable import replace_file
from evalwright.formats.pixie.surface.config import get_config

__all__ = [
    "DatasetResult",
    "EntryResult",
    "EvaluationResult",
    "RunResult",
    "generate_test_id",
    "load_test_result",
    "save_test_result",
]


def generate_test_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}"


@dataclass(frozen=True)
class EvaluationResult:
    evaluator: str
    score: float
    reasoning: str


@dataclass(frozen=True)
class EntryResult:
    input: Any
    output: Any
    expected_output: Any
    description: str | None
    evaluations: list[EvaluationResult]


@dataclass
class DatasetResult:
    dataset: str
    entries: list[EntryResult]
    analysis: str | None = None
    """What `pixie analyze` wrote, in Markdown."""


@dataclass
class RunResult:
    test_id: str
    command: str
    started_at: str
    ended_at: str
    datasets: list[DatasetResult] = field(default_factory=list)


def save_test_result(result: RunResult) -> str:
    """Write `results/<test_id>/result.json` below the configured root; returns its absolute path."""
    path = _folder(result.test_id) / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    meta = {
        "testId": result.test_id,
        "command": result.command,
        "startedAt": result.started_at,
        "endedAt": result.ended_at,
    }
    datasets = [
        {"dataset": dataset.dataset, "entries": [*map(_plain_entry, dataset.entries)]} for dataset in result.datasets
    ]
    text = json.dumps({"meta": meta, "datasets": datasets}, indent=2, ensure_ascii=False)
    replace_file(path, text.encode("utf-8", "backslashreplace"))
    return str(path.resolve())


def load_test_result(test_id: str) -> RunResult:
    """The results of a run by its id. Raises FileNotFoundError, and KeyError if the file is not a result file."""
    folder = _folder(test_id)
    data = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    meta = data["meta"]
    datasets = [
        DatasetResult(dataset["dataset"], [*map(_entry, dataset["entries"])], _analysis(folder / f"dataset-{i}.md"))
        for i, dataset in enumerate(data["datasets"])
    ]
    return RunResult(meta["testId"], meta["command"], meta["startedAt"], meta["endedAt"], datasets)


def _folder(test_id: str) -> Path:
    return Path(get_config().root) / "results" / test_id


def _plain_entry(entry: EntryResult) -> dict[str, Any]:
    optional = {"expectedOutput": entry.expected_output, "description": entry.description}
    evaluations = [vars(evaluation) for evaluation in entry.evaluations]
    return {
        "input": entry.input,
        "output": entry.output,
        "evaluations": evaluations,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _entry(data: dict[str, Any]) -> EntryResult:
    evaluations = [
        EvaluationResult(evaluation["evaluator"], evaluation["score"], evaluation["reasoning"])
        for evaluation in data["evaluations"]
    ]
    return EntryResult(data["input"], data["output"], data.get("expectedOutput"), data.get("description"), evaluations)


def _analysis(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
