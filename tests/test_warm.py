"""What `warm.run` forks does what an interpreter does that is started for it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import warm
from acceptance.projects import project
from evalwright.cli.commands import commands

WORDS = {
    "run": "run eval.yaml",
    "resume": "resume run",
    "retry": "retry run",
    "merge": "merge shards/* --out whole",
    "re-evaluate": "re-evaluate run --json",
    "compare": "compare run run",
    "decide": "decide run run",
    "plan": "plan eval.yaml --detect 5pp",
    "promote": "promote run",
    "drift": "drift run",
    "calibrate": "calibrate run --labels labels.csv",
    "cache": "cache show --cache replies",
    "audit": "audit run",
    "inspect": "inspect run",
    "index": "index run",
    "report": "report run --format json",
    "export": "export run --format agentv",
    "view": "view run --cell nothing --port 0 --no-token --token x",
    "validate": "validate eval.yaml",
    "dataset": "dataset lint eval.yaml",
    "list": "list evaluators",
    "schema": "schema case",
    "completion": "completion bash",
    "import": "import talks.jsonl --format openai-messages --out talks",
    "convert": "convert eval.yaml --to agentv",
    "install-commands": "install-commands --into bin",
    "letta": "letta list-graders",
    "evalh": "evalh inspect run",
    "pixie": "pixie init qa",
    "demo": "demo --out shop",
    "init": "init new",
}
MESSAGES = [{"role": "user", "content": "please"}, {"role": "assistant", "content": "thanks"}]
VARYING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d[\d.]*(?:Z|[+]00:00)?"
    r"|(?<=ms)[\w\"]*: ?-?[\d.]+|[−+]?\b[\d.,]+ ?m?s\b|\d+[.]\d+|(?<=latency_under)[^}]*|[ ─]"
)
"""Moments, durations, the width of a column that has them, and sums in the order in which cells ended."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a run."""
    made = project(tmp_path_factory.mktemp("made"), {"a": "thanks", "b": "please", "c": "raise"})
    made.run().rename(made.folder / "run")
    for shard in ("1/2", "2/2"):
        made.run("--shard", shard, "--out", "shards")
    (made.folder / "labels.csv").write_text("case_id,evaluator,verdict\na,polite,pass\nb,polite,fail\n")
    (made.folder / "talks.jsonl").write_text(json.dumps({"messages": MESSAGES}) + "\n")
    return made.folder


def outcome(made: Path, folder: Path, words: list[str]) -> tuple[int, list[str], list[str], dict[str, list[str]]]:
    """Exit code, output, and every file that is there afterwards."""
    shutil.copytree(made, folder)
    done = warm.run(words, cwd=folder, env={**os.environ, "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"})
    files = {steady(str(path.relative_to(folder))): said_in(path) for path in folder.rglob("*") if path.is_file()}
    shutil.rmtree(folder)
    contents = {name: lines(text) for name, text in files.items()}
    return done.returncode, lines(done.stdout), lines(done.stderr), contents


def said_in(path: Path) -> str:
    """A database has pages, whose bytes are its own affair."""
    return "" if path.suffix == ".sqlite" else path.read_text()


def lines(text: str) -> list[str]:
    """Cells end in any order."""
    return sorted(map(steady, text.splitlines()))


def steady(text: str) -> str:
    return VARYING.sub("", text)


COLD_TOO = pytest.mark.slow("each command starts an interpreter to compare with")


@pytest.mark.cold
@pytest.mark.parametrize("name", ["run", *(pytest.param(name, marks=COLD_TOO) for name in commands() if name != "run")])
def test_every_command_does_the_same_in_a_process_that_was_started_for_it(
    made: Path, tmp_path: Path, name: str
) -> None:
    words = ["-m", "evalwright", *WORDS[name].split()]
    started = outcome(made, tmp_path / "shop", words)
    with warm.forking():
        forked = outcome(made, tmp_path / "shop", words)
    if name == "demo":  # shows some of its many failures: those that came first
        assert (forked[0], forked[2], forked[3].keys()) == (started[0], started[2], started[3].keys())
    else:
        assert forked == started


STATE = """
import json, os, signal, sys, threading
print(json.dumps({
    "arguments": sys.argv, "name": __name__, "folder": os.getcwd(), "path": sys.path,
    "environment": dict(os.environ),
    # newer releases of libffi keep their own library open
    "open": sum("libffi" not in os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")),
    "handlers": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "threads": threading.active_count(), "bytecode": sys.dont_write_bytecode, "typed": sys.stdin.read(),
}))
"""


@pytest.mark.cold
@pytest.mark.parametrize("words", [["-c", STATE, "x"], ["-m", "state", "x"], ["state.py", "x"]], ids=" ".join)
def test_a_child_has_what_a_process_has_that_was_started_for_it(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "state.py").write_text(STATE)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "more"), "WORD": "wörd"}
    del environment["PATH"]

    def state() -> object:
        return json.loads(warm.run(words, cwd=tmp_path, env=environment, input="hi").stdout)

    started = state()
    with warm.forking():
        assert state() == started


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("raise SystemExit(3)", 3),
        ("raise SystemExit(-1)", 255),
        ("raise SystemExit", 0),
        ("raise SystemExit('no')", 1),
        ("1 / 0", 1),
        ("import os; os._exit(4)", 4),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -15),
        ("import atexit, os; atexit.register(os._exit, 5)", 5),
    ],
)
def test_a_child_ends_as_a_process_does(tmp_path: Path, program: str, code: int) -> None:
    assert warm.run(["-c", program], cwd=tmp_path).returncode == code


def test_a_child_joins_its_threads_calls_its_exit_handlers_and_lets_go_what_it_has_made(tmp_path: Path) -> None:
    program = """
import atexit, threading
def last():
    threading.main_thread().join()
    print("thread")
atexit.register(print, "handler")
threading.Thread(target=last).start()
written = open("written", "w")
written.write("all")
print("program")
"""
    assert warm.run(["-c", program], cwd=tmp_path).stdout.split() == ["program", "thread", "handler"]
    assert (tmp_path / "written").read_text() == "all"


def test_a_child_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    program = "import subprocess; subprocess.run(['sh', '-c', 'echo $$ > started; exec sleep 600'])"
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(["-c", program], cwd=tmp_path, timeout=2)
    started = Path("/proc", (tmp_path / "started").read_text().strip(), "stat")
    deadline = time.monotonic() + 30
    while runs(started) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not runs(started)


def runs(process: Path) -> bool:
    try:
        return process.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_one_child_does_no_other_sees(tmp_path: Path) -> None:
    program = "import os, sys, json; os.environ['LEFT'] = '1'; sys.modules['left'] = json; open('left', 'w').close()"
    warm.run(["-c", program], cwd=tmp_path)
    looks = "import os, sys; print('LEFT' in os.environ, 'left' in sys.modules)"
    assert warm.run(["-c", looks], cwd=tmp_path).stdout == "False False\n"


def test_modules_of_a_user_are_loaded_in_the_child(tmp_path: Path) -> None:
    for word in ("one", "two"):
        (tmp_path / word).mkdir()
        (tmp_path / word / "agent.py").write_text(f"WORD = '{word}'\n")
        stdout = warm.run(["-c", "import agent; print(agent.WORD)"], cwd=tmp_path / word).stdout
        assert stdout == f"{word}\n"


def test_the_parent_has_one_thread_and_nothing_open(tmp_path: Path) -> None:
    warm.run(["-c", ""], cwd=tmp_path)
    process = Path(f"/proc/{warm.parent().process.pid}")
    opened = {int(name.name): name.readlink().name.partition(":")[0] for name in (process / "fd").iterdir()}
    assert len(list((process / "task").iterdir())) == 1
    others = {kind for number, kind in opened.items() if number > 2}
    assert {kind for kind in others if not kind.startswith("libffi")} == {"socket"}  # which opens itself


def test_the_parent_stands_in_for_no_package_and_has_loaded_no_client_of_a_model(tmp_path: Path) -> None:
    looks = "import sys; print({'anthropic', 'openai', 'northstar', 'pixie', 'letta_evals'} & {*sys.modules})"
    assert warm.run(["-c", looks], cwd=tmp_path).stdout == "set()\n"


@pytest.mark.parametrize("variable", ["PYTHONHASHSEED", "PYTHONWARNINGS", "LC_ALL"])
def test_what_counts_when_an_interpreter_starts_is_refused(tmp_path: Path, variable: str) -> None:
    with pytest.raises(ValueError, match=f"{variable} .* mark the test `cold`"):
        warm.run(["-c", ""], cwd=tmp_path, env={**os.environ, variable: "1"})


def test_a_module_that_python_loads_at_its_start_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").touch()
    with pytest.raises(ValueError, match="mark the test `cold`"):
        warm.run(["-c", ""], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)})
