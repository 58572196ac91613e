"""A branch of a repository as a service: started once, asked through another target, and always torn down."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.files.temporary import TemporaryFolder
from evalwright.model.plan import Variant
from evalwright.registry import load
from living import left_after_a_moment, living
from targets.services import evalwright, git, repository, suite

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks for processes in /proc")


@pytest.fixture
def mark(tmp_path):
    """A word among the arguments of every process of a test."""
    return f"mark-{os.getpid()}-{tmp_path.name}"


def nothing_left(folder, mark):
    return left_after_a_moment(mark) == [] and list((folder / "tmp").iterdir()) == []


@pytest.mark.parametrize("branch", ["main", "feature"])
def test_the_branch_answers_and_is_gone_afterwards(tmp_path, mark, branch):
    repo = repository(tmp_path)
    git(repo, "branch", "before")
    suite(tmp_path, mark, branch)
    done = evalwright(tmp_path, "run", "eval.yaml")
    assert done.returncode == 0, done.stderr
    assert "100.0%" in done.stdout
    assert nothing_left(tmp_path, mark)
    listed = subprocess.run(["git", "-C", repo, "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert listed.count("\n") == 1


def test_without_a_healthcheck_the_port_has_to_be_open(tmp_path, mark):
    repository(tmp_path)
    suite(tmp_path, mark, healthcheck="null")
    assert evalwright(tmp_path, "run", "eval.yaml").returncode == 0
    assert nothing_left(tmp_path, mark)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"script": "missing.py"}, "ended with exit code 2"),
        pytest.param(
            *({"healthcheck": "GET /other", "patience": 4}, "not up after 4 seconds: GET /other: status 503"),
            marks=pytest.mark.slow("waits four seconds for a service"),
        ),
    ],
)
def test_a_service_that_does_not_come_up_ends_the_run_before_any_cell(tmp_path, mark, changed, told):
    repository(tmp_path)
    suite(tmp_path, mark, **changed)
    done = evalwright(tmp_path, "run", "eval.yaml")
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert nothing_left(tmp_path, mark)


ANOTHER_END = pytest.mark.slow("a service is started and ended again")


@pytest.mark.slow("waits for a service to end")
@pytest.mark.parametrize(
    "number", [*(pytest.param(other, marks=ANOTHER_END) for other in (signal.SIGTERM, signal.SIGINT)), signal.SIGKILL]
)
def test_an_interrupted_run_leaves_nothing_of_the_service(tmp_path, mark, number):
    repository(tmp_path)
    suite(tmp_path, mark)
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {word: x, seconds: 30}}]")
    (tmp_path / "tmp").mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "evalwright", "run", "eval.yaml"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 20
    while len(living(mark)) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)
    running.send_signal(number)
    if number == signal.SIGINT:
        time.sleep(0.5)
        running.send_signal(number)
    assert running.wait(30) != 0
    assert left_after_a_moment(mark) == []
    if number == signal.SIGKILL:
        TemporaryFolder(tmp_path / "tmp").close()
    assert list((tmp_path / "tmp").iterdir()) == []


GOOD = {
    "branch": "main",
    "start_command": ["true"],
    "inner_adapter": "http",
    "inner_config": {"endpoint": "http://127.0.0.1:{port}/ask", "provider": "simple"},
}
REFUSED = {
    "nothing at all": (
        dict.fromkeys([*GOOD, "repo_path"]),
        ["repo_path", "branch", "start_command", "inner_adapter", "inner_config"],
    ),
    "no such branch": ({"branch": "nope"}, ["branch"]),
    "no name of a branch": ({"branch": "ma\0in"}, ["branch"]),
    "no folder": ({"repo_path": "nowhere"}, ["repo_path"]),
    "no repository": ({"repo_path": "."}, ["repo_path"]),
    "command a text": ({"start_command": "make run"}, ["start_command"]),
    "unknown inner adapter": ({"inner_adapter": "htp"}, ["inner_adapter"]),
    "inner mistakes": (
        {"inner_config": {"endpoint": "ftp://x"}},
        ["inner_config.endpoint", "inner_config.response_mapping"],
    ),
    "health": ({"healthcheck": "FETCH /x"}, ["healthcheck"]),
    "health without a path": ({"healthcheck": "GET"}, ["healthcheck"]),
    "patience": ({"healthcheck_timeout_seconds": 0}, ["healthcheck_timeout_seconds"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_reported_by_key_before_anything_is_started(name, tmp_path, monkeypatch):
    repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    changes, keys = REFUSED[name]
    with pytest.raises(InputError) as refused:
        load("targets", "git_branch")(Variant("s", "git_branch", {"repo_path": "repo", **GOOD, **changes}))
    assert sorted(problem.key for problem in refused.value.problems) == sorted(keys)


def test_a_service_is_not_started_in_each_of_several_processes(tmp_path, monkeypatch):
    repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        load("targets", "git_branch")(Variant("s", "git_branch", {"repo_path": "repo", **GOOD}, isolation="process"))
    assert [problem.key for problem in refused.value.problems] == ["isolation"]
