"""What a run of pixie datasets leaves in the configured root: `result.json` and scorecards, as in the original."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.files.durable import replace_file
from evalwright.formats.pixie.surface.config import get_config
from evalwright.formats.pixie.surface.evaluation import Evaluation
from evalwright.formats.pixie.surface.scorecard import DatasetEntryResult, DatasetScorecard, save_dataset_scorecard
from evalwright.formats.pixie.target import collapsed
from evalwright.model.result import EvaluationResult, Status
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["Entry", "is_pending", "save_results", "save_scorecard"]


class Entry(NamedTuple):
    """One entry of a dataset and its outcome."""

    case: Case
    trace: Trace
    results: list[EvaluationResult]
    status: Status

    @property
    def pending(self) -> bool:
        """Whether nothing failed and a score is still missing."""
        return self.status in ("pass", "skip") and any(is_pending(row) for row in self.results)

    @property
    def passed(self) -> bool:
        return self.status == "pass" and not self.pending

    @property
    def input(self) -> Any:
        """What the entry gives to the application, collapsed."""
        return collapsed(self.case.extra["eval_input"])

    @property
    def output(self) -> Any:
        """The captured output, collapsed."""
        return (self.trace.extra.get("observed") or {}).get("output")


def is_pending(row: EvaluationResult) -> bool:
    """Whether an evaluator left its score to a person or another program."""
    return row.skipped and bool(row.detail.get("pending"))


def save_results(datasets: list[tuple[str, list[Entry]]], command: str, started: datetime) -> Path:
    """Write `results/<id>/result.json` and return its path. The id is the time, with a suffix if that is taken."""
    folder = Path(get_config().root) / "results"
    folder.mkdir(parents=True, exist_ok=True)
    name = made = f"{started:%Y%m%d-%H%M%S}"
    number = 1
    while True:
        try:
            (folder / made).mkdir()
            break
        except FileExistsError:
            number += 1
            made = f"{name}-{number}"
    times = {"startedAt": started.isoformat(), "endedAt": datetime.now(UTC).isoformat()}
    exported = [{"dataset": name, "entries": [_exported(entry) for entry in entries]} for name, entries in datasets]
    document = {"meta": {"testId": made, "command": command, **times}, "datasets": exported}
    path = folder / made / "result.json"
    replace_file(path, json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace"))
    return path


def _exported(entry: Entry) -> dict[str, Any]:
    exported: dict[str, Any] = {
        "input": entry.input,
        "output": entry.output,
        "evaluations": [
            {
                "evaluator": row.evaluator,
                "score": row.score,
                "reasoning": row.reason if row.error is None else row.error.message,
                **({"status": "pending"} if is_pending(row) else {}),
            }
            for row in entry.results
        ],
    }
    if entry.case.extra.get("expectation") is not None:
        exported["expectedOutput"] = entry.case.extra["expectation"]
    if entry.case.description is not None:
        exported["description"] = entry.case.description
    return exported


def save_scorecard(name: str, entries: list[Entry], command: str, started: datetime) -> Path:
    """Write the page of one dataset and return its path."""
    return Path(save_dataset_scorecard(DatasetScorecard(name, [_shown(entry) for entry in entries], started), command))


def _shown(entry: Entry) -> DatasetEntryResult:
    given = entry.case.extra
    values = {"input": entry.input, "actual": entry.output}
    if "expectation" in given:
        values["expected"] = given["expectation"]
    if given.get("eval_metadata") is not None:
        values["metadata"] = given["eval_metadata"]
    return DatasetEntryResult(
        evaluator_names=tuple(row.evaluator for row in entry.results),
        evaluations=tuple(_evaluation(row) for row in entry.results),
        input_label=entry.case.description or entry.case.id,
        evaluable_dict=values,
    )


def _evaluation(row: EvaluationResult) -> Evaluation:
    if row.error is not None:
        return Evaluation(0.0, row.error.message, {"traceback": row.error.stack, **row.detail, "error": row.error.type})
    if row.skipped:
        return Evaluation(0.0, row.reason, {**row.detail, "skipped": True})
    return Evaluation(row.score or 0.0, row.reason, row.detail)
