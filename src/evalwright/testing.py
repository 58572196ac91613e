"""For the tests of your own targets, evaluators and stores: a store in memory, and small valid records.

Each `a_...` function makes a record with all required fields; keywords set those that the test is about:
`a_trace(case_id="refund", output=Output("Done"))`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from evalwright.model.plan import EvaluatorSpec, Plan, Variant
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Output, Trace
from evalwright.registry import NATIVE
from evalwright.stores.memory import MemoryRun, MemoryStore

__all__ = ["MemoryRun", "MemoryStore", "a_case", "a_plan", "a_result", "a_summary", "a_trace", "a_verdict"]

_MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


def a_case(**fields: Any) -> Case:
    """A case `c1` that says hello; `fields` are those of `Case`."""
    return Case(**{"id": "c1", "input": {"user_message": "Hello"}, **fields})


def a_plan(**fields: Any) -> Plan:
    """The plan of a run of one case, one variant `v1` and one evaluator `says_hello`; `fields` are those of `Plan`."""
    defaults: dict[str, Any] = {
        "run_id": "2026-01-02T03-04-05_demo",
        "name": "demo",
        "dialect": NATIVE,
        "started_at": _MOMENT,
        "config_path": "eval.yaml",
        "config_hash": "0" * 64,
        "cases_total": 1,
        "variants": [Variant("v1", "python_function")],
        "evaluators": [EvaluatorSpec("says_hello", "contains_text")],
    }
    return Plan(**{**defaults, **fields})


def a_trace(**fields: Any) -> Trace:
    """The trace of the first trial of case `c1` with variant `v1`, answered at once; `fields` are those of `Trace`."""
    return Trace(**{**_cell(), **_times(), "input": {"user_message": "Hello"}, "output": Output("Hello!"), **fields})


def a_result(**fields: Any) -> EvaluationResult:
    """The result of `says_hello` for that trace, which passes; `fields` are those of `EvaluationResult`."""
    check = {"evaluator": "says_hello", "evaluator_type": "contains_text", "passed": True}
    return EvaluationResult(**{**_cell(), **_times(), **check, **fields})


def a_verdict(**fields: Any) -> CaseVerdict:
    """The verdict of that cell, `pass`; `fields` are those of `CaseVerdict`."""
    return CaseVerdict(**{**_cell(), "status": "pass", **fields})


def a_summary(**fields: Any) -> RunSummary:
    """The summary of a run of one case, without variants and evaluators; `fields` are those of `RunSummary`."""
    defaults: dict[str, Any] = {
        "run_id": "2026-01-02T03-04-05_demo",
        "started_at": _MOMENT,
        "finished_at": _MOMENT,
        "config_path": "eval.yaml",
        "config_hash": "0" * 64,
        "cases_total": 1,
        "variants": [],
        "by_evaluator": [],
    }
    return RunSummary(**{**defaults, **fields})


def _cell() -> dict[str, Any]:
    return {"case_id": "c1", "variant_name": "v1"}


def _times() -> dict[str, Any]:
    return {"started_at": _MOMENT, "finished_at": _MOMENT, "latency_ms": 0}
