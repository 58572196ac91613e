"""Limits of a recorded conversation's latency and cost, inclusive (NorthStar's graders).

The limit is in the case, or in the configuration for all cases; a case without one is skipped.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from evalwright.evaluators.conversation.messages import cost_of, expected_of, latency_of
from evalwright.evaluators.conversation.outcomes import graded, skipped
from evalwright.evaluators.onlooker import Onlooker
from evalwright.evaluators.wording import number
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["CostWithin", "LatencyWithin"]

_NO_LATENCY = skipped("max_latency_ms")
_NO_COST = skipped("max_cost_usd")


class LatencyWithin(Onlooker, frozen=True):
    """The latency is at most `max_ms` milliseconds. It fails if it was not measured."""

    max_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None
    is_brief = True

    def look(self, case: Case, trace: Trace) -> Evaluation:
        limit = expected_of(case).max_latency_ms if self.max_ms is None else self.max_ms
        if limit is None:
            return _NO_LATENCY
        actual = latency_of(trace)
        return _within(actual, limit, "latency", "ms", {"actual_ms": actual, "limit_ms": limit})


class CostWithin(Onlooker, frozen=True):
    """The cost is at most `max_usd` US dollars. It fails if it was not measured."""

    max_usd: Annotated[float, msgspec.Meta(ge=0)] | None = None
    is_brief = True

    def look(self, case: Case, trace: Trace) -> Evaluation:
        limit = expected_of(case).max_cost_usd if self.max_usd is None else self.max_usd
        if limit is None:
            return _NO_COST
        actual = cost_of(trace)
        return _within(actual, limit, "cost", "USD", {"actual_usd": actual, "limit_usd": limit})


def _within(actual: float | None, limit: float, what: str, unit: str, detail: dict[str, Any]) -> Evaluation:
    if actual is None:
        return graded(False, f"the {what} was not measured, at most {number(limit)} {unit} expected", detail)
    passed = actual <= limit
    reason = "" if passed else f"the {what} is {number(actual, limit)} {unit}, at most {number(limit)} {unit} expected"
    return graded(passed, reason, detail)
