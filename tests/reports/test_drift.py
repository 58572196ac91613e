"""The Markdown of `drift`."""

from __future__ import annotations

from evalwright.decisions.drift import Drift, MeasureChange
from evalwright.model.summary import ComparisonReport, VariantDelta
from evalwright.reports.drift import drift_lines


def test_the_pass_rate_reads_as_in_evalh_and_the_tables_as_in_the_other_reports() -> None:
    delta = VariantDelta("current", -0.0833, None, ["c3"], [], 12, (-0.3, 0.1), 0.5)
    report = ComparisonReport("r1", [delta], "drift", "r1", 1, 0, 12, -0.0833)
    lines = drift_lines(Drift(report, [MeasureChange("says", 1.0, 0.9167, 12, 12)], [], []), "r2")
    assert "- pass rate: -8.33% over all 12 cases, no error rate" in lines
    assert "| `says` | 100.0% | 91.7% | −8.3 pp | 12 | 12 |" in lines
