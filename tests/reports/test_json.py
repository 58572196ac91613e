from __future__ import annotations

import json

from evalwright.reports.json import JsonReport
from evalwright.testing import a_verdict
from reports.runs import ERRORED, FAILED, stored, summary


def test_the_report_holds_the_summary_and_the_newest_verdict_of_each_cell() -> None:
    again = a_verdict(case_id="c7", variant_name="old", status="pass", attempt=2)
    document = json.loads(JsonReport().render(stored(FAILED, ERRORED, again), summary()))
    assert document["summary"]["variants"][0]["pass_rate_ci95"] == [0.551, 0.88]
    assert [(cell["case_id"], cell["status"]) for cell in document["cells"]] == [("c3", "fail"), ("c7", "pass")]
