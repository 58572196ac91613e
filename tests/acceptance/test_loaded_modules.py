"""What each command imports: start-up is most of what a short command takes, and it grows one import at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from acceptance.projects import EVAL, TWO_SYSTEMS, project

LOOKS = """
import json, sys
before = {name.partition(".")[0] for name in sys.modules}
from evalwright.cli import main
try:
    main(sys.argv[1:])
finally:
    after = {name.partition(".")[0] for name in sys.modules}
    print(json.dumps(sorted(after - before)), file=sys.stderr)
"""
HEAVY = {"asyncio", "concurrent", "email", "http", "multiprocessing", "sqlite3", "ssl", "unittest", "xml"}
"""Of the standard library: each takes as long to import as a small run to be read."""
READING = {"click", "msgspec", "typing_extensions"}
AUTHORED = READING | {"yaml", "asyncio", "concurrent", "ssl"}
"""What people wrote is read without pydantic, which would say what is wrong with it."""
MAY_LOAD = {
    "--help": {"click"},
    "inspect RUN": READING,
    "compare RUN RUN": READING,
    "report RUN": READING | {"yaml"},
    "list runs runs": READING | {"yaml"},
    "resume RUN": AUTHORED,
    "re-evaluate RUN": AUTHORED | {"multiprocessing"},
    "validate eval.yaml": AUTHORED,
    "run eval.yaml": AUTHORED,
    "run promptfooconfig.yaml": AUTHORED,
    "run recorded.jsonl": AUTHORED,
}
OF_NORTHSTAR = '{"id": "a", "messages": [{"role": "assistant", "content": "Hi"}], "expected": {"contains": ["Hi"]}}'
OF_PROMPTFOO = "prompts: [Hi]\nproviders: [echo]\ntests: [{assert: [{type: contains, value: Hi}]}]\n"


def loaded(folder: Path, command: str) -> set[str]:
    """The top packages that a command imports in a fresh process: those of others, and heavy ones of Python."""
    run = next((folder / "runs").iterdir())
    words = [str(run) if word == "RUN" else word for word in command.split()]
    done = subprocess.run([sys.executable, "-c", LOOKS, *words], cwd=folder, capture_output=True, text=True)
    names = set(json.loads(done.stderr.splitlines()[-1]))
    own = {"evalwright", "agent", "cython_runtime"}
    others = {name for name in names - sys.stdlib_module_names - own if not name.startswith("_")}
    return others | names & HEAVY


def must_load_little(folder: Path, command: str) -> None:
    made = project(folder, {"a": "thanks", "b": "no"}, TWO_SYSTEMS)
    made.run()
    (folder / "promptfooconfig.yaml").write_text(OF_PROMPTFOO)
    (folder / "recorded.jsonl").write_text(OF_NORTHSTAR)
    assert loaded(folder, command) <= MAY_LOAD[command]


def test_looking_at_a_run_needs_nothing_that_running_needs(tmp_path: Path) -> None:
    must_load_little(tmp_path, "inspect RUN")


@pytest.mark.slow("starts Python anew for each command")
@pytest.mark.parametrize("command", [command for command in MAY_LOAD if command != "inspect RUN"])
def test_a_command_loads_no_more_than_it_may(tmp_path: Path, command: str) -> None:
    must_load_little(tmp_path, command)


@pytest.mark.cold
@pytest.mark.parametrize("words", ["list formats", "run eval.yaml"])
def test_modules_of_the_working_directory_take_no_place_of_a_library(tmp_path: Path, words: str) -> None:
    project(tmp_path, {"a": "thanks"}, EVAL.replace("python_function,", "python_function, isolation: process,"))
    for name in ("asyncio", "click", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported')\n")
    command = [sys.executable, "-m", "evalwright", *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, "imported" in done.stdout + done.stderr) == (0, False)
