"""What a person sees whose stdout or stderr is a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acceptance.projects import project
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.run.cells import Cell, RunState
from evalwright.run.progress import progress_on

pytestmark = pytest.mark.cold


def on_terminal(folder: Path, stream: str, *arguments: str, **environment: str) -> str:
    """All that a command writes to the one stream that is a terminal."""
    ours, theirs = pty.openpty()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "evalwright", *arguments],
        cwd=folder,
        env={**kept, "TERM": "xterm", **environment},
        **streams,  # type: ignore[call-overload]
    )
    os.close(theirs)
    seen = bytearray()
    with os.fdopen(ours, "rb", buffering=0) as reader:
        while True:
            try:
                data = reader.read(4096)
            except OSError:  # Linux says so at the end of a terminal
                break
            if not data:
                break
            seen += data
    process.wait(timeout=60)
    return seen.decode()


@pytest.fixture
def slowly(tmp_path: Path) -> Path:
    made = project(tmp_path, {"a": "slow", "b": "no"})
    agent = made.folder / "agent.py"
    agent.write_text(agent.read_text().replace("sleep(30)", "sleep(0.5)"))
    return tmp_path


def test_a_live_line_counts_and_goes_away(slowly: Path) -> None:
    seen = on_terminal(slowly, "stderr", "run", "eval.yaml")
    assert "1/2" in seen
    assert seen.endswith("\r\x1b[K")


@pytest.mark.slow("waits for what would be drawn")
def test_quiet_shows_no_progress(slowly: Path) -> None:
    assert on_terminal(slowly, "stderr", "run", "eval.yaml", "--quiet") == ""


def test_colours_are_for_terminals(tmp_path: Path) -> None:
    project(tmp_path, {"a": "no"})
    assert "\x1b[31m✗\x1b[0m a" in on_terminal(tmp_path, "stdout", "run", "eval.yaml")


@pytest.mark.slow("a run for each way to ask")
def test_colours_can_be_asked_for_and_refused(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "no"})
    assert "\x1b[31m✗\x1b[0m a" in made.evalwright("run", "eval.yaml", "--color", "always").out
    assert "\x1b" not in on_terminal(tmp_path, "stdout", "run", "eval.yaml", "--color", "never")


def test_no_color_is_respected(tmp_path: Path) -> None:
    project(tmp_path, {"a": "no"})
    assert "\x1b" not in on_terminal(tmp_path, "stdout", "run", "eval.yaml", NO_COLOR="1")


def running(case: str, seconds: float) -> dict[int, tuple[Cell, float]]:
    cell = Cell(0, 0, Case(case, None), Variant("v", "python_function"), 0, 1)
    return {0: (cell, time.monotonic() - seconds)}


def test_the_name_of_a_running_cell_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    state = RunState(total=2, running=running("a\x1b[2J", seconds=60))
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream, progress_on(stream)(state):
        seen = os.read(ours, 4096).decode()
    os.close(ours)
    assert "a\\x1b[2J · v 60 s" in seen


def test_somebody_who_asked_for_the_end_is_told_what_is_left() -> None:
    state = RunState(total=9, stopping=True, running=running("a", seconds=0))
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream, progress_on(stream)(state):
        seen = os.read(ours, 4096).decode()
    os.close(ours)
    assert "finishing 1 cell, press Ctrl-C again to stop now" in seen
