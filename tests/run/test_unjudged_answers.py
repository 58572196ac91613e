"""Answers that are written and not judged yet: what stops, breaks or follows a run loses none and judges each once."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from evalwright import built_in
from evalwright.errors import StorageError
from evalwright.evaluators.onlooker import PASSED, Onlooker
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import CaseVerdict, Evaluation, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import SAYS_DONE, suite

TOGETHER = "run.project.agents:together"
LOOKS = EvaluatorSpec("looks", "looks_in_tests")
WAITS = EvaluatorSpec("waits", "waits_in_tests")


class Looks(Onlooker, frozen=True):
    """Does what a test wants when it is asked about a cell; as one of our own, which alone are judged later."""

    def look(self, case: Case, trace: Trace) -> Evaluation:
        Judging.judged.append(case.id)
        Judging.look(case)
        return PASSED


Looks.__module__ = "evalwright.in_tests"


class Waits(msgspec.Struct):
    """The same for an evaluator that is awaited."""

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        Judging.judged.append(case.id)
        Judging.look(case)
        await asyncio.sleep(Judging.seconds)
        return PASSED


class Judging:
    judged: list[str]
    look: Callable[[Case], None]
    seconds: float


@pytest.fixture(autouse=True)
def judging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(built_in.KINDS["evaluators"], LOOKS.type, f"{__name__}:Looks")
    monkeypatch.setitem(built_in.KINDS["evaluators"], WAITS.type, f"{__name__}:Waits")
    Judging.judged, Judging.look, Judging.seconds = [], lambda case: None, 0.0


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cases that were called. Answers come late, and all in one turn of the event loop; `hangs` never comes."""
    from run.project import agents

    asked: list[str] = []
    came: list[asyncio.Event] = []

    async def together(case, variant):
        asked.append(case["id"])
        if case["input"] == "hangs" and asked.count(case["id"]) == 1:
            await asyncio.Event().wait()
        if not came or came[-1].is_set():
            came.append(asyncio.Event())
            asyncio.get_running_loop().call_later(0.06, came[-1].set)
        await came[-1].wait()
        return {"final_answer": case["input"]}

    monkeypatch.setattr(agents, "together", together, raising=False)
    return asked


def stop(number: int, times: int = 1) -> None:
    """Signals, and time in which what they ask for would not be done."""
    for _ in range(times):
        os.kill(os.getpid(), number)
    time.sleep(0.03)  # longer than cells are judged in one turn of the event loop


def check_complete(run: Path, cells: int) -> None:
    reader, _ = open_run(run)
    everyone = sorted(f"c{number}" for number in range(cells))
    assert sorted(trace.case_id for trace in reader.traces(Trace)) == everyone
    assert sorted(row.case_id for row in reader.results(EvaluationResult)) == everyone
    assert sorted(verdict.case_id for verdict in reader.verdicts(CaseVerdict)) == everyone
    assert reader.damage == []


def traced(run: Path) -> int:
    """How many traces are written."""
    return len((run / "traces.jsonl").read_bytes().splitlines())


SIGNALS = pytest.mark.parametrize(("number", "times"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)], ids=["^C^C", "TERM"])


@SIGNALS
@pytest.mark.parametrize("hanging", [0, 2])
def test_a_stop_leaves_answers_that_are_not_judged_yet_and_calls_none_of_them_again(
    tmp_path, called, number, times, hanging
):
    """Also if nothing but evaluators is running any more."""
    Judging.look = lambda case: stop(number, times)
    asked = ["answers"] * 5 + ["hangs"] * hanging
    stopped = run_suite(suite(tmp_path, asked, TOGETHER, evaluators=[LOOKS], max_concurrency=len(asked)))
    cells = stopped.summary.cells_total, stopped.summary.cells_missing
    assert (stopped.exit_code, cells, traced(stopped.run_dir)) == (130, (1, 4 + hanging), 5)
    Judging.look = lambda case: None
    assert resume(stopped.run_dir).exit_code == 0
    assert sorted(called) == sorted([*(f"c{n}" for n in range(len(asked))), *("c5", "c6")[:hanging]])
    check_complete(stopped.run_dir, len(asked))


def test_one_ctrl_c_lets_all_answers_be_judged(tmp_path, called):
    Judging.look = lambda case: stop(signal.SIGINT) if len(Judging.judged) == 1 else None
    outcome = run_suite(suite(tmp_path, ["answers"] * 12, TOGETHER, evaluators=[LOOKS], max_concurrency=4))
    assert (outcome.exit_code, outcome.summary.cells_total, len(called)) == (130, 8, 8)


def test_evaluators_that_take_their_time_judge_all_answers_before_the_run_ends(tmp_path, called):
    Judging.look = lambda case: time.sleep(0.03)  # longer than cells are judged in one turn of the event loop
    outcome = run_suite(suite(tmp_path, ["answers"] * 6, TOGETHER, evaluators=[LOOKS], max_concurrency=6))
    assert (outcome.exit_code, outcome.summary.cells_total) == (0, 6)
    check_complete(outcome.run_dir, 6)


def left_unjudged(folder: Path, evaluator: EvaluatorSpec) -> Path:
    """A run of four cells of which only the traces are there."""
    run = run_suite(suite(folder, ["answers"] * 4, TOGETHER, evaluators=[evaluator], max_concurrency=4)).run_dir
    for name in ("results.jsonl", "verdicts.jsonl"):
        (run / name).write_bytes(b"")
    Judging.judged.clear()
    return run


@SIGNALS
@pytest.mark.parametrize("evaluator", [LOOKS, WAITS], ids=["looks", "waits"])
def test_a_resumed_run_is_stopped_while_it_judges_what_was_left(tmp_path, called, number, times, evaluator):
    run = left_unjudged(tmp_path, evaluator)
    Judging.look, Judging.seconds = lambda case: stop(number, times), 30.0
    stopped = resume(run)
    left = 4 if evaluator is WAITS else 3
    assert (stopped.exit_code, stopped.summary.cells_missing, set(Judging.judged)) == (130, left, {"c0"})
    Judging.look, Judging.seconds = lambda case: None, 0.0
    assert (resume(run).exit_code, len(called)) == (0, 4)
    check_complete(run, 4)


@pytest.mark.parametrize("evaluator", [LOOKS, WAITS], ids=["looks", "waits"])
def test_one_ctrl_c_lets_a_resumed_run_judge_the_answer_at_hand(tmp_path, called, evaluator):
    run = left_unjudged(tmp_path, evaluator)
    Judging.look = lambda case: stop(signal.SIGINT) if len(Judging.judged) == 1 else None
    stopped = resume(run)
    assert (stopped.exit_code, stopped.summary.cells_missing, set(Judging.judged)) == (130, 3, {"c0"})


def test_an_evaluator_that_blocks_a_resumed_run_is_interrupted(tmp_path, called):
    def look(case: Case) -> None:
        time.sleep(1.2)  # after a second without a turn of the event loop, a signal does not wait for the next one
        stop(signal.SIGTERM)
        time.sleep(30)

    run = left_unjudged(tmp_path, LOOKS)
    Judging.look = look
    stopped = resume(run)
    assert (stopped.exit_code, stopped.summary.cells_missing, Judging.judged) == (130, 4, ["c0"])


def test_a_disk_that_fails_while_a_resumed_run_judges_ends_it(tmp_path, monkeypatch, called):
    run = left_unjudged(tmp_path, WAITS)

    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def look(case: Case) -> None:
        if case.id == "c1":  # the first one has been written and is to be synced
            monkeypatch.setattr(os, "fsync", fails)
            Judging.seconds = 30.0

    Judging.look = look
    with pytest.raises(StorageError, match="error"):
        resume(run)
    assert Judging.judged == ["c0", "c1"]


@pytest.mark.slow("megabytes of answers")
def test_answers_that_are_large_together_are_judged_before_the_rest_comes(tmp_path, called):
    """So that memory does not grow with how many are called at once."""
    written: list[int] = []
    Judging.look = lambda case: written.append(traced(*tmp_path.glob("runs/*")))
    asked = ["much" * 250_000] * 20
    outcome = run_suite(suite(tmp_path, asked, TOGETHER, evaluators=[LOOKS], max_concurrency=20))
    assert (outcome.exit_code, len(called), written[0] < 12) == (0, 20, True)
    check_complete(outcome.run_dir, 20)


@pytest.mark.parametrize("error", [ValueError("odd"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_an_evaluator_that_raises_is_the_error_of_its_cell_alone(tmp_path, called, error):
    def look(case: Case) -> None:
        if case.id == "c1":
            raise error

    Judging.look = look
    outcome = run_suite(suite(tmp_path, ["answers"] * 4, TOGETHER, evaluators=[LOOKS], max_concurrency=4))
    said = {verdict.case_id: verdict.status for verdict in open_run(outcome.run_dir)[0].verdicts(CaseVerdict)}
    assert (outcome.exit_code, said) == (3, {"c0": "pass", "c1": "error", "c2": "pass", "c3": "pass"})
    check_complete(outcome.run_dir, 4)


@pytest.mark.parametrize("file", ["traces.jsonl", "results.jsonl", "verdicts.jsonl"])
def test_a_disk_that_is_full_while_answers_wait_leaves_them_to_resume(tmp_path, monkeypatch, called, file):
    write = os.write

    def written(descriptor: int, data: bytes) -> int:
        if any(os.path.samestat(os.fstat(descriptor), path.stat()) for path in tmp_path.glob(f"runs/*/{file}")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", written)
    with pytest.raises(StorageError, match="No space left"):
        run_suite(suite(tmp_path, ["answers"] * 4, TOGETHER, evaluators=[LOOKS], max_concurrency=4))
    monkeypatch.setattr(os, "write", write)
    (run,) = tmp_path.glob("runs/*")
    assert traced(run) == (0 if file == "traces.jsonl" else 4)
    assert not (run / "verdicts.jsonl").read_bytes()
    assert resume(run).exit_code == 0
    assert len(called) == (8 if file == "traces.jsonl" else 4)
    check_complete(run, 4)


def test_a_run_with_unjudged_answers_is_judged_as_one_that_nothing_stopped(tmp_path, called):
    asked = ["done", "not", "done", "not"]
    evaluators = [LOOKS, SAYS_DONE]
    whole = run_suite(suite(tmp_path / "whole", asked, TOGETHER, evaluators=evaluators, max_concurrency=4))
    Judging.look = lambda case: stop(signal.SIGTERM)
    stopped = run_suite(suite(tmp_path / "stopped", asked, TOGETHER, evaluators=evaluators, max_concurrency=4))
    Judging.look = lambda case: None
    resumed = resume(stopped.run_dir)
    said = [
        sorted((row.case_id, row.evaluator, row.passed, row.reason) for row in reader.results(EvaluationResult))
        for reader in (open_run(outcome.run_dir)[0] for outcome in (whole, resumed))
    ]
    assert said[0] == said[1]
    assert [variant.cells for variant in whole.summary.variants] == [
        variant.cells for variant in resumed.summary.variants
    ]
