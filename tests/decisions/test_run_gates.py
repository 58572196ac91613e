"""Gates by a rate of a run, and against a baseline."""

from __future__ import annotations

import pytest

from decisions.small_runs import PLAN, at_least, run
from evalwright.decisions.claims import decided_against, decided_rates
from evalwright.decisions.runs import one_run, two_runs
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Terms
from scoring.histories import stored


@pytest.mark.parametrize(
    ("least", "rule", "passed", "undecided"),
    [(0.75, "point", True, False), (0.76, "point", False, False), (0.75, "interval", False, True)],
)
def test_a_rate_that_is_just_reached_is_enough_for_a_bare_threshold(
    least: float, rule: str, passed: bool, undecided: bool
) -> None:
    gate = at_least(least, rule, 3, 4)
    assert (gate.passed, gate.undecided) == (passed, undecided)


def test_a_gate_against_a_baseline_says_open_of_what_unreadable_records_leave_open() -> None:
    before, after = (stored(run(*((f"c{i}", found) for i in range(40))), PLAN) for found in (False, True))
    runs = two_runs(before, PLAN, after, PLAN, Terms(margin=0.02))
    claim = {"claim": "not_worse_than", "metric": "pass_rate", "against": "baseline", "on_undecided": "fail"}
    shown = decided_against(claim, runs, [("v0", "v0")])
    runs.damage = lambda: ["results.jsonl:4: damaged"]
    left = decided_against(claim, runs, [("v0", "v0")])
    assert [(one.passed, one.undecided, one.parts[0].passed, one.parts[0].undecided) for one in (shown, left)] == [
        (True, False, True, False),
        (False, True, False, True),
    ]


def test_a_run_of_passes_does_not_refute_that_everything_passes() -> None:
    assert at_least(1.0, "interval", 40, 40).undecided
    assert not at_least(1.0, "interval", 20, 40).undecided


@pytest.mark.parametrize(("skipped", "noted"), [(0, False), (5, False), (20, True)])
def test_a_gate_that_passes_for_what_was_skipped_says_so(skipped: int, noted: bool) -> None:
    claim = {"at_least": 0.8, "metric": "pass_rate", "alpha": 0.05, "on_undecided": "fail", "group": None}
    runs = one_run(stored(run(("c0", True)), PLAN), PLAN, Terms())
    cases = {f"c{i}": CaseTotal(1.0, 1) if i >= skipped else CaseTotal(skipped=1) for i in range(80)}
    runs.b = {"v0": SideCounts("v0", passes=cases)}
    gate = decided_rates({**claim, "rule": "interval"}, runs)
    assert gate.passed
    said = "20 skipped trials of v0 count for nothing: the gate would not pass if they had failed"
    assert gate.reason == (said if noted else "")
