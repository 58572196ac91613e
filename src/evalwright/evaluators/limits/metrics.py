"""Limits on a call's time, cost and tokens. A value that was not reported fails (evalh 2.0)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from evalwright.errors import EvaluatorError
from evalwright.evaluators.onlooker import PASSED, Look, Onlooker
from evalwright.evaluators.wording import number
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = [
    "CostUnder",
    "LatencyFirstTokenUnder",
    "LatencyUnder",
    "StreamCompleted",
    "ThinkingTokensUnder",
    "TokensPerSecondAbove",
]

_PositiveInt = Annotated[int, msgspec.Meta(gt=0)]
_PositiveNumber = Annotated[float, msgspec.Meta(gt=0)]


def _under(value: float | None, limit: float, what: str, unit: str) -> Evaluation:
    if value is None:
        return Evaluation(False, 0.0, f"{what} was not reported")
    if value < limit:
        return PASSED
    return Evaluation(False, 0.0, f"{what} {number(value)} {unit}, expected under {number(limit)}")


class LatencyUnder(Onlooker, frozen=True):
    """Latency strictly under `max_ms` milliseconds. An error for a recording without a latency."""

    max_ms: _PositiveInt
    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset()

    def looking(self) -> Look:
        limit = self.max_ms

        def look(case: Case, trace: Trace) -> Evaluation:
            latency = trace.latency_ms
            if latency is None:
                raise EvaluatorError("latency was not measured", "not_measured")
            return PASSED if latency < limit else _under(latency, limit, "latency", "ms")

        return look


class CostUnder(Onlooker, frozen=True):
    """Cost strictly under `max_usd` US dollars."""

    max_usd: _PositiveNumber
    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset()

    def look(self, case: Case, trace: Trace) -> Evaluation:
        return _under(trace.metrics.cost_usd, self.max_usd, "cost", "USD")


class ThinkingTokensUnder(Onlooker, frozen=True):
    """Thinking tokens strictly under `max_tokens`."""

    max_tokens: _PositiveInt
    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset()

    def look(self, case: Case, trace: Trace) -> Evaluation:
        return _under(trace.metrics.token_thinking, self.max_tokens, "thinking", "tokens")


class LatencyFirstTokenUnder(Onlooker, frozen=True):
    """Time to the first token strictly under `max_ms` milliseconds; fails for an answer that was not streamed."""

    max_ms: _PositiveInt
    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset()

    def look(self, case: Case, trace: Trace) -> Evaluation:
        return _under(trace.metrics.latency_first_token_ms, self.max_ms, "latency of the first token", "ms")


class TokensPerSecondAbove(Onlooker, frozen=True):
    """At least `min_tps` tokens per second; fails for an answer that was not streamed."""

    min_tps: _PositiveNumber
    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset()

    def look(self, case: Case, trace: Trace) -> Evaluation:
        speed = trace.metrics.tokens_per_second
        if speed is None:
            return Evaluation(False, 0.0, "tokens per second were not reported")
        if speed >= self.min_tps:
            return PASSED
        return Evaluation(
            False, 0.0, f"{number(speed, self.min_tps)} tokens per second, expected at least {number(self.min_tps)}"
        )


class StreamCompleted(Onlooker, frozen=True):
    """Whether the stream of the answer reached its end."""

    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset()

    def look(self, case: Case, trace: Trace) -> Evaluation:
        completed = trace.metrics.stream_completed
        if completed:
            return PASSED
        return Evaluation(
            False, 0.0, "the answer was not streamed" if completed is None else "the stream was truncated"
        )
