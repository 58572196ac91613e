"""Large runs of recordings, which several processes share."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.start import open_run, re_evaluate, resume, run_suite

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
