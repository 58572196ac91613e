"""Reading commands on runs whose index is damaged in places that SQLite does not look at when it opens the file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from acceptance.projects import AGENT, EVAL, Project, project

CASES = 250
COMMANDS = {
    "inspect": ["inspect", "{a}", "--failed"],
    "case": ["inspect", "{a}", "--case", f"c{CASES - 1}"],
    "markdown": ["report", "{a}", "--format", "markdown"],
    "junit": ["report", "{a}", "--format", "junit"],
    "json": ["report", "{a}", "--format", "json"],
    "codequality": ["report", "{a}", "--format", "codequality"],
    "agentv": ["report", "{a}", "--format", "agentv"],
    "drift": ["drift", "{a}", "--baseline", "{b}"],
    "compare": ["compare", "{a}", "{b}"],
    "resume": ["resume", "{a}", "-q"],
}
PAGE = 4096


def second_half(data: bytes) -> bytes:
    middle = len(data) // PAGE // 2 * PAGE
    return data[:middle] + bytes(len(data) - middle)


def every_third_page(data: bytes) -> bytes:
    return b"".join(
        b"?" * PAGE if place % 3 == 2 else data[place * PAGE : (place + 1) * PAGE] for place in range(len(data) // PAGE)
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two runs with an index each, of which the first one is laid aside."""
    folder = tmp_path_factory.mktemp("damaged")
    for name, failing in (("a", 3), ("b", 5)):
        suite = project(folder, {f"c{n}": "no" if n % failing == 0 else "thanks" for n in range(CASES)})
        suite.run("--out", name)
    return suite


def run_of(made: Project, name: str) -> Path:
    return next((made.folder / name).iterdir())


@pytest.fixture(scope="module")
def sound(made: Project) -> dict[str, tuple[int, str]]:
    """What each command says by reading the records; and an index is made of both runs after that."""
    said = {name: asked(made, name) for name in COMMANDS}
    for run in "ab":
        assert made.evalwright("index", run_of(made, run)).code == 0
    shutil.copy(run_of(made, "a") / "index.sqlite", made.folder / "kept")
    return said


def asked(made: Project, name: str) -> tuple[int, str]:
    ended = made.evalwright(*(word.format(a=run_of(made, "a"), b=run_of(made, "b")) for word in COMMANDS[name]))
    return ended.code, ended.out


def test_a_run_whose_baseline_has_a_damaged_index_calls_its_system_once(tmp_path: Path) -> None:
    suite = project(tmp_path, {f"c{n}": "no" if n % 3 == 0 else "thanks" for n in range(CASES)})
    (tmp_path / "eval.yaml").write_text(EVAL + "gate: {not_worse_than: baseline}\n")
    (tmp_path / "agent.py").write_text(AGENT + "open('imported', 'a').write('x')\n")
    first = suite.run()
    assert suite.evalwright("promote", first).code == suite.evalwright("index", first).code == 0
    index = first / "index.sqlite"
    index.write_bytes(second_half(index.read_bytes()))
    again = suite.evalwright("run", "eval.yaml", "-q")
    assert (again.code, sorted((tmp_path / "runs").glob("2*"))) == (0, [first, tmp_path / again.last_line])
    assert (tmp_path / "imported").read_text() == "xx"


@pytest.mark.parametrize("damage", [second_half, every_third_page])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_the_records_say(
    made: Project, sound: dict[str, tuple[int, str]], name: str, damage: Callable[[bytes], bytes]
) -> None:
    (run_of(made, "a") / "index.sqlite").write_bytes(damage((made.folder / "kept").read_bytes()))
    assert asked(made, name) == sound[name]
