"""The numbers of a NorthStar run, under NorthStar's names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import GateOutcome, RunSummary
from evalwright.scoring.facts import ResultLike, TraceLike

__all__ = ["NorthstarTotals", "totals"]


class NorthstarTotals:
    """Cells by verdict, and the grades that were skipped."""

    def __init__(self, plan: Plan) -> None:
        del plan
        self._statuses: dict[str, int] = {}
        self._skipped = 0

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        self._statuses[status] = self._statuses.get(status, 0) + 1
        self._skipped += sum(row.skipped for row in results)

    def merge(self, other: Any) -> None:
        for status, number in other._statuses.items():
            self._statuses[status] = self._statuses.get(status, 0) + number
        self._skipped += other._skipped

    def finish(self, summary: RunSummary) -> None:
        summary.native = totals(self._statuses, self._skipped)
        if not summary.cells_missing:
            summary.gate = _overall(self._statuses)


def _overall(statuses: Mapping[str, int]) -> GateOutcome:
    """A run fails when a case failed or could not be judged."""
    short = {what: statuses.get(status, 0) for status, what in (("fail", "failed"), ("error", "could not be judged"))}
    total = sum(statuses.values())
    reason = ", ".join(f"{number} of {total} cases {what}" for what, number in short.items() if number)
    return GateOutcome(not reason, reason=reason)


def totals(statuses: Mapping[str, int], skipped_grades: int) -> dict[str, Any]:
    """The counters of an `EvalResult`: a case is evaluated when it passed or failed.

    An errored case is neither, and counts apart: it is no answer that was judged.
    """
    passed, failed = statuses.get("pass", 0), statuses.get("fail", 0)
    return {
        "total_cases": sum(statuses.values()),
        "evaluated_cases": passed + failed,
        "not_evaluated_cases": statuses.get("skip", 0),
        "passed_cases": passed,
        "failed_cases": failed,
        "errored_cases": statuses.get("error", 0),
        "pass_rate": passed / (passed + failed) if passed + failed else 0.0,
        "skipped_grades": skipped_grades,
    }
