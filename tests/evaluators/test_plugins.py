"""Evaluators of other packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = "from evalwright.evaluators.build import build_evaluator; build_evaluator('odd', {})"


def test_a_class_that_is_no_evaluator_is_refused_before_anything_is_judged(tmp_path: Path) -> None:
    package = tmp_path / "odd-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[evalwright.evaluators]\nodd = collections:OrderedDict\n")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=environ, capture_output=True, text=True)
    assert "InputError: 'odd' is not an evaluator: no method evaluate(case, trace)" in done.stderr
