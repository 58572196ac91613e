"""Running datasets of instrumented applications one after another, printed and exported as the original does."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.cli.screen import say
from evalwright.dialects import load_suite
from evalwright.errors import InputError
from evalwright.files.durable import replace_file
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.pixie.config import get_config
from evalwright.reports.text import harmless
from evalwright.run.api import RunOptions, open_run, run_suite

__all__ = ["run_files"]

_WIDEST = 80
_PASSES = 0.5


class _Entry(NamedTuple):
    case: Case
    trace: Trace
    results: list[EvaluationResult]
    passed: bool


def run_files(files: Sequence[Path], *, verbose: bool, command: str) -> int:
    """Run each dataset and write `result.json`; 0 when every entry of every one passed, else 1."""
    started = datetime.now(UTC)
    sound, datasets = True, []
    for file in files:
        try:
            name, entries = _ran(file)
        except InputError as error:
            sound = False
            say(["", f"{file}: the dataset cannot be used"])
            say([harmless(f"  - {problem.message}") for problem in error.problems])
            continue
        passed = sum(entry.passed for entry in entries)
        say(["", f" {harmless(name)} ".center(120, "=")])
        say([line for n, entry in enumerate(entries, 1) for line in _lines(n, entry, verbose)])
        say([f"  {passed}/{len(entries)} passed"])
        sound = sound and passed == len(entries)
        datasets.append({"dataset": name, "entries": [_exported(entry) for entry in entries]})
    if datasets:
        say(["", f"Results saved to {_saved(datasets, command, started)}"])
    return 0 if sound else 1


def _ran(file: Path) -> tuple[str, list[_Entry]]:
    config = get_config()
    suite = load_suite(file, "pixie")
    outcome = run_suite(suite, RunOptions(Path(config.root) / "runs", concurrency=config.runnable_concurrency))
    reader, _ = open_run(outcome.run_dir)
    with closing(reader):
        traces = {trace.case_id: trace for trace in reader.traces(Trace)}
        verdicts = {verdict.case_id: verdict for verdict in reader.verdicts(CaseVerdict)}
        results: dict[str, list[EvaluationResult]] = defaultdict(list)
        for row in reader.results(EvaluationResult):
            if not (row.skipped and row.evaluator_type == "wrap_check"):
                results[row.case_id].append(row)
        entries = [
            _Entry(case, traces[case.id], results[case.id], verdicts[case.id].status == "pass")
            for case in reader.cases()
            if case.id in verdicts
        ]
    return suite.name, entries


def _lines(number: int, entry: _Entry, verbose: bool) -> Iterator[str]:
    title = entry.case.description or entry.case.id
    title = title if len(title) <= _WIDEST else title[:_WIDEST] + "…"
    labels = ", ".join(row.evaluator for row in entry.results)
    scores = ", ".join("error" if row.error else _number(row.score) for row in entry.results)
    yield harmless(f"  [{number}] {title} ({labels}) [{scores}] {'✓' if entry.passed else '✗'}")
    for row in entry.results if verbose else ():
        if row.error is not None:
            yield harmless(f"      {row.evaluator}: {row.error.type}: {row.error.message}")
        elif row.score is not None and row.score < _PASSES:
            yield harmless(f"      {row.evaluator}: {row.reason}")


def _number(score: float | None) -> str:
    return "-" if score is None else f"{score:.2f}"


def _exported(entry: _Entry) -> dict[str, Any]:
    observed = entry.trace.extra.get("observed") or {}
    exported: dict[str, Any] = {
        "input": observed.get("input"),
        "output": observed.get("output"),
        "evaluations": [
            {
                "evaluator": row.evaluator,
                "score": row.score,
                "reasoning": row.reason if row.error is None else row.error.message,
            }
            for row in entry.results
        ],
    }
    if entry.case.extra.get("expectation") is not None:
        exported["expectedOutput"] = entry.case.extra["expectation"]
    if entry.case.description is not None:
        exported["description"] = entry.case.description
    return exported


def _saved(datasets: list[dict[str, Any]], command: str, started: datetime) -> Path:
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
    document = {"meta": {"testId": made, "command": command, **times}, "datasets": datasets}
    path = folder / made / "result.json"
    replace_file(path, json.dumps(document, indent=2, ensure_ascii=False).encode())
    return path
