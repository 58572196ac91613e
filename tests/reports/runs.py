"""A hand-made run with everything in it: two variants, two trials, a failure, an error, a comparison."""

from __future__ import annotations

from typing import Any

from evalwright.model.decision import ChangedPart, Decision, ErrorCounts, ErrorPart, IdentityPart, SideRate
from evalwright.model.plan import Plan, RunSettings, Variant
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import (
    ComparisonReport,
    EvaluatorRate,
    EvaluatorRollup,
    RunSummary,
    TrialStatistics,
    VariantDelta,
    VariantSummary,
)
from evalwright.model.trace import TraceError
from evalwright.testing import MemoryRun, MemoryStore, a_case, a_plan, a_summary, a_verdict

HOSTILE = "x`|<script>alert(1)</script>\n# heading\x1b[2J\u202e"


def plan(**fields: Any) -> Plan:
    return a_plan(**{"variants": [Variant("old", "python_function"), Variant("new", "python_function")], **fields})


def summary(**fields: Any) -> RunSummary:
    filled: dict[str, Any] = {
        "cases_total": 24,
        "cells_total": 96,
        "variants": [variant("old"), variant("new", avg_cost_usd=0.0012, cost_n=47)],
        "by_evaluator": [EvaluatorRollup("says_hello", {"old": EvaluatorRate(0.75, 0.75, 48, (0.61, 0.85), 48, 1, 2)})],
        "comparison": ComparisonReport(
            "old", [VariantDelta("new", 0.083, -172.0, ["c3"], ["c1", "c9"], 24, (-0.05, 0.21), 0.412)]
        ),
    }
    return a_summary(**{**filled, **fields})


def variant(name: str, **fields: Any) -> VariantSummary:
    filled: dict[str, Any] = {
        "cases_total": 24,
        "cases_passed": 17,
        "cases_errored": 1,
        "pass_rate": 0.75,
        "avg_latency_ms": 812.0,
        "pass_rate_n": 24,
        "pass_rate_ci95": (0.551, 0.88),
        "cells_total": 48,
        "cells": {"pass": 36, "fail": 11, "error": 1},
        "latency_n": 48,
        "trials": TrialStatistics(2, 24, [0.75, 0.875], [0.75, 0.625]),
    }
    return VariantSummary(name, **{**filled, **fields})


def stored(*verdicts: CaseVerdict) -> MemoryRun:
    run = MemoryStore().create(plan(run=RunSettings(trials=2)), [a_case()], {})
    for verdict in verdicts:
        run.append_verdict(verdict)
    return run


FAILED = a_verdict(case_id="c3", variant_name="new", status="fail", reasons=["says_hello: missing 'hello'"])
ERRORED = a_verdict(case_id="c7", variant_name="old", status="error", error=TraceError("timeout", "no answer"))
DECISION = Decision(
    verdict="undecided",
    variant_a="new",
    variant_b="new",
    difference=0.05,
    ci=(-0.05, 0.15),
    a=SideRate(0.75, (0.5, 0.9), 24),
    b=SideRate(0.8, (0.5, 0.9), 23),
    errors=ErrorPart(ErrorCounts(), ErrorCounts()),
    changed=ChangedPart(),
    identity=IdentityPart(),
)
