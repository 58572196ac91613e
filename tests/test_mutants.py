"""`make mutants` names the broken guards that no test notices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "mutants.py"
LIMITED = """
def limited(number: int) -> int:
    if number < 0:
        raise ValueError(number)
    return number
"""
TEST = """
import pytest
from tiny.room.limits import limited

def test_limited():
    assert limited(1) == 1
    with pytest.raises(ValueError):
        limited(-1)
"""


@pytest.mark.cold
def test_a_broken_guard_survives_unless_a_test_notices_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, tests = tmp_path / "src" / "tiny" / "room", tmp_path / "tests" / "room"
    for folder in (package, tests):
        folder.mkdir(parents=True)
    module = package / "limits.py"
    module.write_text(LIMITED, "utf-8")
    (tests / "test_limits.py").write_text(TEST, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow", "utf-8")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    done = subprocess.run(
        [sys.executable, SCRIPT, "--root", tmp_path, "--seed", "1"], capture_output=True, text=True, check=False
    )
    first, *each, count, survivor = done.stdout.splitlines()
    assert first == "2 mutants of seed 1"
    assert sorted(line.split()[0] for line in each) == ["died", "survived"], done.stdout
    assert (count, survivor.strip()) == ("1 of 2 survived", "src/tiny/room/limits.py:3: number < 0 -> (number <= 0)")
    assert done.returncode == 1
    assert module.read_text("utf-8") == LIMITED
