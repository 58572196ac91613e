"""Large runs of recordings, which several processes share."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalwright.errors import EvalwrightError, StorageError, TargetError
from evalwright.formats.loading import load_suite
from evalwright.model.plan import EvaluatorSpec, Plan, Plugin, Price, RunSettings, Variant
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Metrics, Output, Trace
from evalwright.run.cells import RunState
from evalwright.run.children import processors
from evalwright.run.loop import targets_of
from evalwright.run.options import RunOptions
from evalwright.run.origin import Trust
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.replay import processes_for, replay_in_processes
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.scoring.tally import Tally
from evalwright.session import Session
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.sqlite import Sqlite
from evalwright.targets.build import build_target
from evalwright.testing import a_case, a_plan, a_trace
from run.suites import SAYS_DONE

CASES = 6_000
GRADERS = 11


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A third of the cases passes, a third fails, a third is skipped."""
    path = tmp_path / "recorded.jsonl"
    with path.open("w") as file:
        for number in range(CASES):
            expected = [{"contains": "yes"}, {"contains": "no"}, {}][number % 3]
            messages = [{"role": "assistant", "content": f"yes {number}"}]
            file.write(json.dumps({"id": f"c{number}", "messages": messages, "expected": expected}) + "\n")
    return path


def check_complete(run: Path) -> None:
    """Every cell is there exactly once."""
    reader, _ = open_run(run)
    assert sorted(verdict.case_index or 0 for verdict in reader.verdicts(CaseVerdict)) == list(range(CASES))
    assert {trace.case_id for trace in reader.traces(Trace)} == {f"c{number}" for number in range(CASES)}
    rows = {(row.case_id, row.evaluator) for row in reader.results(EvaluationResult)}
    assert len(rows) == CASES * GRADERS
    assert reader.damage == []


@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux only")
def test_each_process_judges_its_share_and_a_recording_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Fewer cells than are shared by themselves, so that this is quick."""

    def recorded(text: str, tokens: int) -> msgspec.Raw:
        spent = Metrics(token_input=tokens, token_output=0)
        return msgspec.Raw(msgspec.json.encode(a_trace(output=Output(text), metrics=spent)))

    cases = [a_case(id=f"c{n}", recorded=recorded("done" if n % 2 else "no", 500_000 * n)) for n in range(6)]
    cases += [a_case(id="none"), a_case(id="wrong", recorded=msgspec.Raw(b'{"output": 5}'))]
    plan = a_plan(
        variants=[Variant("v", "replay", {"model": "m"})],
        evaluators=[SAYS_DONE],
        prices={"m": Price(2.0, 4.0)},
        cases_total=len(cases),
    )
    tally, state, store = Tally.of(plan), RunState(total=len(cases)), LocalFiles(tmp_path)
    with Session(owns_process=True), closing(store.create(plan, cases, {})) as writer:
        replay_in_processes(plan, writer, targets_of(plan), tally, state, 3)
        assert (state.done, state.passed, state.failed, state.errored, state.cost_usd) == (8, 3, 3, 2, 15.0)
    with closing(store.read(plan.run_id)) as reader:
        said = {verdict.case_id: verdict.status for verdict in reader.verdicts(CaseVerdict)}
        assert said == {f"c{n}": "pass" if n % 2 else "fail" for n in range(6)} | {"none": "error", "wrong": "error"}
        traces = {trace.case_id: trace for trace in reader.traces(Trace)}
        assert [traces[f"c{n}"].metrics.cost_usd for n in range(6)] == [None, 1.0, 2.0, 3.0, 4.0, 5.0]
        assert "has no recording" in traces["none"].error.message
        passed = {row.case_id: row.passed for row in reader.results(EvaluationResult) if row.error is None}
        assert passed == {f"c{n}": bool(n % 2) for n in range(6)}
        assert reader.damage == []
    (totals,) = tally.summary(plan, plan.started_at).variants
    assert (totals.cases_passed, totals.cases_errored) == (3, 2)


def test_a_trial_without_a_recording_is_named_as_people_count() -> None:
    case = a_case(id="c", recorded=msgspec.Raw(msgspec.json.encode(a_trace())))
    target = build_target(Variant("v", "replay"), [])
    with pytest.raises(TargetError, match="case 'c' has 1 recorded trial, none for trial 2"):
        asyncio.run(target.run(case, 1))


@pytest.mark.parametrize(("given", "kept"), [({"user_message": "Hi"}, "Hi"), ({}, "of the case")])
def test_a_recording_keeps_the_input_that_it_has(tmp_path: Path, given: dict[str, Any], kept: str) -> None:
    recorded = msgspec.Raw(msgspec.json.encode(a_trace(input=given)))
    cases = [a_case(id="c", input={"user_message": "of the case"}, recorded=recorded)]
    plan = a_plan(variants=[Variant("v", "replay")], evaluators=[SAYS_DONE], cases_total=1)
    with Session(owns_process=True), closing(LocalFiles(tmp_path).create(plan, cases, {})) as writer:
        replay_in_processes(plan, writer, targets_of(plan), Tally.of(plan), RunState(total=1), 1)
        (trace,) = writer.traces(Trace)
    assert trace.input == {"user_message": kept}


class Unspeakable:
    async def run(self, case: Case, trial: int) -> Answer:
        return Answer(extra={"odd": object()}) if case.id == "odd" else Answer.of("done")


@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux only")
@pytest.mark.parametrize("processes", [1, 3])
def test_an_answer_that_json_cannot_hold_is_the_error_of_its_cell(tmp_path: Path, processes: int) -> None:
    """Alone or among others."""
    cases = [a_case(id=name) for name in ("even", "odd", "last")]
    plan = a_plan(variants=[Variant("v", "replay")], evaluators=[SAYS_DONE], cases_total=3)
    state = RunState(total=3)
    with Session(owns_process=True), closing(LocalFiles(tmp_path).create(plan, cases, {})) as writer:
        replay_in_processes(plan, writer, {"v": Unspeakable()}, Tally.of(plan), state, processes)
        errors = {trace.case_id: trace.error.message for trace in writer.traces(Trace) if trace.error is not None}
    assert (state.passed, state.errored, [*errors]) == (2, 1, ["odd"])
    assert "cannot be stored" in errors["odd"]


CALL = {"id": "t", "function": {"name": "look", "arguments": '{"at": "the sea"}'}}
LOOKED = [
    {"role": "user", "content": "Which colour?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "t", "name": "look", "content": "deep blue sea"},
    {"role": "assistant", "content": "The sea is deep blue\u2028."},
]
EXPECTED = [
    {"contains": "blue", "max_tool_calls": 2, "required_tools": "look"},
    {"contains": "red", "tool_arguments": [{"name": "look", "arguments": {"at": "the sea"}}], "max_cost_usd": 1},
    {"max_latency_ms": 20, "forbidden_tools": "look", "ground_truth": "deep  BLUE"},
    {"require_tool_output_reference": True, "tool_sequence": ["look", "tell"], "not_contains": ["red"]},
    {},
]


@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux only")
@pytest.mark.parametrize("processes", [1, 2])
def test_processes_write_the_records_of_one(tmp_path: Path, processes: int) -> None:
    """Each in the order of its cases."""
    path = tmp_path / "recorded.jsonl"
    with path.open("w") as file:
        for number in range(40):
            conversation = {
                "id": f"c{min(number, 38)}",
                "messages": LOOKED[number % 3 :],
                "expected": EXPECTED[number % 5],
                "metrics": {"latency_ms": number, "cost_usd": 0.25},
                "trace": {"run_id": "gone"} if number == 20 else None,
            }
            file.write(json.dumps(conversation) + "\n")
    alone = run_suite(load_suite(path), RunOptions(out=tmp_path / "alone"))
    one, plan = open_run(alone.run_dir)
    tally, state = Tally.of(plan), RunState(total=40)
    with (
        Session(owns_process=True),
        closing(LocalFiles(tmp_path / "shared").create(plan, one.cases(), {})) as writer,
    ):
        replay_in_processes(plan, writer, targets_of(plan), tally, state, processes)
        traces, verdicts = writer.traces(Trace), writer.verdicts(CaseVerdict)
        assert [trace.case_index for trace in traces] == [verdict.case_index for verdict in verdicts]
    for name in ("traces.jsonl", "results.jsonl", "verdicts.jsonl"):
        shared, lines = timeless(Path(writer.location) / name), timeless(alone.run_dir / name)
        assert (shared == lines) if processes == 1 else (sorted(shared) == sorted(lines))
    summary = tally.summary(plan, plan.started_at)
    assert (summary.variants, summary.native) == (alone.summary.variants, alone.summary.native)
    assert (state.passed, state.failed, state.errored, state.skipped) == (7, 24, 1, 8)


def timeless(path: Path) -> list[bytes]:
    """The lines of a file without dates and without what judging took."""
    return re.sub(rb'(_at":)\S+?Z"|("latency_ms":)\d+(?=,"error")', rb"\1\2", path.read_bytes()).splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux only")
def test_a_disk_that_is_full_for_one_of_the_processes_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, write = os.getpid(), os.write

    def written(descriptor: int, data: bytes) -> int:
        if os.getpid() != parent:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", written)
    cases = [a_case(id=f"c{n}", recorded=msgspec.Raw(msgspec.json.encode(a_trace()))) for n in range(4)]
    plan = a_plan(variants=[Variant("v", "replay")], evaluators=[SAYS_DONE], cases_total=len(cases))
    with (
        Session(owns_process=True),
        closing(LocalFiles(tmp_path).create(plan, cases, {})) as writer,
        pytest.raises(StorageError, match="No space left"),
    ):
        replay_in_processes(plan, writer, targets_of(plan), Tally.of(plan), RunState(total=len(cases)), 2)


def plan_of_recordings(number: int, length: int) -> tuple[Plan, list[Case]]:
    raw = msgspec.Raw(msgspec.json.encode(a_trace(output=Output("done" + "." * length))))
    cases = [a_case(id=f"c{n}", recorded=raw) for n in range(number)]
    return a_plan(variants=[Variant("v", "replay")], evaluators=[SAYS_DONE], cases_total=number), cases


@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux only")
@pytest.mark.parametrize(("length", "together"), [(10, 50), (100_000, 3), (300_000, 1)])
def test_the_larger_recordings_are_the_fewer_are_in_memory_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, together: int
) -> None:
    """Those are written together: here, a disk takes the first ones only."""
    plan, cases = plan_of_recordings(60, length)
    parent, write = os.getpid(), os.write
    traces = tmp_path / plan.run_id / "traces.jsonl"

    def written(descriptor: int, data: bytes) -> int:
        if os.getpid() != parent and traces.stat().st_size and b'"metrics"' in data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    with Session(owns_process=True), closing(LocalFiles(tmp_path).create(plan, cases, {})) as writer:
        monkeypatch.setattr(os, "write", written)
        with pytest.raises(StorageError, match="No space left"):
            replay_in_processes(plan, writer, targets_of(plan), Tally.of(plan), RunState(total=60), 1)
    assert len(traces.read_bytes().splitlines()) == together


@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux only")
def test_cells_that_are_written_in_several_turns_are_there_once_and_in_their_order(tmp_path: Path) -> None:
    plan, cases = plan_of_recordings(120, 10)
    state = RunState(total=120)
    with Session(owns_process=True), closing(LocalFiles(tmp_path).create(plan, cases, {})) as writer:
        replay_in_processes(plan, writer, targets_of(plan), Tally.of(plan), state, 1)
    assert (state.done, state.passed) == (120, 120)
    for name in ("traces.jsonl", "results.jsonl", "verdicts.jsonl"):
        lines = (tmp_path / plan.run_id / name).read_bytes().splitlines()
        assert [json.loads(line)["case_id"] for line in lines] == [case.id for case in cases]


@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux only")
@pytest.mark.parametrize("file", ["traces.jsonl", "results.jsonl", "verdicts.jsonl"])
def test_a_process_that_dies_between_its_writes_leaves_cells_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """Whatever it holds by then, no other process waits for it."""
    plan, cases = plan_of_recordings(300, 10)
    parent, write = os.getpid(), os.write
    run = tmp_path / plan.run_id

    def written(descriptor: int, data: bytes) -> int:
        later = os.getpid() != parent and (run / "verdicts.jsonl").stat().st_size
        if later and os.path.samestat(os.fstat(descriptor), (run / file).stat()):
            os.kill(os.getpid(), signal.SIGKILL)
        return write(descriptor, data)

    with Session(owns_process=True), closing(LocalFiles(tmp_path).create(plan, cases, {})) as writer:
        monkeypatch.setattr(os, "write", written)
        with pytest.raises(EvalwrightError, match="ended without its result"):
            replay_in_processes(plan, writer, targets_of(plan), Tally.of(plan), RunState(total=300), 2)
    traced, judged = (len((run / name).read_bytes().splitlines()) for name in ("traces.jsonl", "verdicts.jsonl"))
    assert (traced, judged) == (50 if file == "traces.jsonl" else 100, 50)
    monkeypatch.setattr(os, "write", write)
    outcome = resume(run, trust=Trust(run=True))
    assert (outcome.exit_code, outcome.summary.cells_missing) == (0, 0)
    for name in ("traces.jsonl", "results.jsonl", "verdicts.jsonl"):
        listed = [json.loads(line)["case_id"] for line in (run / name).read_bytes().splitlines()]
        assert sorted(listed) == sorted(case.id for case in cases)


@pytest.mark.slow("worker processes")
def test_shared_work_is_that_of_one_process(dataset: Path, tmp_path: Path) -> None:
    shared = run_suite(load_suite(dataset), RunOptions(out=tmp_path / "shared"))
    alone = run_suite(load_suite(dataset), RunOptions(out=tmp_path / "alone", concurrency=1))
    check_complete(shared.run_dir)
    assert shared.summary.native == alone.summary.native
    assert shared.summary.variants == alone.summary.variants
    assert shared.summary.by_evaluator == alone.summary.by_evaluator
    assert re_evaluate(shared.run_dir).summary.native == alone.summary.native


def started(dataset: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """A run from the command line that has written verdicts, and its folder."""
    out = dataset.parent / "runs"
    command = [sys.executable, "-m", "evalwright", "run", str(dataset), "--out", str(out), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (found := [path for path in out.glob("*/verdicts.jsonl") if path.stat().st_size]):
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    return process, found[0].parent


@pytest.mark.slow("worker processes, killed and started again")
def test_a_killed_run_takes_its_processes_along_and_can_be_resumed(dataset: Path) -> None:
    process, run = started(dataset)
    process.kill()
    process.communicate()
    before = [path.stat().st_size for path in sorted(run.glob("*.jsonl"))]
    outcome = resume(run)
    assert outcome.summary.cells_missing == 0
    assert [path.stat().st_size for path in sorted(run.glob("*.jsonl"))] >= before
    check_complete(run)


@pytest.mark.slow("thousands of cells twice")
def test_an_interrupted_run_can_be_resumed(dataset: Path) -> None:
    process, run = started(dataset)
    os.kill(process.pid, signal.SIGINT)
    process.communicate()
    assert process.returncode in (1, 130)
    summary = open_run(run)[0].summary()
    assert summary is not None
    assert summary.cells_total == (run / "verdicts.jsonl").read_bytes().count(b"\n")
    resume(run)
    check_complete(run)


@pytest.mark.slow("thousands of cells twice")
def test_a_full_disk_ends_the_run_and_spoils_nothing(dataset: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, 10_000_000))

    out = dataset.parent / "runs"
    command = [sys.executable, "-m", "evalwright", "run", str(dataset), "--out", str(out), "--quiet"]
    done = subprocess.run(command, capture_output=True, preexec_fn=limit, timeout=60)
    assert (done.returncode, b"File too large" in done.stderr) == (5, True)
    (run,) = out.iterdir()
    resume(run)
    check_complete(run)


ALONE = [
    {"variants": [Variant("v", "replay"), Variant("w", "http")]},
    {"variants": [Variant("v", "replay", isolation="process")]},
    {"variants": [Variant("v", "replay", enrich_trace_from=[Plugin("langfuse")])]},
    {"evaluators": [SAYS_DONE, EvaluatorSpec("e", "llm_judge")]},
    {"mirrors": [Plugin("langfuse")]},
    {"workspace": Plugin("copy")},
    {"evaluators_by_case": True},
    {"run": RunSettings(max_concurrency=2, cost_limit_usd=1.0)},
    {"cases_total": 10},
]


@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux only")
@pytest.mark.parametrize("fields", [{}, *ALONE], ids=str)
def test_only_recordings_that_no_model_judges_are_shared_by_processes(tmp_path: Path, fields: dict[str, Any]) -> None:
    shared = {"variants": [Variant("v", "replay")], "run": RunSettings(max_concurrency=2)}
    plan = a_plan(**{**shared, **fields})
    with closing(LocalFiles(tmp_path).create(plan, [], {})) as writer:
        plan.cases_total = fields.get("cases_total", 1_000_000)
        assert processes_for(plan, writer) == (1 if fields else min(2, processors()))
    with closing(Sqlite(tmp_path / "runs.sqlite").create(a_plan(), [], {})) as writer:
        assert processes_for(plan, writer) == 1
