"""Whatever a run has started ends with it, however it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from evalwright.processes import ties
from evalwright.processes.reaper import end_all
from living import living, wait_for

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks for processes in /proc")

AGENT = """
import subprocess, sys, time
def answer(case, variant):
    subprocess.Popen(["sleep", "77.{mark}"])
    time.sleep(77)
"""
BOTH = "sleep 77.{mark} & sleep 77.{mark}"
SYSTEMS = {
    "command": {"adapter": "cli", "command": ["/bin/sh", "-c", BOTH]},
    "without its pipes": {"adapter": "cli", "command": ["/bin/sh", "-c", f"({BOTH}) >/dev/null 2>&1 </dev/null"]},
    "isolated": {"adapter": "python_function", "target": "agent:answer", "isolation": "process"},
}
SHARD = ("--shard", "1/2")
ANOTHER_END = pytest.mark.slow("a run with systems of every kind again")
STARTED = {"command": 3, "without its pipes": 2, "isolated": 1}
"""Processes of each whose arguments hold the mark, at least."""


def project(folder: Path, mark: str, systems: dict[str, dict[str, object]]) -> None:
    (folder / "agent.py").write_text(AGENT.replace("{mark}", mark))
    (folder / "files").mkdir()
    (folder / "tmp").mkdir()
    suite = {
        "eval": {"name": "t"},
        "dataset": {"type": "yaml", "path": "cases.yaml"},
        "systems": [{"name": name, **system, "timeout_seconds": 100} for name, system in systems.items()],
        "evaluators": [{"name": "says", "type": "contains_text", "config": {"none_of": ["x"]}}],
        "workspace": {"type": "tempdir_snapshot", "copy_from": "files"},
        "output": {"type": "local_files", "path": "runs"},
    }
    (folder / "eval.yaml").write_text(yaml.safe_dump(suite).replace("{mark}", mark))
    (folder / "cases.yaml").write_text("cases: [{id: a, input: {q: 1}}]")


def test_children_of_what_had_just_been_started_end_although_they_closed_its_file():
    mark = f"{os.getpid()}000"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        tied = ties.file(theirs.fileno())
        child = f"sleep 77.{mark} >/dev/null 2>&1 </dev/null"
        started = subprocess.Popen(["/bin/sh", "-c", f"{child} & wait"], stdout=theirs, start_new_session=True)
    try:
        assert wait_for(lambda: len(living(mark)) == 2, 30)
        end_all([tied])
        assert started.wait(30) == -9
        assert wait_for(lambda: not living(mark), 5)
    finally:
        for pid in living(mark):
            os.kill(pid, signal.SIGKILL)


def reaper():
    """The folder in /proc of the reaper of this process; None if it is not there."""
    pipe = f"pipe:[{os.fstat(ties._reaper._pipe).st_ino}]"
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if path.name != str(os.getpid()) and pipe in {str(link.readlink()) for link in (path / "fd").iterdir()}:
                return path
    return None


def hears_no_signals():
    place = reaper()
    ignored = place and re.search(r"SigIgn:\s*(\w+)", (place / "status").read_text())
    return bool(ignored and int(ignored[1], 16) >> (signal.SIGTERM - 1) & 1)


def kill_reaper():
    os.kill(int(reaper().name), signal.SIGKILL)
    assert wait_for(lambda: reaper() is None, 30)


def ask_reaper_to_end():
    assert wait_for(hears_no_signals, 30)
    os.kill(int(reaper().name), signal.SIGTERM)


HARMS = {
    "its pipe is closed": lambda mine: os.close(ties._reaper._pipe),
    "another file has its number": lambda mine: os.dup2(os.open(mine, os.O_WRONLY), ties._reaper._pipe),
    "it is killed": lambda mine: kill_reaper(),
    "it is asked to end": lambda mine: ask_reaper_to_end(),
}


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_tied_ends_with_the_process_whatever_becomes_of_the_reaper(tmp_path, harm):
    first, second, mine = tmp_path / "first", tmp_path / "second", tmp_path / "mine"
    first.mkdir()
    second.mkdir()
    mine.touch()
    if (child := os.fork()) == 0:
        try:
            ties.tie(ties.folder(first))
            HARMS[harm](mine)
            if harm != "it is asked to end":  # with a second tie, a new one would take its place
                ties.tie(ties.folder(second))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert wait_for(lambda: not first.exists(), 30)
    assert harm == "it is asked to end" or wait_for(lambda: not second.exists(), 30)
    assert mine.read_bytes() == b""


def test_what_was_untied_outlives_the_process(tmp_path):
    untied, tied = tmp_path / "untied", tmp_path / "tied"
    untied.mkdir()
    tied.mkdir()
    if (child := os.fork()) == 0:
        try:
            ties.tie(ties.folder(untied), ties.folder(tied))
            ties.untie(ties.folder(untied))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert wait_for(lambda: not tied.exists(), 30)
    assert untied.exists()


@pytest.mark.cold
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, ()),
        *(pytest.param(number, (), marks=ANOTHER_END) for number in (signal.SIGHUP, signal.SIGTERM)),
        *(pytest.param(number, SHARD, marks=ANOTHER_END) for number in (signal.SIGKILL, signal.SIGHUP)),
    ],
)
def test_all_that_a_run_has_started_ends_with_it(tmp_path, number, words):
    mark = f"{os.getpid()}{number:03}"
    project(tmp_path, mark, SYSTEMS)
    running = subprocess.Popen(
        [sys.executable, "-m", "evalwright", "run", "eval.yaml", *words],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert wait_for(lambda: len(living(mark)) >= sum(STARTED.values()), 30)
        assert [*(tmp_path / "tmp").iterdir()]
        running.send_signal(number)
        assert running.wait(30) == (-9 if number == signal.SIGKILL else 130)
        assert wait_for(lambda: not living(mark), 30)
        assert wait_for(lambda: not [*(tmp_path / "tmp").iterdir()], 30)
    finally:
        running.kill()
        for pid in living(mark):
            os.kill(pid, signal.SIGKILL)
    if number != signal.SIGKILL:
        assert [*tmp_path.glob("runs/*/summary.yaml")]
