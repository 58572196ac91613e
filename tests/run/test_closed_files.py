"""A system that closes every file of the process costs its own cell at most; the run is never lost."""

import pytest

from evalwright.model.plan import Variant
from evalwright.model.result import CaseVerdict
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import suite


def system(target: str) -> list[Variant]:
    return [Variant("main", "python_function", {"target": target})]


def statuses(folder) -> dict[str, str]:
    reader, _ = open_run(folder)
    return {verdict.case_id: verdict.status for verdict in reader.verdicts(CaseVerdict)}


@pytest.mark.parametrize(("target", "status"), [("agents:closes_a_range", "error"), ("agents:closes_each", "pass")])
def test_through_os_no_file_of_the_run_is_closed(tmp_path, target, status):
    outcome = run_suite(suite(tmp_path, ["done"] * 3, variants=system(target), max_concurrency=1))
    assert statuses(outcome.run_dir) == {"c0": "pass", "c1": status, "c2": "pass"}
