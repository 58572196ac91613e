"""Ctrl-C again and again, and a terminal that goes away: the run ends, says so and can be resumed; Ctrl-Z, and it goes
on where it was."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest
import yaml

import warm

AGENT = "import time\ndef answer(case, variant):\n    time.sleep(30)\n    return {'final_answer': 'x'}\n"


@pytest.fixture
def running(tmp_path):
    """Starts a run of cells that take long; whatever becomes of the test, it is ended."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "cases.jsonl").write_text("".join(f'{{"id": "c{n}", "input": {{}}}}\n' for n in range(20)))
    suite = {
        "eval": {"name": "t"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": "s", "adapter": "python_function", "target": "agent:answer"}],
        "evaluators": [{"name": "says", "type": "contains_text", "config": {"none_of": ["q"]}}],
        "output": {"type": "local_files", "path": "runs"},
    }
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
    started = []

    def start(**streams):
        command = [sys.executable, "-m", "evalwright", "run", "eval.yaml"]
        started.append(subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **streams))
        until = time.monotonic() + 30
        while not [*tmp_path.glob("runs/*/plan.json")] and time.monotonic() < until:
            time.sleep(0.001)
        return started[0]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.cold
def test_any_number_of_ctrl_c_ends_with_130_and_a_summary(tmp_path, running):
    with (tmp_path / "said").open("wb") as said:
        process = running(stdout=subprocess.DEVNULL, stderr=said)
    while process.poll() is None:  # from the moment at which the run folder is there to the very end
        process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    assert process.returncode == 130
    assert "Traceback" not in (tmp_path / "said").read_text()
    [summary] = tmp_path.glob("runs/*/summary.yaml")
    assert yaml.safe_load(summary.read_text())["status"] == "partial"


@pytest.mark.cold
def test_ctrl_c_while_the_command_line_is_imported_prints_no_traceback(tmp_path):
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\n")
    command = [sys.executable, "-m", "evalwright", "run", "eval.yaml"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"interrupted\n")


@pytest.mark.cold
def test_a_terminal_that_goes_away_ends_the_run_as_ctrl_c_does(tmp_path, running):
    master, terminal = pty.openpty()
    process = running(stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    os.close(master)
    process.send_signal(signal.SIGHUP)
    assert process.wait(30) == 130
    assert [*tmp_path.glob("runs/*/summary.yaml")]


NOTES_ITS_PROCESS = """
import os, pathlib
def answer(case, variant):
    pathlib.Path("pid").write_text(str(os.getpid()))
    return {"final_answer": "x"}
"""
STOPS_THE_RUN = "kill -STOP $(cat pid); sleep 1.5; kill -CONT $(cat pid); echo '{\"score\": 1}'"


def test_time_for_which_the_run_was_stopped_is_not_an_evaluators(tmp_path):
    (tmp_path / "agent.py").write_text(NOTES_ITS_PROCESS)
    (tmp_path / "cases.jsonl").write_text('{"id": "c", "input": {}}\n')
    judge = {"script": STOPS_THE_RUN, "timeout_seconds": 1}
    suite = {
        "eval": {"name": "t"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": "s", "adapter": "python_function", "target": "agent:answer"}],
        "evaluators": [{"name": "judge", "type": "code_judge", "config": judge}],
        "output": {"type": "local_files", "path": "runs"},
    }
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
    done = warm.run(["-m", "evalwright", "run", "eval.yaml"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
