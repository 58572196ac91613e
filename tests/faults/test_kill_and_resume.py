"""SIGKILL at random moments: after resuming, every cell is there exactly once."""

import os
import random
import signal
import subprocess

import pytest

from faults.harness import check_complete, kill_at_random, make_project

CELLS = 300


@pytest.mark.parametrize("seed", [1, 2])
def test_every_cell_exactly_once_after_random_kills(tmp_path, seed):
    project = make_project(tmp_path, ["fine"] * CELLS)
    draw = random.Random(seed)
    kills = kill_at_random(project, 4, 0.2, 0.9, draw)
    done = project.command(*project.go_on())
    assert done.returncode == 0, done.stderr
    check_complete(project, CELLS)
    wasted = project.ledger.total() - len(project.ledger)
    assert wasted <= kills * 4


def test_interrupting_finishes_what_runs_and_resumes(tmp_path):
    project = make_project(tmp_path, ["fine"] * 200)
    project.environment["CALL_SECONDS"] = "0.05"
    process = project.start("run", "eval.yaml", "--quiet")
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=1.2)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert project.ledger.total() == len(project.ledger)
    done = project.command(*project.go_on())
    assert done.returncode == 0, done.stderr
    check_complete(project, 200)
    assert project.ledger.total() == 200


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    project = make_project(tmp_path, ["fine"] * 5)
    project.command("run", "eval.yaml", "--quiet")
    folder = project.run_dir()
    before = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    done = project.command("resume", str(folder))
    assert done.returncode == 0
    assert "nothing to do" in done.stdout + done.stderr
    assert {path.name: path.read_bytes() for path in folder.glob("*.jsonl")} == before
