"""What drift holds of two runs while it reads them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from evalwright.decisions.drift import drift
from evalwright.decisions.runs import two_runs
from evalwright.decisions.terms import Terms
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.testing import MemoryStore, a_plan, a_result, a_trace

CASES = 500


class Watched:
    """A run that notes how many blocks of memory are held at the end of its traces, beyond those at the start."""

    def __init__(self, run: Any) -> None:
        self._run, self.held = run, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def traces(self, kind: Any) -> Iterator[Any]:
        before = sys.getallocatedblocks()
        yield from self._run.traces(kind)
        self.held = sys.getallocatedblocks() - before


def test_cells_are_counted_one_by_one() -> None:
    plan = a_plan(cases_total=CASES, variants=[Variant("v", "replay")], evaluators=[EvaluatorSpec("e", "exact_match")])
    run = MemoryStore().create(plan, [], {})
    for number in range(CASES):
        cell = {"case_id": f"c{number}", "variant_name": "v"}
        run.append_trace(a_trace(**cell))
        run.append_results([a_result(**cell, evaluator="e")])
    watched = Watched(run)
    drifted = drift(watched, run, "before", two_runs(run, plan, run, plan, Terms()))
    assert (drifted.report.counted, drifted.report.regressions_count) == (CASES, 0)
    assert watched.held < 3 * CASES
