"""The numbers of a NorthStar run, under NorthStar's names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import RunSummary

__all__ = ["NorthstarTotals", "totals"]


class NorthstarTotals:
    """Cells by verdict, and the grades that were skipped.

    In the original a grader that could not judge has failed, so these numbers count it as failed. The verdict of the
    case is an error.
    """

    reads_scores_only = True

    def __init__(self, plan: Plan) -> None:
        del plan
        self._statuses: dict[str, int] = {}
        self._skipped = 0

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        self.add_alike(trace, results, status, 1)

    def add_alike(self, trace: TraceLike, results: Collection[ResultLike], status: Status, times: int) -> None:
        counted = "fail" if status == "error" and trace.error is None else status
        self._statuses[counted] = self._statuses.get(counted, 0) + times
        self._skipped += times * sum(row.skipped for row in results)

    def merge(self, other: Any) -> None:
        for status, number in other._statuses.items():
            self._statuses[status] = self._statuses.get(status, 0) + number
        self._skipped += other._skipped

    def finish(self, summary: RunSummary) -> None:
        summary.native = totals(self._statuses, self._skipped)


def totals(statuses: Mapping[str, int], skipped_grades: int) -> dict[str, Any]:
    """The counters of an `EvalResult`: a case is evaluated when it passed or failed.

    A case whose record cannot be judged is neither, and is counted separately.
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
