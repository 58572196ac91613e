"""Mirrors that lag behind, that fail, and that missed what a killed session stored."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalwright import built_in
from evalwright.model.plan import Plugin
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import suite

release = threading.Event()


class Slow:
    """Processes nothing before `release`, or before the run says goodbye."""

    def __init__(self, config: dict[str, object]) -> None:
        self.cells: list[str] = []
        self.closed = threading.Event()
        made.append(self)

    def trace(self, trace, results, verdict) -> None:
        release.wait(60)
        self.cells.append(trace.case_id)

    def summary(self, summary) -> None:
        self.cells.append("summary")

    def close(self) -> None:
        self.closed.set()


made: list[Slow] = []


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(built_in.KINDS["mirrors"], "slow", f"{__name__}:Slow")
    monkeypatch.setattr("evalwright.run.steps.mirror._MOST_WAITING", 3)
    made.clear()
    release.clear()
    yield
    release.set()


def test_a_mirror_that_stays_behind_loses_cells_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.run.steps.mirror._PATIENCE", 0.1)
    monkeypatch.setattr("evalwright.run.steps.mirror._FAREWELL", 0.1)
    mirrored = suite(tmp_path, ["done"] * 8, max_concurrency=1)
    mirrored.mirrors = [Plugin("slow", {})]
    outcome = run_suite(mirrored)
    assert outcome.exit_code == 0
    errors = [(error["error"], error.get("count")) for error in outcome.summary.sink_errors]
    assert errors == [("too slow: cells were left out", 4), ("not done 0.1 seconds after the end of the run", None)]
    release.set()
    assert made[0].closed.wait(60)
    assert made[0].cells == ["c0", "c1", "c2", "c3", "summary"], "one at work, and as many as may wait"


def test_a_mirror_that_catches_up_hears_of_every_cell(tmp_path):
    threading.Timer(0.2, release.set).start()
    mirrored = suite(tmp_path, ["done"] * 8, max_concurrency=1)
    mirrored.mirrors = [Plugin("slow", {})]
    outcome = run_suite(mirrored)
    assert made[0].cells == [*(f"c{n}" for n in range(8)), "summary"]
    assert outcome.summary.sink_errors == []


class Fails(Slow):
    """Raises whenever it is told of a cell."""

    def trace(self, trace, results, verdict) -> None:
        self.cells += [trace.output.final_answer, *(str(result.detail) for result in results)]
        raise ValueError(f"no place for {SECRET}")


SECRET = "sesame-canary-77"


def test_mirrors_hear_no_secret_and_what_they_raise_is_counted_without_it(tmp_path, monkeypatch):
    monkeypatch.setitem(built_in.KINDS["mirrors"], "fails", f"{__name__}:Fails")
    mirrored = suite(tmp_path, [SECRET, f"Bearer {SECRET}"], max_concurrency=1)
    mirrored.mirrors, mirrored.secrets = [Plugin("fails", {})], {"KEY": SECRET}
    outcome = run_suite(mirrored)
    assert made[0].cells[0:4:2] == ["***MASKED***", "Bearer ***MASKED***"]
    [error] = outcome.summary.sink_errors
    assert (error["op"], error["error"], error["count"]) == ("save_trace", "ValueError: no place for ***MASKED***", 2)


def records(run: Path) -> dict[str, list[Any]]:
    """What readers of a run find in it, in any order."""
    reader, _ = open_run(run)
    with closing(reader):
        return {
            "traces": sorted((t.case_id, t.output.final_answer) for t in reader.traces(Trace)),
            "results": sorted((r.case_id, r.evaluator, r.score) for r in reader.results(EvaluationResult)),
            "verdicts": sorted((v.case_id, v.status) for v in reader.verdicts(CaseVerdict)),
        }


@pytest.mark.parametrize("kind", ["local_files", "sqlite"])
def test_a_copy_gets_what_a_killed_session_had_stored_and_not_sent(tmp_path, kind):
    mirrored = suite(tmp_path, ["done", "no", "done", "no"], max_concurrency=1)
    mirrored.mirrors = [Plugin(kind, {"path": str(tmp_path / "copy")})]
    run = Path(run_suite(mirrored).run_dir)
    whole, copy = records(run), tmp_path / "copy" / run.name
    assert records(copy) == whole

    # as after a kill: the last cell has no verdict, and of the others one has reached the copy
    file = run / "verdicts.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    if kind == "local_files":
        for name in ("traces", "results", "verdicts"):
            file = copy / f"{name}.jsonl"
            file.write_text(file.read_text().splitlines(keepends=True)[0])
    else:
        with closing(sqlite3.connect(tmp_path / "copy", isolation_level=None)) as database:
            for name in ("traces", "results", "verdicts"):
                database.execute(f"DELETE FROM {name} WHERE case_id <> 'c0'")
    assert len(records(copy)["verdicts"]) == 1

    outcome = resume(run)
    assert outcome.summary.sink_errors == []
    assert records(run) == whole
    assert records(copy) == whole
    assert "mirrors were not updated: they keep the earlier results" in re_evaluate(run, suite=mirrored).notes
