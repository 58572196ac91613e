"""The Markdown of `drift`."""

from __future__ import annotations

import msgspec

from evalwright.decisions.comparison import EvaluatorComparison, Side
from evalwright.decisions.drift import Drift, MeasureChange
from evalwright.model.summary import ComparisonReport, VariantDelta
from evalwright.reports.drift import drift_lines
from reports.runs import DECISION, HOSTILE


def test_every_change_of_a_rate_is_in_percentage_points() -> None:
    delta = VariantDelta("current", -0.0833, None, ["c3"], [], 12, (-0.3, 0.1), 0.5)
    report = ComparisonReport("r1", [delta], "drift", "r1", 1, 0, 12, -0.0833)
    sides = Side(1.0, 12, None), Side(0.9167, 12, None)
    says = EvaluatorComparison("says", "v0", *sides, rate_delta=-0.0833, rate_ci=(-0.3, 0.1), rate_p=0.5)
    lines = drift_lines(Drift(report, [says], [], [MeasureChange("latency_ms", 1.0, 2.5, 12, 12)]), "r2")
    assert "- pass rate: -8.33% (percentage points); counts over all 12 cases, no error rate" in lines
    assert "| `says` | `v0` | 100.0% (n=12) | 91.7% (n=12) | −8.3 pp [−30.0, +10.0] | 0.500 |" in lines
    assert "| `latency_ms` | 1 | 2.5 | +1.5 | 12 | 12 |" in lines


def test_a_warning_that_names_an_evaluator_does_not_act() -> None:
    decision = msgspec.structs.replace(DECISION, warnings=[f"judge {HOSTILE} uncalibrated"])
    report = ComparisonReport("r1", [VariantDelta("current", 0.0, None, [], [])], decision=decision)
    lines = drift_lines(Drift(report, [], [], []), "r2")
    (said,) = (line for line in lines if "uncalibrated" in line)
    assert said.startswith("- warning: ``judge x`")
    assert said.endswith("uncalibrated``")
