"""Decisions in which errors of the system count as failures, and claims that trials without a verdict could undo."""

from __future__ import annotations

from decisions.small_runs import PLAN, run
from evalwright.decisions.engine import decision_of
from evalwright.decisions.identity import Identity
from evalwright.decisions.pairing import CaseGroups
from evalwright.decisions.runs import two_runs
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Guard, Terms
from evalwright.decisions.tradeoffs import dominated
from evalwright.model.decision import Decision
from evalwright.model.trace import TraceError
from evalwright.testing import a_trace
from scoring.histories import stored

CELLS = [("c0", True), ("c1", True), ("c2", False)]
SPANISH = [f"c{i}" for i in range(20)]


def passing(*, erred: int = 0) -> SideCounts:
    """100 cases that pass and have a score of 1; the system breaks down in the first of them."""
    outcomes = {f"c{i}": CaseTotal(0.0, 0, 1) if i < erred else CaseTotal(1.0, 1, passed=1) for i in range(100)}
    return SideCounts("v", passes=outcomes, scores={"polite": {**outcomes}})


def failing_errors(**terms: object) -> Decision:
    known = CaseGroups({}, {("lang", "es"): SPANISH})
    return decision_of(passing(), passing(erred=20), Terms(errors="fail", margin=0.5, **terms), Identity(), known)  # type: ignore[arg-type]


def test_a_slice_counts_errors_that_are_failures() -> None:
    decision = failing_errors(slices=("lang",), slice_margin=0.05)
    (part,) = decision.slices
    assert (part.difference, part.n) == (-1.0, 20)
    assert (decision.verdict, decision.reasons) == ("dont", ["slice lang=es"])


def test_evaluators_and_their_guards_count_errors_that_are_failures() -> None:
    decision = failing_errors(guards=(Guard("evaluator:polite", -0.01),))
    (guard,), (part,) = decision.guards, decision.evaluators
    assert (guard.value, guard.state, decision.verdict) == (-0.2, "broken", "dont")
    assert (part.difference, part.rate_difference, part.n) == (-0.2, -0.2, 100)


def test_evaluators_of_a_run_whose_cells_all_erred_are_those_of_its_plan() -> None:
    """A system that breaks down everywhere is no reason to say that there is no such evaluator."""
    error = TraceError("timeout", "")
    before, after = run(*CELLS), [a_trace(case_id=case, variant_name="v0", error=error) for case, _ in CELLS]
    runs = two_runs(stored(before, PLAN), PLAN, stored([*after], PLAN), PLAN, Terms(metric="e0"))
    decision = runs.decision("v0", "v0")
    assert (decision.verdict, decision.errors.a.target, decision.errors.b.target) == ("undecided", 0, 3)


def test_a_variant_whose_errors_may_be_failures_dominates_none() -> None:
    """The system that broke down in 20 of 100 cases is cheaper in the others."""
    dear, cheap = passing(), passing(erred=20)
    for i in range(100):
        dear.measures["cost"].add(f"c{i}", 2.0 + i % 3)
        if i >= 20:
            cheap.measures["cost"].add(f"c{i}", 1.0 + i % 3)
    sides = {"dear": dear, "cheap": cheap}
    assert dominated(sides, Terms(margin=0.1), CaseGroups()) == {}
    assert dominated(sides, Terms(margin=0.4), CaseGroups()) == {"dear": ["cheap"]}
