"""What a run that goes on has made durable, what a new judgement keeps, and what one error takes along."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from evalwright.model.plan import EvaluatorSpec, PassCriteria, Shard
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import TraceError
from evalwright.run.options import RunOptions
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.run.steps.spoil import SpoilingErrors
from evalwright.run.stored_run import open_run
from evalwright.testing import a_plan, a_result
from run.project import agents
from run.suites import SAYS_DONE, SAYS_LAST, suite

FILES = Path("/proc/self/fd")


@pytest.mark.skipif(not FILES.is_dir(), reason="finds the files of descriptors in /proc")
def test_the_records_of_a_shard_are_durable_before_its_manifest_vouches_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, replace = os.fsync, os.replace
    sizes, durable = dict[str, int](), list[dict[str, int]]()

    def sync(descriptor: int) -> None:
        fsync(descriptor)
        sizes[(FILES / str(descriptor)).resolve().name] = os.fstat(descriptor).st_size

    def rename(source: Any, target: Any, **folders: Any) -> None:
        replace(source, target, **folders)
        if Path(target).name == "manifest.json":
            durable.append({**sizes})

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    folder = run_suite(suite(tmp_path, ["done"] * 4), RunOptions(shard=Shard(1, 2), out=tmp_path / "out")).run_dir
    records = [f"{kind}.jsonl" for kind in ("cases", "traces", "results", "verdicts")]
    [before] = durable
    assert {name: before.get(name) for name in records} == {name: (folder / name).stat().st_size for name in records}


@pytest.mark.skipif(not FILES.is_dir(), reason="finds the files of descriptors in /proc")
def test_the_first_cells_are_durable_while_later_ones_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, fsync = threading.Event(), os.fsync
    durable: list[bool] = []

    def sync(descriptor: int) -> None:
        fsync(descriptor)
        if (FILES / str(descriptor)).readlink().name == "verdicts.jsonl":
            synced.set()

    def waiting(case, variant):
        if case["id"] == "c1":
            durable.append(synced.wait(30))
        return {"final_answer": "done"}

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(agents, "waiting", waiting, raising=False)
    run_suite(suite(tmp_path, [1, 2], "run.project.agents:waiting", max_concurrency=1))
    assert durable == [True]


def test_no_more_cells_are_called_while_a_sync_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, begun, many = os.fsync, list[str](), threading.Event()
    called: list[int] = []

    def stuck(descriptor: int) -> None:
        if threading.current_thread() is not threading.main_thread() and not called:
            before = len(begun)
            many.wait(0.4)
            called.append(len(begun) - before)
        fsync(descriptor)

    async def answering(case, variant):
        begun.append(case["id"])
        if len(begun) == 150:
            many.set()
        await asyncio.sleep(0.005)
        return {"final_answer": "done"}

    monkeypatch.setattr("evalwright.run.runner._LATE", 0.0)
    monkeypatch.setattr(os, "fsync", stuck)
    monkeypatch.setattr(agents, "answering", answering, raising=False)
    run_suite(suite(tmp_path, [*range(160)], "run.project.agents:answering", max_concurrency=2))
    assert len(begun) == 160
    assert called[0] <= 2


@pytest.mark.parametrize("kind", ["in a thread", "asynchronous", "slow", "slow at times"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_of_the_cells_that_are_called_no_more_are_unwritten_than_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int, kind: str
) -> None:
    """Those that are written and have no verdict cost no call if the process dies: as many wait, and as many are held
    until the turn of the event loop is over."""
    cells = 8 if kind == "slow" else 40
    begun: list[str] = []
    unwritten: list[int] = []
    unjudged: list[int] = []

    one_looks = threading.Lock()  # else more would be begun between the look at the files and that at `begun`

    def answer(case, variant):
        with one_looks:
            begun.append(case["id"])
            (run,) = tmp_path.glob("runs/*/")
            files = (run / "traces.jsonl", run / "verdicts.jsonl")
            traces, verdicts = (len(file.read_bytes().splitlines()) for file in files)
            unwritten.append(len(begun) - traces)
            unjudged.append(traces - verdicts)
        return {"final_answer": "done"}

    async def answer_later(case, variant):
        answered = answer(case, variant)
        if kind == "slow" or (kind == "slow at times" and len(begun) % 12 == 1):
            await asyncio.sleep(0.06)
        return answered

    monkeypatch.setattr(agents, "answer", answer if kind == "in a thread" else answer_later, raising=False)
    run_suite(suite(tmp_path, [1] * cells, "run.project.agents:answer", max_concurrency=concurrency))
    assert (len(begun), max(unwritten) <= concurrency, max(unjudged) <= 2 * concurrency) == (cells, True, True)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds the files of descriptors in /proc")
@pytest.mark.parametrize("seconds", [0, 0.06])
def test_cells_that_finish_together_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    writes: list[int] = []
    write = os.write
    waiting: list[asyncio.Future[None]] = []

    def noted(descriptor: int, data: bytes) -> int:
        if Path(f"/proc/self/fd/{descriptor}").resolve().name == "verdicts.jsonl":
            writes.append(data.count(b"\n"))
        return write(descriptor, data)

    async def answer(case, variant):
        if len(waiting) < 15:
            waiting.append(asyncio.get_running_loop().create_future())
            await waiting[-1]
        else:
            await asyncio.sleep(seconds)
            while waiting:
                waiting.pop().set_result(None)
        return {"final_answer": "done"}

    monkeypatch.setattr(os, "write", noted)
    monkeypatch.setattr(agents, "answer", answer, raising=False)
    run_suite(suite(tmp_path, [1] * 64, "run.project.agents:answer", max_concurrency=16))
    assert (sum(writes), len(writes) <= 16) == (64, True)


@pytest.mark.parametrize("target", ["sleeping", "sleeping_later"])
def test_an_answer_that_took_its_time_is_written_before_it_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    written: list[bool] = []

    def sleeping(case, variant):
        threading.Event().wait(0.06)
        return {"final_answer": "done"}

    async def sleeping_later(case, variant):
        await asyncio.sleep(0.06)
        return {"final_answer": "done"}

    def checks(case, trace):
        (traces,) = tmp_path.glob("runs/*/traces.jsonl")
        written.append(f'"{case.id}"' in traces.read_text())
        return True

    monkeypatch.setattr(agents, "sleeping", sleeping, raising=False)
    monkeypatch.setattr(agents, "sleeping_later", sleeping_later, raising=False)
    monkeypatch.setattr(agents, "checks", checks, raising=False)
    evaluator = EvaluatorSpec("checks", "python_function", {"function": "run.project.agents:checks"})
    run_suite(suite(tmp_path, [1] * 4, f"run.project.agents:{target}", evaluators=[evaluator], max_concurrency=2))
    assert written == [True] * 4


def test_a_judgement_by_one_evaluator_goes_on_where_a_row_of_another_is_missing(tmp_path: Path) -> None:
    run = run_suite(suite(tmp_path, ["done last", "done last"], evaluators=[SAYS_DONE, SAYS_LAST])).run_dir
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    kept = [row for row in rows if (row["case_id"], row["evaluator"]) != ("c0", "says_last")]
    (run / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    re_evaluate(run, add="says_done")
    reader, _ = open_run(run)
    found = sorted((row.case_id, row.evaluator) for row in reader.results(EvaluationResult))
    assert found == [("c0", "says_done"), ("c1", "says_done"), ("c1", "says_last")]
    assert sorted(verdict.status for verdict in reader.verdicts(CaseVerdict)) == ["error", "pass"]


def test_an_error_that_the_suite_says_spoils_a_cell_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def checks(case, trace):
        raise ZeroDivisionError

    monkeypatch.setattr(agents, "checks", checks, raising=False)
    evaluators = [SAYS_DONE, EvaluatorSpec("checks", "python_function", {"function": "run.project.agents:checks"})]
    said = []
    for number, errors in enumerate((["ZeroDivisionError"], ["OverflowError"])):
        criteria = PassCriteria(spoiling_errors=errors)
        outcome = run_suite(suite(tmp_path / str(number), ["done"], evaluators=evaluators, criteria=criteria))
        reader, _ = open_run(outcome.run_dir)
        said.append({row.evaluator: row.error and row.error.type for row in reader.results(EvaluationResult)})
    assert said[0] == {"says_done": "not_counted", "checks": "ZeroDivisionError"}
    assert said[1] == {"says_done": None, "checks": "ZeroDivisionError"}


def test_an_error_that_spoils_a_cell_leaves_the_errors_of_others_as_they_are() -> None:
    plan = a_plan(pass_criteria=PassCriteria(spoiling_errors=["quota"]), evaluators=[EvaluatorSpec("a", "x")])
    rows = [a_result(evaluator=name, passed=True, score=1.0) for name in ("sound", "broken", "spoiling")]
    rows[1].error, rows[2].error = TraceError("timeout", "late"), TraceError("quota", "empty")
    SpoilingErrors(plan).spoil(rows)
    assert [row.error and row.error.type for row in rows] == ["not_counted", "timeout", "quota"]
    assert (rows[0].passed, rows[0].score, rows[0].detail["not_counted"]) == (False, None, {"passed": True, "score": 1})
    assert "not_counted" not in rows[1].detail
    other = [
        a_result(evaluator="sound", passed=True),
        a_result(evaluator="broken", error=TraceError("timeout", "late")),
    ]
    SpoilingErrors(plan).spoil(other)
    assert (other[0].error, other[0].passed) == (None, True)
