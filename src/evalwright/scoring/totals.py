"""The numbers that an original system would give for a run, and the gates of whole runs: those of the run's format."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import RunSummary
from evalwright.registry import NATIVE, format_of, format_of_run, resolve
from evalwright.scoring.facts import ResultLike, TraceLike

__all__ = ["Totals", "totals_of"]


class Totals(Protocol):
    """Counts cells one by one, like the tally that holds it; counts of shares of a run add up. Picklable.

    Registered as a callable `(plan) -> Totals | None` in `Format.totals`. One that decides gates of the kind `reward`
    says so by an attribute `rewards = True`.
    """

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        """Count one finished cell with its verdict; the score is there only where cases bring their evaluators."""

    def merge(self, other: Any) -> None:
        """Add the count of another share of the same run."""

    def finish(self, summary: RunSummary) -> None:
        """Put `native` and `gate` into the summary."""


def totals_of(plan: Plan) -> Totals | None:
    """The empty totals of a plan's format; where it has none of its own those of the native one, which are its gate."""
    native, one = format_of(NATIVE), format_of_run(plan.totals, plan.dialect)
    ref = one.totals or native.totals
    if ref is None or (ref == native.totals and plan.gate is None):
        return None
    made: Totals | None = resolve(ref)(plan)
    return made
