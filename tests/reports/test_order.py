"""Cells are listed in the order of the dataset, whichever ended first."""

from __future__ import annotations

import json
import random
import re

import pytest

from evalwright.model.plan import Variant
from evalwright.model.result import Status
from evalwright.model.summary import RunSummary
from evalwright.registry import load
from evalwright.reports.failures import find_failures
from evalwright.reports.order import First, order_of
from evalwright.reports.reasons import group_reasons
from evalwright.reports.terminal import failure_lines
from evalwright.reports.text import Paint
from evalwright.testing import MemoryRun, a_verdict
from reports.runs import plan, stored, summary, variant

NAMES = [f"k{i:02}" for i in range(12)]


def mixed(status: Status) -> tuple[MemoryRun, RunSummary]:
    """Cells of two variants that ended in any order."""
    verdicts = [
        a_verdict(case_id=name, variant_name=of, case_index=i, status=status, reasons=["no"])
        for i, name in enumerate(NAMES)
        for of in ("old", "new")
    ]
    random.Random(7).shuffle(verdicts)
    cells = {status: len(NAMES)}
    return stored(*verdicts), summary(variants=[variant("old", cells=cells), variant("new", cells=cells)])


EXPECTED = [(name, of) for name in NAMES for of in ("old", "new")]


@pytest.mark.parametrize("status", ["fail", "borderline", "error"])
def test_the_first_failures_are_those_of_the_dataset(status: Status) -> None:
    run, of = mixed(status)
    failures = find_failures(run, of, 5)
    listed = failures.errored if status == "error" else failures.failed
    assert [(v.case_id, v.variant_name) for v in listed] == EXPECTED[:5]
    lines = failure_lines(*group_reasons(run, of), plan(), of, "run", Paint())
    assert [name for line in lines for name in re.findall(r"k\d\d", line)] == [name for name, _ in EXPECTED[:3]]


@pytest.mark.parametrize("name", ["junit", "markdown", "html"])
@pytest.mark.parametrize("status", ["fail", "error"])
def test_reports_list_cells_in_the_order_of_the_dataset(name: str, status: Status) -> None:
    text = load("reports", name)().render(*mixed(status))
    found = list(dict.fromkeys(re.findall(r"k\d\d", text)))
    assert found == NAMES


def test_json_lists_cells_in_the_order_of_the_dataset() -> None:
    cells = json.loads(load("reports", "json")().render(*mixed("fail")))["cells"]
    assert [(cell["case_id"], cell["variant_name"]) for cell in cells] == EXPECTED


def test_records_without_a_place_stay_as_they_are_stored_behind_the_others() -> None:
    first = First(10, order_of([Variant("v", "replay")]))
    for name, index in (("y", None), ("b", 2), ("x", None), ("a", 1)):
        first.add(a_verdict(case_id=name, case_index=index))
    assert [one.case_id for one in first.sorted()] == ["a", "b", "y", "x"]


def test_of_many_only_the_first_are_kept() -> None:
    first = First(3, order_of([Variant("v", "replay")]))
    for index in random.Random(3).sample(range(1000), 1000):
        first.add(a_verdict(case_id=str(index), case_index=index))
    assert [one.case_id for one in first.sorted()] == ["0", "1", "2"]
