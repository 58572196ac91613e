"""The summary of a run: its counts, and what is decided of it as a whole."""

from __future__ import annotations

from datetime import datetime

from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.summary import RunSummary
from evalwright.scoring.tally import Tally

__all__ = ["is_decided", "summed_up"]


def summed_up(tally: Tally, reader: RunReader, plan: Plan, finished_at: datetime) -> RunSummary:
    """The numbers of a run that was counted; its records are read again only where something is decided of it."""
    summary = tally.summary(plan, finished_at)
    if is_decided(plan):
        from evalwright.run.decided import add_decisions

        add_decisions(summary, reader, plan)
    return summary


def is_decided(plan: Plan) -> bool:
    """Whether a run is decided as a whole by more than its counts."""
    claims = plan.gate is not None and plan.gate["kind"] == "claims"
    return claims or plan.run.baseline_variant is not None or plan.until_decided is not None
