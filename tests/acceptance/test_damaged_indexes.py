"""Reading commands on runs whose index is damaged in places that SQLite does not look at when it opens the file."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from acceptance.projects import AGENT, EVAL, Project, project, run_of

CASES = 250
COMMANDS = {
    "inspect": ["inspect", "{a}", "--failed"],
    "case": ["inspect", "{a}", "--case", f"c{CASES - 1}"],
    "markdown": ["report", "{a}", "--format", "markdown"],
    "junit": ["report", "{a}", "--format", "junit"],
    "json": ["report", "{a}", "--format", "json"],
    "codequality": ["report", "{a}", "--format", "codequality"],
    "sonar": ["report", "{a}", "--format", "sonar"],
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


UNNOTICED = {
    "no text": "UPDATE cells SET case_key = CAST(x'ff' AS TEXT) WHERE number = 7",
    "another place": "UPDATE cells SET trace_at = trace_at + 1, verdict_at = verdict_at + 1 WHERE number IN (0, 249)",
    "another attempt": "UPDATE cells SET attempt = 2 WHERE number = 9",
    "another length": "UPDATE cells SET verdict_len = verdict_len + 1, results_packed = x'0909' WHERE number = 9",
    "no place": "UPDATE cells SET trace_at = -9, verdict_at = 'x' WHERE number IN (0, 249)",
    "no sums": "UPDATE profiles SET sums = '{' || sums",
    "no outcomes": "UPDATE profiles SET outcomes = '7'",
    "no number of cells": "UPDATE profiles SET n = 'x'",
    "no length": "UPDATE covered SET bytes = 'x'",
}
"""What flipped bits make of an index that SQLite still reads."""
NO_SUCH_KIND = "UPDATE cells SET profile = 99 WHERE number = 7"
MORE = pytest.mark.slow("every command with every change")
USING = ("inspect", "case", "markdown", "json", "compare", "resume")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, id=f"{name}, {what}", marks=() if what == "no sums" or name == "markdown" else MORE)
        for name in USING
        for what, change in UNNOTICED.items()
    ]
    + [("markdown", NO_SUCH_KIND), ("json", NO_SUCH_KIND)],
)
def test_a_command_says_what_the_records_say_whatever_an_index_has_in_their_place(
    made: Project, sound: dict[str, tuple[int, str]], name: str, change: str
) -> None:
    index = run_of(made, "a") / "index.sqlite"
    index.write_bytes((made.folder / "kept").read_bytes())
    with closing(sqlite3.connect(index)) as connection, connection:
        connection.execute(change)
    assert asked(made, name) == sound[name]
