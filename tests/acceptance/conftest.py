"""Runs that several modules of tests read."""

from __future__ import annotations

import pytest

from acceptance.projects import TWO_SYSTEMS, Project, project

A = {"a1": "thanks", "b1": {"v": "thanks", "w": "no"}, "c1": "raise", "only-a": "thanks"}
B = {"a1": {"v": "no", "w": "thanks"}, "b1": "thanks", "c1": "raise", "only-b": "x" * 2000}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("reading")
    project(folder, B, TWO_SYSTEMS).run("--out", "b")
    suite = project(folder, A, TWO_SYSTEMS)
    suite.run("--out", "a")
    return suite
