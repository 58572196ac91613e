"""What a run of pixie datasets leaves in the configured root: `result.json` and scorecards, as in the original."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from evalwright.files.durable import replace_lines
from evalwright.formats.pixie.result_file import Entry, result_lines
from evalwright.formats.pixie.surface.config import get_config
from evalwright.formats.pixie.surface.evaluation import Evaluation
from evalwright.formats.pixie.surface.scorecard import DatasetEntryResult, DatasetScorecard, save_dataset_scorecard
from evalwright.model.result import EvaluationResult

__all__ = ["save_results", "save_scorecard"]


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
    meta = {"testId": made, "command": command, **times}
    path = folder / made / "result.json"
    replace_lines(path, (text.encode("utf-8", "backslashreplace") for text in result_lines(meta, datasets)))
    return path


def save_scorecard(name: str, entries: list[Entry], command: str, started: datetime) -> Path:
    """Write the page of one dataset and return its path."""
    return Path(
        save_dataset_scorecard(DatasetScorecard(name, [_scorecard_entry(entry) for entry in entries], started), command)
    )


def _scorecard_entry(entry: Entry) -> DatasetEntryResult:
    extra = entry.case.extra
    values = {"input": entry.input, "actual": entry.output}
    if "expectation" in extra:
        values["expected"] = extra["expectation"]
    if extra.get("eval_metadata") is not None:
        values["metadata"] = extra["eval_metadata"]
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
