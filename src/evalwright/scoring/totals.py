"""What a run's format counts, by itself or beside a gate that is not its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable

from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.result import Status
from evalwright.model.summary import RunSummary

__all__ = ["AlikeTotals", "GatedTotals", "Totals"]


class Totals(Protocol):
    """Counts cells one by one, like the tally that holds it; counts of shares of a run add up. Picklable.

    Registered as a callable `(plan) -> Totals | None` in `Format.totals`.
    """

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        """Count one finished cell with its verdict; the score is given only if cases bring their own evaluators."""

    def merge(self, other: Any) -> None:
        """Add the count of another share of the same run."""

    def finish(self, summary: RunSummary) -> None:
        """Put `native`, `named_metrics` and `gate` into the summary."""


@runtime_checkable
class AlikeTotals(Totals, Protocol):
    """Totals that know nothing of a cell but its status and those of its results, so that many are counted at once."""

    def add_alike(self, trace: TraceLike, results: Collection[ResultLike], status: Status, times: int) -> None:
        """Count this many cells that differ only in their cases and in what they took."""


class GatedTotals:
    """The numbers are the format's; the gate decides what passes."""

    def __init__(self, totals: Totals, gate: Totals) -> None:
        self._totals, self._gate = totals, gate

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        self._totals.add(trace, results, status, score)
        self._gate.add(trace, results, status, score)

    def add_extra(self, variant: str, extra: Mapping[str, Any]) -> None:
        if (add := getattr(self._totals, "add_extra", None)) is not None:
            add(variant, extra)

    def merge(self, other: Any) -> None:
        self._totals.merge(other._totals)
        self._gate.merge(other._gate)

    def finish(self, summary: RunSummary) -> None:
        self._totals.finish(summary)
        self._gate.finish(summary)
