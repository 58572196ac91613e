"""Bets on units of which some cases were skipped."""

from __future__ import annotations

import pytest

from evalwright.decisions.sequence import UnitSequence
from evalwright.decisions.sides import CaseTotal
from evalwright.model.plan import UntilDecided


def test_a_group_weighs_as_much_as_its_cases_that_were_not_skipped() -> None:
    """Half of the groups got better in ten cases of ten, the others worse in the only case that was not skipped."""
    units = [[f"g{group}c{case}" for case in range(10)] for group in range(60)]
    before = {case: CaseTotal(float(group % 2), 1) for group, cases in enumerate(units) for case in cases}
    terms = UntilDecided("a", "a", "v", "v", margin=0.02, alpha=0.05, seed=0)
    sequence = UnitSequence(terms, units, 1, before, largest=10)
    for group, cases in enumerate(units):
        for place, case in enumerate(cases):
            skipped = group % 2 and place
            sequence.count(case, "v", "skip" if skipped else "fail" if group % 2 else "pass")
    decision = sequence.decision({})
    assert (decision.verdict, [bet.weight for bet in sequence.bets[:2]]) == ("ship", [1.0, 0.1])
    assert decision.ci is not None
    assert decision.difference is not None
    assert decision.ci[0] <= decision.difference <= decision.ci[1]
    assert decision.difference == pytest.approx(9 / 11, abs=0.1)
