"""The numbers of a pixie run: an entry passes when each of its scores is at least one half."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import RunSummary

__all__ = ["PixieTotals"]


class PixieTotals:
    """Counts entries."""

    def __init__(self, plan: Plan) -> None:
        self._passed = self._total = 0

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        self._total += 1
        self._passed += status == "pass"

    def merge(self, other: Any) -> None:
        self._passed += other._passed
        self._total += other._total

    def finish(self, summary: RunSummary) -> None:
        summary.native = {"passed": self._passed, "total": self._total}
