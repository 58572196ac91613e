from __future__ import annotations

import json
from pathlib import Path

import msgspec

from acceptance.projects import project
from evalwright.reports.json import JsonReport
from evalwright.testing import a_verdict
from reports.runs import ERRORED, FAILED, stored, summary


def test_the_report_holds_the_summary_and_the_newest_verdict_of_each_cell() -> None:
    again = a_verdict(case_id="c7", variant_name="old", status="pass", attempt=2)
    document = json.loads(JsonReport().render(stored(FAILED, ERRORED, again), summary()))
    assert document["summary"]["variants"][0]["pass_rate_ci95"] == [0.551, 0.88]
    assert [(cell["case_id"], cell["status"]) for cell in document["cells"]] == [("c3", "fail"), ("c7", "pass")]


def test_it_is_laid_out_as_one_object_and_the_same_from_the_index_of_a_run(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "x", "b\n": "[{", "c": ""})
    run = made.run()
    scanned = made.evalwright("report", run, "--format", "json").out
    assert scanned == msgspec.json.format(scanned, indent=2) + "\n"
    assert [cell["case_id"] for cell in json.loads(scanned)["cells"]] == ["a", "b\n", "c"]
    assert made.evalwright("index", run).code == 0
    assert made.evalwright("report", run, "--format", "json").out == scanned
    made.evalwright("report", run, "--format", "json", "--out", tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text() == scanned
    assert JsonReport().render(stored(), summary()).endswith('"cells": []\n}\n')
