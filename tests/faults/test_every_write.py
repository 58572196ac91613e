"""Death at every single write of a small run, whole and half, and every failing write, sync and rename."""

import errno
import os

import pytest

from faults.harness import POSTGRES, check_complete, make_project
from faults.victim import STORAGE_EXIT, Fault, in_child

CELLS = 4
ANOTHER_WAY = pytest.mark.slow("two runs for each write of a run")


def session(project, fault):
    """What became of the command that a user would give next, with a fault armed."""
    return in_child(lambda: start(project), fault, project.runs)


def start(project):
    """The next command in this process: `resume` when there is a run folder, else `run`."""
    os.chdir(project.folder)
    os.environ.update(project.environ())
    from evalwright.cli import main

    try:
        main([*project.go_on()])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def count(tmp_path, operation, **store):
    project = make_project(tmp_path / "count", ["fine"] * CELLS, concurrency=2, **store)
    outcome = session(project, Fault(operation))
    assert outcome.status == 0
    return outcome.calls


@pytest.mark.slow("dies at each of many writes and resumes")
@pytest.mark.parametrize("how", ["die", pytest.param("die_half", marks=ANOTHER_WAY)])
def test_death_at_every_write_loses_and_doubles_nothing(tmp_path, how):
    writes = count(tmp_path, "write")
    assert writes >= 3 * CELLS / 2  # the cells of both workers may be written at once
    for at in range(1, writes + 1):
        project = make_project(tmp_path / f"{at}", ["fine"] * CELLS, concurrency=2)
        died = session(project, Fault("write", at, how))
        # cells that end together are one write: a run may have fewer of them than the counted one
        assert died.status == (0 if 0 < died.calls < at else -9)
        assert session(project, Fault()).status == 0
        check_complete(project, CELLS)
        assert project.ledger.total() <= CELLS + 2


@pytest.mark.parametrize(
    "operation", ["rename", *(pytest.param(name, marks=ANOTHER_WAY) for name in ("mkdir", "fsync"))]
)
def test_the_folder_of_a_run_in_a_database_leads_to_the_run_or_is_not_there(tmp_path, operation):
    deaths = range(1, count(tmp_path, operation, output=POSTGRES) + 1)
    assert deaths
    for at in deaths:
        project = make_project(tmp_path / f"{at}", ["fine"] * CELLS, concurrency=2, output=POSTGRES)
        assert session(project, Fault(operation, at)).status == -9
        assert session(project, Fault()).status == 0
        check_complete(project, CELLS)
        assert [folder.name for folder in project.runs.iterdir()] == [project.run_dir().name]


@pytest.mark.parametrize(
    "operation",
    [*(pytest.param(name, marks=ANOTHER_WAY) for name in ("write", "fsync", "replace")), "rename"],
)
def test_a_failing_operation_ends_in_a_storage_error_and_can_be_resumed(tmp_path, operation):
    for at in range(1, count(tmp_path, operation) + 1):
        project = make_project(tmp_path / f"{at}", ["fine"] * CELLS, concurrency=2)
        failed = session(project, Fault(operation, at, errno.ENOSPC))
        # syncs are made by the clock: a run that is quicker than the counted one has fewer
        assert failed.status == (0 if failed.calls < at else STORAGE_EXIT)
        assert session(project, Fault()).status == 0
        check_complete(project, CELLS)
