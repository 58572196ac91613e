"""Pages, files and labels of a run whose cells are still being read."""

from __future__ import annotations

import re
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

import pytest

from evalwright.cli.viewed_runs import runs_at
from evalwright.testing import MemoryStore, a_case, a_plan, a_result, a_trace, a_verdict
from evalwright.viewer.table_build import fill_table
from viewer.reading import page, seen
from viewer.runs import made_run, site, site_of

TOKEN = "t" * 32
LONGER_THAN_A_PAGE_WAITS = 0.6
"""Seconds."""
ORIGIN = {"Origin": "http://127.0.0.1:7766"}


class SlowRun:
    """A run of many records, which are read once `go_on` is set."""

    def __init__(self, run) -> None:
        (self._run,) = runs_at([run])
        self.go_on = threading.Event()

    def __getattr__(self, name):
        return getattr(self._run, name)

    def size(self):
        return 1 << 40

    def open(self):
        if threading.current_thread().name.startswith("table of"):
            self.go_on.wait(60)
        return self._run.open()


@pytest.fixture
def slow(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one = SlowRun(run)
    yield one
    one.go_on.set()


@pytest.fixture
def reading(slow):
    with site_of(lambda: [slow], labels=True, labeller="ann") as client:
        yield client


@pytest.fixture(scope="module")
def key(run, client):
    """That of the cell with the case `case-3`."""
    address = client.get(f"/runs/{run.name}/cells?case=case-3&trial=0").headers["location"]
    return address.rpartition("/")[2]


def test_the_progress_is_that_of_all_records():
    plan = a_plan(cases_total=500)
    run = MemoryStore().create(plan, [a_case(id=f"c{number}") for number in range(500)], {})
    for number in range(500):
        cell = {"case_id": f"c{number}", "variant_name": plan.variants[0].name}
        run.append_trace(a_trace(**cell, case_index=number))
        run.append_results([a_result(**cell)])
        run.append_verdict(a_verdict(**cell))
    told: list[int] = []
    with closing(sqlite3.connect(":memory:")) as file:
        fill_table(file, run, plan, told.append)
    assert told == [1000]


@pytest.mark.parametrize(
    ("path", "heading"),
    [
        ("cells/{key}", "case-3"),
        ("trials?case=case-3", "case-3"),
        ("label", "Label answers"),
    ],
)
def test_a_page_says_that_cells_are_being_read_and_appears_when_they_are(run, reading, slow, key, path, heading):
    address = f"/runs/{run.name}/{path.format(key=key)}"
    first = reading.get(address)
    assert (first.status_code, "data-refresh" in first.text) == (200, True)
    assert "indexing 0 %" in seen(first.text)
    slow.go_on.set()
    assert f"<h1>{heading}" in page(reading, address)


def test_the_address_of_a_case_says_that_cells_are_being_read(run, reading):
    answer = reading.get(f"/runs/{run.name}/cells?case=case-3")
    assert (answer.status_code, "indexing 0 %" in seen(answer.text)) == (200, True)


@pytest.mark.parametrize("path", ["cells.csv", "cells/{key}.json", "cells/{key}/whole?part=trace/case_id"])
def test_a_file_waits_until_the_cells_are_read(run, reading, slow, key, path):
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(reading.get, f"/runs/{run.name}/{path.format(key=key)}")
        wait([waiting], timeout=LONGER_THAN_A_PAGE_WAITS)
        slow.go_on.set()
        answer = waiting.result(60)
    assert (answer.status_code, "case-3" in answer.text) == (200, True)


def test_a_label_waits_until_the_cells_are_read(tmp_path):
    run = made_run(tmp_path, trials=1)
    slow = SlowRun(run)
    with site(run.parent, TOKEN, labeller="ann") as ready, site_of(lambda: [slow], TOKEN, labeller="ann") as reading:
        for one in (ready, reading):
            one.cookies.set("evalwright_7766", TOKEN)
        text = page(ready, f"/runs/{run.name}/label?evaluator=says&order=suite")
        form = {**dict(re.findall(r'name="(\w+)" value="([^"]*)"', text)), "verdict": "pass"}
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(reading.post, f"/runs/{run.name}/labels", data=form, headers=ORIGIN)
            wait([waiting], timeout=LONGER_THAN_A_PAGE_WAITS)
            slow.go_on.set()
            assert waiting.result(60).status_code == 303
    assert "case-0" in (run / "labels.csv").read_text()
