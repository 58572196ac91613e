"""The decisions behind a gate, for every report: as `decide` prints them."""

from __future__ import annotations

from evalwright.model.summary import GateOutcome, decisions_of
from evalwright.reports.text import Paint

__all__ = ["gate_decisions"]


def gate_decisions(gate: GateOutcome, paint: Paint) -> list[str]:
    """The lines of each decision; none for a gate without a baseline, which has no decisions."""
    decisions = decisions_of(gate)
    if not decisions:
        return []
    from evalwright.reports.decision import decision_lines

    return [line for decision in decisions for line in decision_lines(decision, paint, titled=len(decisions) > 1)]
