from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import warm
from evalwright import __version__
from evalwright.cli.commands import commands

pytestmark = pytest.mark.cold

HEAVY = {"asyncio", "jsonpath_ng", "jsonschema", "msgspec", "pydantic", "rich", "yaml"}


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=30, check=True)


def loaded_by(*arguments: str) -> set[str]:
    return set(re.findall(r"\| +(\w+)", python("-X", "importtime", "-m", "evalwright", *arguments).stderr))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"]])
def test_asking_for_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert not loaded_by(*arguments) & HEAVY


ASKED = """
import contextlib, io, sys
def loaded_by(work):
    before = set(sys.modules)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        work()
    return sorted(set(sys.modules) - before)
"""
OF_HELP = {
    "evalwright", "evalwright.built_in", "evalwright.cli", "evalwright.cli.commands", "evalwright.errors",
    "evalwright.registry",
    "signal",
}  # fmt: skip
"""Who makes one of these slower makes every command slower."""


def test_help_loads_click_and_a_few_other_modules() -> None:
    click = "import click, dataclasses; loaded_by(lambda: click.Group('x', help='y').main(['--help']))"
    ours = "from evalwright.cli import main; main(['--help'])"
    done = python("-c", f"{ASKED}{click}\nprint(*loaded_by(lambda: exec({ours!r})))")
    assert {*done.stdout.split()} - {"__future__"} == OF_HELP


def test_importing_the_package_loads_nothing_else() -> None:
    done = python("-c", f"{ASKED}import importlib\nprint(*loaded_by(lambda: exec('import evalwright')))")
    assert {*done.stdout.split()} - {"__future__"} == {"evalwright"}


def test_help_names_every_command_below_a_heading() -> None:
    listed = python("-m", "evalwright", "--help").stdout.partition("Show this message and exit.\n")[2]
    assert re.findall(r"^  ([a-z][a-z-]*) ", listed, re.MULTILINE) == list(commands())
    assert re.findall(r"^(\w.*):$", listed, re.MULTILINE)[:3] == ["Run suites", "Look at runs", "Compare and decide"]
    columns = {len(line[1]) for line in re.finditer(r"^(  [a-z][a-z-]* +)\S", listed, re.MULTILINE)}
    assert len(columns) == 1, "the lines of all sections begin in one column"


@pytest.mark.parametrize("name", commands())
def test_every_command_explains_itself(name: str, tmp_path: Path) -> None:
    with warm.forking():
        stdout = warm.run(["-m", "evalwright", name, "--help"], cwd=tmp_path, check=True).stdout
    assert f"Usage: evalwright {name} " in stdout


def test_a_command_says_what_it_does_also_if_python_has_removed_its_docstring() -> None:
    assert commands()["resume"] in python("-OO", "-m", "evalwright", "resume", "--help").stdout


def test_options_that_only_a_run_reads_are_in_its_help_alone_and_accepted_elsewhere(tmp_path: Path) -> None:
    def evalwright(*words: str) -> subprocess.CompletedProcess[str]:
        with warm.forking():
            return warm.run(["-m", "evalwright", *words], cwd=tmp_path)

    run, validate, convert = (evalwright(name, "--help").stdout for name in ("run", "validate", "convert"))
    for flag in ("--output-format", "--display", "--benchmark", "--api-key"):
        assert (flag in run, flag in validate, flag in convert) == (True, False, False)
    assert all("--targets" in text for text in (run, validate, convert))
    assert "No such option" not in evalwright("validate", ".", "--output", "x.json").stderr


def test_the_version_is_that_of_the_package() -> None:
    assert python("-m", "evalwright", "--version").stdout == f"evalwright {__version__}\n"
