"""Evaluators of other packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from evalwright.run.start import run_suite
from run.suites import suite

_NOTES = """
from __future__ import annotations
from pathlib import Path

class Notes:
    def __init__(self, folder: Path, limit: int = 3, extra: Unread = None, **more: str) -> None:
        print(Path(folder), limit, extra, more)

    def evaluate(self, case, trace): ...
"""


def test_a_class_that_is_no_evaluator_is_refused_before_anything_is_judged(tmp_path: Path) -> None:
    said = _built(tmp_path, "collections:OrderedDict", "{}")
    assert "InputError: 'odd' is not an evaluator: no method evaluate(case, trace)" in said


def test_what_a_class_makes_of_its_values_is_up_to_it(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(_NOTES)
    assert _built(tmp_path, "notes:Notes", "{'folder': 'here', 'extra': [1], 'tone': 'kind'}") == (
        "here 3 [1] {'tone': 'kind'}\n"
    )


def test_every_mistake_in_the_arguments_of_a_class_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(_NOTES.replace("extra: Unread", "extra: list | None"))
    said = _built(tmp_path, "notes:Notes", "{'limit': 'x'}")
    assert "'limit' must be an integer, found the string 'x'" in said
    assert "the required key 'folder' is missing" in said


_PARTED = """
import dataclasses
import msgspec

@dataclasses.dataclass
class Limit:
    most: int

class Parted(msgspec.Struct, frozen=True):
    limit: Limit

    def evaluate(self, case, trace): ...
"""


def test_a_key_that_a_dataclass_of_another_package_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "parted.py").write_text(_PARTED)
    said = _built(tmp_path, "parted:Parted", "{'limit': {}}")
    assert "the required key 'most' is missing, expected an integer" in said


def test_a_wrong_value_in_a_dataclass_of_another_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "parted.py").write_text(_PARTED)
    said = _built(tmp_path, "parted:Parted", "{'limit': {'most': 'two'}}")
    assert "'limit.most' must be an integer, found the string 'two'" in said


_OURS_CHANGED = """
from evalwright.evaluators.text.contains import ContainsText
from evalwright.plugins import Evaluation

def said(trace):
    return Evaluation(False, 0.0, f"{len(trace.tool_calls)} calls")

class Evaluates(ContainsText, frozen=True):
    def evaluate(self, case, trace):
        return said(trace)

class Looks(ContainsText, frozen=True):
    def look(self, case, trace):
        return said(trace)

class IsLooking(ContainsText, frozen=True):
    def looking(self):
        return lambda case, trace: said(trace)
"""
_SUITE = """
eval: {name: changed}
output: {type: local_files, path: runs}
dataset: {type: jsonl, path: cases.jsonl}
systems: [{name: agent, adapter: python_function, target: "agent:answer"}]
evaluators:
  - {name: Evaluates, type: Evaluates, config: {all_of: [blue]}}
  - {name: Looks, type: Looks, config: {all_of: [blue]}}
  - {name: IsLooking, type: IsLooking, config: {all_of: [blue]}}
"""
_AGENT = """
from evalwright.plugins import Answer, ToolCall

def answer(case):
    return Answer.of("blue", tool_calls=[ToolCall("look"), ToolCall("tell")])
"""


def test_a_subclass_that_overrides_how_a_builtin_judges_is_called_itself(tmp_path: Path) -> None:
    """In a run, and when its answers are judged again, where checks of ours get only what they read."""
    (tmp_path / "changed.py").write_text(_OURS_CHANGED)
    names = ("Evaluates", "Looks", "IsLooking")
    environ = _installed(tmp_path, {name: f"changed:{name}" for name in names})
    for file, text in {
        "eval.yaml": _SUITE,
        "agent.py": _AGENT,
        "cases.jsonl": '{"id": "c", "input": {"text": "?"}}\n',
    }.items():
        (tmp_path / file).write_text(text)

    def judged(*arguments: str) -> dict[str, str]:
        command = [sys.executable, "-m", "evalwright", *arguments]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        [results] = tmp_path.rglob("results.jsonl")
        rows = map(json.loads, results.read_text().splitlines())
        return {row["evaluator"]: row["reason"] for row in rows}

    assert judged("run", "eval.yaml") == dict.fromkeys(names, "2 calls")
    assert judged("re-evaluate", str(*(tmp_path / "runs").iterdir())) == dict.fromkeys(names, "2 calls")


def _built(folder: Path, reference: str, config: str) -> str:
    """What is printed when an evaluator of another package is built."""
    environ = _installed(folder, {"odd": reference})
    program = f"from evalwright.evaluators.build import build_evaluator; build_evaluator('odd', {config})"
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True)
    return done.stdout + done.stderr


def _installed(folder: Path, evaluators: dict[str, str]) -> dict[str, str]:
    """The environment of a process that finds evaluators of another package, which is in a folder."""
    package = folder / "odd-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    points = "".join(f"{name} = {reference}\n" for name, reference in evaluators.items())
    (package / "entry_points.txt").write_text(f"[evalwright.evaluators]\n{points}")
    return {**os.environ, "PYTHONPATH": str(folder)}


BROKEN = """
class Broken:
    def import_files(self, files):
        raise NotImplementedError

    def render(self, reader, summary):
        return summary.nothing_of_that_name
"""


def test_an_importer_or_report_that_raises_is_not_our_error(tmp_path: Path) -> None:
    """But a mistake of the package that has it, which is named."""
    environ = _installed(tmp_path, {})
    points = tmp_path / "odd-1.0.dist-info" / "entry_points.txt"
    points.write_text("[evalwright.importers]\nnotes = broken:Broken\n[evalwright.reports]\nbrief = broken:Broken\n")
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "notes").write_text("x")
    run = run_suite(suite(tmp_path, ["done"])).run_dir
    for words, said in (
        (["import", "notes", "--format", "notes", "--out", "new"], "input format 'notes' of odd failed: TypeError"),
        (["report", str(run), "--format", "brief"], "report format 'brief' of odd failed: AttributeError"),
    ):
        command = [sys.executable, "-m", "evalwright", *words]
        ended = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True)
        assert (ended.returncode, said in ended.stderr) == (2, True), ended.stderr
