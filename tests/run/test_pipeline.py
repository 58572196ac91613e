"""What a plan does not use costs its cells nothing: no call, and not even an import."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

JOURNEY = Path(__file__).parents[2] / "benchmarks" / "journey.py"
MOST_FILES_OF_A_CELL, MOST_FILES = 19, 86
"""Each file is one more that a reader of a run has to open; a feature that a run does not use adds none."""
UNUSED = (
    *(f"evalwright.run.steps.{step}" for step in ("awaited", "enrich", "mirror", "price", "spoil", "workspace")),
    *(
        f"evalwright.run.{name}"
        for name in (
            "addresses",
            "attempts",
            "calibration",
            "children",
            "history",
            "isolation",
            "judge_again",
            "judge_part",
            "judge_processes",
            "judge_queue",
            "leases",
            "leftovers",
            "missing_keys",
            "origin",
            "re_evaluation",
            "replay",
            "resumption",
            "standstill",
            "worker",
        )
    ),
    *(f"evalwright.{room}" for room in ("decisions", "enrichers", "importers", "llm.models", "mirrors", "workspaces")),
    "evalwright.files.problems",
    "evalwright.formats.discovery",
    "evalwright.formats.native.yaml_datasets",
    "evalwright.reports.failures",
    "evalwright.reports.reasons",
    "evalwright.scoring.bands",
    "evalwright.statistics.proportions",
)


@pytest.fixture(scope="module")
def plain_run() -> dict[str, list[str]]:
    """A run in a fresh process of three cases with one check: its functions, those of each cell, its modules."""
    done = subprocess.run([sys.executable, str(JOURNEY), "--child", "native"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return document


def test_steps_that_a_plan_does_not_need_are_not_loaded(plain_run: dict[str, list[str]]) -> None:
    assert [name for name in UNUSED if name in plain_run["modules"]] == []


@pytest.mark.parametrize("name", UNUSED)
def test_what_is_named_as_unused_is_there(name: str) -> None:
    assert find_spec(name) is not None


def test_a_cell_goes_through_few_files(plain_run: dict[str, list[str]]) -> None:
    files = {place.partition(":")[0] for place in plain_run["cell_functions"]}
    assert len(files) <= MOST_FILES_OF_A_CELL, sorted(files)


def test_a_run_goes_through_few_files(plain_run: dict[str, list[str]]) -> None:
    files = {place.partition(":")[0] for place in plain_run["functions"]}
    assert len(files) <= MOST_FILES, sorted(files)
