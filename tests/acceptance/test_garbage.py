"""What users' code leaves behind is finalised, although our own commands spare themselves the search for garbage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from acceptance.projects import project, rows

AGENT = """
import gc, os

USUAL, KEPT = gc.get_threshold(), []

class Client:
    def __init__(self):
        self.itself = self  # a cycle: only a search for garbage finds it
        self.file, self.write = os.open("closed.txt", os.O_WRONLY | os.O_CREAT), os.write

    def __del__(self):
        self.write(self.file, b"closed")

def run(case, variant):
    KEPT.append(Client())
    return str(USUAL)
"""


@pytest.mark.cold
def test_users_code_has_its_garbage_searched_for_as_usual(tmp_path: Path) -> None:
    project(tmp_path, {"a": "thanks"})
    (tmp_path / "agent.py").write_text(AGENT)
    usual = subprocess.run(
        [sys.executable, "-c", "import gc; print(gc.get_threshold())"], capture_output=True, text=True
    )
    command = [sys.executable, "-m", "evalwright", "run", "eval.yaml", "--exit-zero"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    assert [trace["output"]["final_answer"] for trace in rows(next((tmp_path / "runs").iterdir()), "traces.jsonl")] == [
        usual.stdout.strip()
    ]
    assert (tmp_path / "closed.txt").read_text() == "closed"
