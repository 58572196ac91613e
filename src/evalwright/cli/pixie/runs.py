"""Running datasets of instrumented applications one after another, printed and exported as the original does."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.cli.pixie.results import save_results, save_scorecard
from evalwright.cli.screen import print_out, warn
from evalwright.errors import EvalwrightError, InputError, Problem
from evalwright.formats.loading import load_suite
from evalwright.formats.pixie import FORMAT
from evalwright.formats.pixie.result_file import Entry, entries_of, is_pending
from evalwright.formats.pixie.surface.config import get_config
from evalwright.model.result import EvaluationResult
from evalwright.reports.text import harmless, one_line
from evalwright.run.cells import RunState
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.run.used_files import doubled_keys

__all__ = ["run_files"]

_WIDEST = 80
_PASSES = 0.5


class _FinishedRun(NamedTuple):
    name: str
    entries: list[Entry]
    interrupted: bool

    @property
    def passed(self) -> int:
        return sum(entry.passed for entry in self.entries)

    @property
    def pending(self) -> int:
        return sum(entry.pending for entry in self.entries)


def run_files(files: Sequence[Path], *, verbose: bool, command: str, shown: bool, options: Mapping[str, Any]) -> int:
    """Run each dataset and write its results.

    Returns 0 if every entry of every dataset passed or is pending, 130 if interrupted, else 1. With `shown` the
    scorecard of a single dataset is opened in the browser. `options` are those of the format.
    """
    started = datetime.now(UTC)
    datasets: list[_FinishedRun] = []
    for file in files:
        try:
            ran = _ran(file, options)
        except EvalwrightError as error:
            print_out(["", f"{file}: the dataset cannot be used"])
            problems = error.problems if isinstance(error, InputError) else ()
            messages = [problem.message for problem in problems] or [str(error)]
            print_out([harmless(f"  - {message}") for message in messages])
            continue
        print_out(["", f" {harmless(ran.name)} ".center(120, "=")])
        first_of: dict[str, int] = {}
        print_out([line for n, entry in enumerate(ran.entries, 1) for line in _lines(n, entry, verbose, first_of)])
        left = f", {ran.pending} pending" if ran.pending else ""
        print_out([f"  {ran.passed}/{len(ran.entries)} passed{left}"])
        datasets.append(ran)
        if ran.interrupted:
            break
    if datasets:
        _save(datasets, command, started, shown=shown)
    if datasets and datasets[-1].interrupted:
        return 130
    sound = all(ran.passed + ran.pending == len(ran.entries) for ran in datasets)
    return 0 if sound and len(datasets) == len(files) else 1


def _save(datasets: list[_FinishedRun], command: str, started: datetime, *, shown: bool) -> None:
    pages = [save_scorecard(ran.name, ran.entries, command, started) for ran in datasets]
    print_out(["", *(f"Scorecard saved to {page}" for page in pages)])
    print_out([f"Results saved to {save_results([(ran.name, ran.entries) for ran in datasets], command, started)}"])
    if shown and len(pages) == 1:
        webbrowser.open(pages[0].as_uri())


def _ran(file: Path, options: Mapping[str, Any]) -> _FinishedRun:
    suite = load_suite(file, FORMAT.name, options=options)
    warn([*suite.warnings, *doubled_keys(suite), *([] if suite.cases else [Problem(str(file), "has no cases")])])
    states: list[RunState] = []

    @contextmanager
    def watch(state: RunState) -> Iterator[None]:
        states.append(state)
        yield

    outcome = run_suite(suite, RunOptions(out=Path(get_config().root) / "runs", allow_empty=True), watch)
    reader, _ = open_run(outcome.address)
    with closing(reader):
        entries = [*entries_of(reader)]
    return _FinishedRun(suite.name, entries, any(state.stopping for state in states))


def _lines(number: int, entry: Entry, verbose: bool, first_of: dict[str, int]) -> Iterator[str]:
    """The line of an entry, and why it has no score. `first_of` has the first entry of each cause so far."""
    title = entry.case.description or entry.case.id
    title = title if len(title) <= _WIDEST else title[:_WIDEST] + "…"
    labels = ", ".join(row.evaluator for row in entry.results)
    scores = ", ".join(_score(row) for row in entry.results)
    yield harmless(f"  [{number}] {title} ({labels}) [{scores}] {_mark(entry)}")
    yield from _causes(number, entry, first_of)
    for row in entry.results if verbose else ():
        if row.error is None and row.score is not None and row.score < _PASSES:
            yield f"      {one_line(f'{row.evaluator}: {row.reason}')}"


def _causes(number: int, entry: Entry, first_of: dict[str, int]) -> Iterator[str]:
    """Why there is no score; each cause in full where it first occurs."""
    failure = entry.trace.error
    causes: dict[str, list[str]] = {}
    if failure is not None and failure.type != "wrap_error":
        causes[failure.message] = ["no output"]
    for row in entry.results:
        if row.error is not None and (failure is None or row.error.type != "no_output"):
            causes.setdefault(f"{row.error.type}: {row.error.message}", []).append(row.evaluator)
    for cause, named in causes.items():
        first = first_of.setdefault(cause, number)
        why = cause if first == number else f"as [{first}]"
        yield "      " + one_line(f"{', '.join(named)}: {why}")


def _mark(entry: Entry) -> str:
    if entry.pending:
        return "…"
    return "✓" if entry.passed else "✗"


def _score(row: EvaluationResult) -> str:
    if row.error is not None:
        return "error"
    if is_pending(row):
        return "pending"
    return "-" if row.score is None else f"{row.score:.2f}"
