"""A stand-in for Ray whose workers are processes of their own, and a project for its driver."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from run.executors.near_end import SECRET, NearEnd


@pytest.fixture
def near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NearEnd]:
    end = NearEnd(tmp_path / "copy")
    monkeypatch.setitem(sys.modules, "ray", end)
    monkeypatch.setenv("KEY_HERE", SECRET)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield end
    end.close()
