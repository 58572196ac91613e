"""The numbers that an original system would give for a run, and the gates of whole runs: one kind for each dialect."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any, Protocol

from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import RunSummary
from evalwright.scoring.facts import ResultLike, TraceLike

__all__ = ["Aggregate", "aggregate_of"]

_KINDS: dict[str, str] = {
    "agentv": "evalwright.formats.agentv.totals:AgentvAggregate",
    "letta": "evalwright.formats.letta.totals:LettaAggregate",
    "northstar": "evalwright.formats.northstar.totals:NorthstarAggregate",
    "pixie": "evalwright.formats.pixie.totals:PixieAggregate",
}
"""Dialect to `module:class`; the class is called with the plan."""


class Aggregate(Protocol):
    """Counts cells one by one, like the tally that holds it; counts of shares of a run add up. Picklable."""

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        """Count one finished cell with its verdict; the score is there only where cases bring their evaluators."""

    def merge(self, other: Any) -> None:
        """Add the count of another share of the same run."""

    def finish(self, summary: RunSummary) -> None:
        """Put `native` and `gate` into the summary."""


def aggregate_of(plan: Plan) -> Aggregate | None:
    """The empty aggregate of a plan's format; of the native one, that of its gate if it has one."""
    place = _KINDS.get(plan.totals or plan.dialect)
    if place is None:
        if plan.gate is None:
            return None
        place = "evalwright.formats.native.totals:GateAggregate"
    module, _, name = place.partition(":")
    made: Aggregate = getattr(import_module(module), name)(plan)
    return made
