"""pixie's result file, `result.json`: the entries of each dataset with their inputs, outputs and scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import InputError
from evalwright.files.durable import make_folder, must_be_writable, replace_lines
from evalwright.formats.pixie import FORMAT
from evalwright.formats.pixie.target import collapsed
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import EvaluationResult, Status
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace
from evalwright.stores.ordered import OrderedCells

__all__ = ["Entry", "PixieResults", "entries_of", "is_pending", "result_lines"]


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


def entries_of(run: RunReader) -> Iterator[Entry]:
    """The finished entries of a stored run of pixie datasets, in the order of the files."""
    with OrderedCells(run) as cells:
        for trace, results, verdict in cells.all([]):
            if verdict is None:
                continue
            # an entry that lacks an input has the row WrapError and no other, all others do not have it
            lacks_input = trace.error is not None and trace.error.type == "wrap_error"
            rows = [row for row in results if lacks_input == (row.evaluator_type == "wrap_check")]
            yield Entry(run.case(trace.case_index or 0), trace, rows, verdict.status)


class PixieResults:
    """pixie's result file at `path`, written whenever a session of the run ends."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._path = Path(config["path"])

    @classmethod
    def of_stored(cls, plan: Plan, folder: Path) -> PixieResults:
        """Raises InputError for a run of another format, whose cases are no entries."""
        if plan.dialect != FORMAT.name:
            raise InputError(f"result.json has entries of {FORMAT.name} datasets: only runs of these do")
        return cls({"path": folder / "result.json"})

    @property
    def places(self) -> tuple[Path, ...]:
        return (self._path,)

    def check(self) -> None:
        """Raises InputError if the file cannot be written."""
        must_be_writable(self._path)

    def write(self, run: RunReader, plan: Plan, summary: RunSummary, mask: Callable[[str], str]) -> None:
        """Raises StorageError."""
        meta = {
            "testId": f"{summary.started_at:%Y%m%d-%H%M%S}",
            "command": f"evalwright run {plan.config_path}",
            "startedAt": summary.started_at.isoformat(),
            "endedAt": summary.finished_at.isoformat(),
        }
        datasets = groupby(entries_of(run), key=lambda entry: str(entry.case.extra.get("dataset", plan.name)))
        make_folder(self._path.parent)
        replace_lines(
            self._path, (mask(text).encode("utf-8", "backslashreplace") for text in result_lines(meta, datasets))
        )

    def losses(self, plan: Plan, summary: RunSummary) -> Iterator[str]:
        """pixie runs each entry once."""
        if plan.run.trials > 1:
            yield f"{plan.run.trials} trials: each entry is in the file as many times, without a number"


def result_lines(meta: Mapping[str, Any], datasets: Iterable[tuple[str, Iterable[Entry]]]) -> Iterator[str]:
    """The text of a result file, an entry at a time."""
    yield f'{{\n  "meta": {_indented(meta, 2)},\n  "datasets": ['
    comma = ""
    for name, entries in datasets:
        yield f'{comma}\n    {{\n      "dataset": {_indented(name, 6)},\n      "entries": ['
        inner = ""
        for entry in entries:
            yield f"{inner}\n        {_indented(_exported(entry), 8)}"
            inner = ","
        yield "\n      ]\n    }"
        comma = ","
    yield "\n  ]\n}"


def _indented(value: Any, columns: int) -> str:
    """JSON whose later lines are moved to the right; none of its texts contains a line end."""
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + " " * columns)


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
