"""Shards that are killed and started again by the same command line, and a merge that is killed."""

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from evalwright.run.merge import merge
from evalwright.stores.local_files.lines import LineDecoder
from evalwright.stores.manifest import manifest_of
from faults.harness import Project, check_complete, make_project

pytestmark = [pytest.mark.cold, pytest.mark.slow("starts a command a dozen times and kills half of them")]

CELLS, SHARDS, WIDTH = 90, 3, 4


def ended(project: Project, arguments: list[str], after: float, number: int) -> int | None:
    """The exit code of a command that gets a signal after some seconds; None if it had ended before."""
    process = project.start(*arguments)
    try:
        process.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, number)
        process.communicate(timeout=60)
        return process.returncode
    assert process.returncode == 0
    return None


def shard(k: int) -> list[str]:
    return ["run", "eval.yaml", "--shard", f"{k}/{SHARDS}", "--out", f"out/{k}", "-q"]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_cell_exactly_once_by_the_same_command_line(tmp_path, seed):
    project, draw, ends = make_project(tmp_path, ["fine"] * CELLS), random.Random(seed), 0
    project.environment["CALL_SECONDS"] = "0.08"
    for k in range(1, SHARDS + 1):
        for number in (signal.SIGKILL, signal.SIGTERM):
            code = ended(project, shard(k), draw.uniform(0.3, 1.1), number)
            # a signal in its last moment may find nothing left to end
            runs = [path for path in (tmp_path / "out" / str(k)).glob("*") if path.is_dir()]  # not its lock
            finished = any(manifest_of(run) is not None for run in runs)
            assert code != 0 or finished, "a shard that was ended must not look finished"
            ends += code is not None
        assert project.command(*shard(k)).returncode == 0
        calls = project.ledger.total()
        assert project.command(*shard(k)).returncode == 0  # nothing to do
        assert project.ledger.total() == calls
    done = project.command("merge", "out/*/*", "--out", "runs", "-q")
    assert done.returncode == 0, done.stderr
    check_complete(project, CELLS)
    assert len(project.ledger) == CELLS
    assert project.ledger.total() - CELLS <= ends * WIDTH


def test_a_killed_merge_leaves_no_half_of_a_run(tmp_path):
    project, draw = make_project(tmp_path, ["fine"] * CELLS), random.Random(3)
    for k in range(1, SHARDS + 1):
        assert project.command(*shard(k)).returncode == 0
    out = tmp_path / "runs"
    for _ in range(6):
        ended(project, ["merge", "out/*/*", "--out", "runs"], draw.uniform(0.2, 0.8), signal.SIGKILL)
        for folder in [path for path in out.glob("*") if not path.name.startswith(".")]:
            assert manifest_of(folder) is not None
            damage: list[str] = []
            with (folder / "verdicts.jsonl").open("rb") as file:
                assert len([*LineDecoder("verdicts", damage).records(dict, file)]) == CELLS
            assert damage == []
    merged = merge(sorted(Path(tmp_path / "out").glob("*/*")), out)
    assert [path for path in out.iterdir() if path != merged.run_dir] == []
    check_complete(project, CELLS)
