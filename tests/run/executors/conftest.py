"""A stand-in for Ray whose workers are processes of their own, a real cluster, and projects for their drivers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from run.executors.far_projects import Project
from run.executors.machines import Machines
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


@pytest.fixture(scope="package")
def machines() -> Iterator[Machines]:
    """A real cluster of two machines; made once for all tests of this folder."""
    cluster = Machines()
    try:
        cluster.add()
        yield cluster
    finally:
        cluster.end()


@pytest.fixture
def project(tmp_path: Path, machines: Machines) -> Project:
    return Project(tmp_path, machines)
