"""SIGKILL at random moments: after resuming, every cell is there exactly once."""

import os
import random
import signal
import time

import pytest

from faults.harness import LOCAL_FILES, POSTGRES, SQLITE, check_complete, kill_at_random, make_project
from postgres_server import restart

pytestmark = pytest.mark.cold

CELLS = 300
MORE_KILLS = pytest.mark.slow("starts a run five times and kills it four times")


HELD_BACK = {"local_files": 0, "sqlite": 20, "postgres": CELLS}
"""Finished cells that a kill may lose: what a database has not been given yet."""


@pytest.mark.parametrize(
    ("output", "seed"),
    [
        (LOCAL_FILES, 1),
        *(pytest.param(*given, marks=MORE_KILLS) for given in ((LOCAL_FILES, 2), (SQLITE, 1), (POSTGRES, 1))),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else str(value),
)
def test_every_cell_exactly_once_after_random_kills(tmp_path, output, seed):
    project = make_project(tmp_path, ["fine"] * CELLS, output=output)
    draw = random.Random(seed)
    kills = kill_at_random(project, 4, 0.2, 0.9, draw)
    done = project.command(*project.go_on())
    assert done.returncode == 0, done.stderr
    check_complete(project, CELLS)
    wasted = project.ledger.total() - len(project.ledger)
    assert wasted <= kills * (4 + HELD_BACK[output["type"]])


@pytest.mark.slow("stops the database server and starts it again")
def test_a_restart_of_the_database_in_mid_run_loses_and_doubles_nothing(tmp_path):
    project = make_project(tmp_path, ["fine"] * CELLS, output=POSTGRES)
    project.environment["CALL_SECONDS"] = "0.06"
    process = project.start("run", "eval.yaml", "--quiet")
    while len(project.ledger) < CELLS // 4:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    restart()
    assert len(project.ledger) < CELLS, "the run was over before the server was"
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    check_complete(project, CELLS)
    assert project.ledger.total() == CELLS


@pytest.mark.slow("a run that is interrupted and finished")
def test_interrupting_finishes_what_runs_and_resumes(tmp_path):
    project = make_project(tmp_path, ["fine"] * 200)
    project.environment["CALL_SECONDS"] = "0.1"
    process = project.start("run", "eval.yaml", "--quiet")
    while len(project.ledger) < 10:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert project.ledger.total() == len(project.ledger)
    project.environment["CALL_SECONDS"] = "0"
    done = project.command(*project.go_on())
    assert done.returncode == 0, done.stderr
    check_complete(project, 200)
    assert project.ledger.total() == 200


@pytest.mark.slow("a run and two commands that go on with it")
def test_resuming_a_finished_run_changes_nothing(tmp_path):
    project = make_project(tmp_path, ["fine"] * 5)
    project.command("run", "eval.yaml", "--quiet")
    folder = project.run_dir()
    before = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    done = project.command("resume", str(folder))
    assert done.returncode == 0
    assert "nothing to do" in done.stdout + done.stderr
    assert {path.name: path.read_bytes() for path in folder.glob("*.jsonl")} == before
