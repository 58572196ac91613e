"""Reports that are written in pieces: what they hold meanwhile."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from acceptance.projects import Project, project
from evalwright.registry import load
from evalwright.run.outcomes import folded_summary
from evalwright.run.stored_run import open_run

CASES = 400


OTHERS = pytest.mark.slow("reads a long run, and follows its memory")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path]:
    """A run in which each cell failed, with an index."""
    suite = project(tmp_path_factory.mktemp("pieces"), {f"c{n}": "no" for n in range(CASES)})
    run = suite.run()
    assert suite.evalwright("index", run).code == 0
    return suite, run


@pytest.mark.parametrize(
    "form", ["json", *(pytest.param(name, marks=OTHERS) for name in ("agentv", "codequality", "sonar"))]
)
def test_of_an_indexed_run_one_cell_at_a_time_is_held(made: tuple[Project, Path], form: str) -> None:
    reader, plan = open_run(made[1])
    reader.plan = plan
    with closing(reader):
        summary = folded_summary(reader, plan)

        def blocks_held() -> int:
            before = sys.getallocatedblocks()
            return max(sys.getallocatedblocks() for _ in load("reports", form)().pieces(reader, summary)) - before

        blocks_held()  # modules and caches
        assert blocks_held() < 3 * CASES
