"""Evaluators of other packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
    assert "'limit' must be an int, found the string 'x'" in said
    assert "the required key 'folder' is missing" in said


def _built(folder: Path, reference: str, config: str) -> str:
    """What is printed when an evaluator of another package is built."""
    package = folder / "odd-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[evalwright.evaluators]\nodd = {reference}\n")
    program = f"from evalwright.evaluators.build import build_evaluator; build_evaluator('odd', {config})"
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True)
    return done.stdout + done.stderr
