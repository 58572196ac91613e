"""Inclusive limits on what a cell used: calls, tokens, cost and time (AgentEvals 1.0, `execution_metrics`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from evalwright.errors import Problem
from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.onlooker import Look, Onlooker
from evalwright.evaluators.tools.calls import calls_of, messages_of
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["Cost", "ExecutionMetrics", "Latency", "TokenUsage", "used_by"]

_MOST_KEPT = 1000
"""Evaluations that an evaluator keeps for further traces with the same time or cost; about a kilobyte each."""
_Limit = Annotated[float, msgspec.Meta(ge=0)] | None
_EXPLORING = {"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"}
_LIMITS = {
    "max_tool_calls": "tool calls",
    "max_llm_calls": "model calls",
    "max_tokens": "tokens",
    "max_input_tokens": "input tokens",
    "max_output_tokens": "output tokens",
    "max_cost_usd": "US dollars",
    "max_duration_ms": "ms",
}


def _needed_limit(values: Mapping[str, Any], names: Sequence[str]) -> list[Problem]:
    """The problem with an evaluator without any of its limits."""
    return (
        []
        if any(values.get(name) is not None for name in names)
        else [Problem("", f"needs at least one limit: {', '.join(names)}")]
    )


class UsedAmounts(NamedTuple):
    """What a trace reports as used; None for what it does not report."""

    input: float | None
    output: float | None
    cached: float | None
    cost_usd: float | None
    duration_ms: float | None


def used_by(trace: Trace) -> UsedAmounts:
    """What the system reported; the time is measured if it did not. Negative numbers count as not reported."""
    usage = trace.extra.get("token_usage")
    usage = usage if isinstance(usage, dict) else {}
    metrics = trace.metrics
    return UsedAmounts(
        _first(usage.get("input"), metrics.token_input),
        _first(usage.get("output"), metrics.token_output),
        _number(usage.get("cached")),
        _number(metrics.cost_usd),
        _duration_of(trace),
    )


def _duration_of(trace: Trace) -> float | None:
    reported = _number(trace.extra.get("duration_ms")) if trace.extra else None
    return trace.latency_ms if reported is None else reported


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        return None
    return float(value)


def _first(*values: Any) -> float | None:
    return next((number for value in values if (number := _number(value)) is not None), None)


def _sum(*values: float | None) -> float | None:
    """None if one of them was not reported: the sum of the others would be too low."""
    measured = [value for value in values if value is not None]
    return sum(measured) if len(measured) == len(values) else None


class ExecutionMetrics(msgspec.Struct, frozen=True):
    """The share of limits that were kept. A number that was not reported breaks its limit."""

    max_tool_calls: _Limit = None
    max_llm_calls: _Limit = None
    max_tokens: _Limit = None
    max_input_tokens: _Limit = None
    max_output_tokens: _Limit = None
    max_cost_usd: _Limit = None
    max_duration_ms: _Limit = None
    target_exploration_ratio: _Limit = None
    exploration_tolerance: Annotated[float, msgspec.Meta(ge=0)] = 0.2
    all_or_nothing: bool = False

    uses_case = False

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        return _needed_limit(values, (*_LIMITS, "target_exploration_ratio"))

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if not messages_of(trace):
            return banded(0.0, misses=["No trace available"])
        checks = [*self._limits(trace), *self._exploration(trace)]
        hits = [sentence for held, sentence in checks if held]
        misses = [sentence for held, sentence in checks if not held]
        score = len(hits) / len(checks)
        return banded(float(not misses) if self.all_or_nothing else score, hits, misses)

    def _limits(self, trace: Trace) -> Iterator[tuple[bool, str]]:
        used = used_by(trace)
        measured = {
            "max_tool_calls": float(len(calls_of(trace))),
            "max_llm_calls": float(sum(m.get("role") == "assistant" for m in messages_of(trace))),
            "max_tokens": _sum(used.input, used.output),
            "max_input_tokens": used.input,
            "max_output_tokens": used.output,
            "max_cost_usd": used.cost_usd,
            "max_duration_ms": used.duration_ms,
        }
        for name, unit in _LIMITS.items():
            limit = getattr(self, name)
            if limit is not None:
                yield _within(measured[name], limit, unit)

    def _exploration(self, trace: Trace) -> Iterator[tuple[bool, str]]:
        target = self.target_exploration_ratio
        if target is None:
            return
        calls = calls_of(trace)
        if not calls:
            yield False, "no tool was called: there is no share of exploring calls"
            return
        ratio = sum(call.name in _EXPLORING for call in calls) / len(calls)
        within = abs(ratio - target) <= self.exploration_tolerance + 1e-9
        yield within, f"{ratio:.2f} of the calls explored, expected {target:g} ± {self.exploration_tolerance:g}"


class Latency(Onlooker, frozen=True):
    """Whether the system answered within `threshold` milliseconds."""

    threshold: Annotated[float, msgspec.Meta(ge=0)]

    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset({"extra"})

    def looking(self) -> Look:
        evaluation = lru_cache(_MOST_KEPT)(self._evaluation)
        return lambda case, trace: evaluation(_duration_of(trace))

    def _evaluation(self, duration: float | None) -> Evaluation:
        return _all_of([_within(duration, self.threshold, "ms")])


class Cost(Onlooker, frozen=True):
    """Whether the system cost at most `budget` US dollars. A cost that was not reported fails."""

    budget: Annotated[float, msgspec.Meta(ge=0)]

    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset()

    def looking(self) -> Look:
        evaluation = lru_cache(_MOST_KEPT)(self._evaluation)
        return lambda case, trace: evaluation(_number(trace.metrics.cost_usd))

    def _evaluation(self, cost: float | None) -> Evaluation:
        return _all_of([_within(cost, self.budget, "US dollars")])


class TokenUsage(Onlooker, frozen=True):
    """Whether all limits of tokens were kept; `max_total` counts cached ones too."""

    max_total: _Limit = None
    max_input: _Limit = None
    max_output: _Limit = None

    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset({"extra"})

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        return _needed_limit(values, ("max_total", "max_input", "max_output"))

    def look(self, case: Case, trace: Trace) -> Evaluation:
        used = used_by(trace)
        checks = [
            (_sum(used.input, used.output, used.cached or 0.0), self.max_total, "tokens"),
            (used.input, self.max_input, "input tokens"),
            (used.output, self.max_output, "output tokens"),
        ]
        return _all_of([_within(measured, limit, unit) for measured, limit, unit in checks if limit is not None])


def _within(measured: float | None, limit: float, unit: str) -> tuple[bool, str]:
    if measured is None:
        return False, f"{unit}: not reported, the limit is {limit:g}"
    return measured <= limit, f"{measured:g} {unit}, the limit is {limit:g}"


def _all_of(checks: list[tuple[bool, str]]) -> Evaluation:
    misses = [sentence for held, sentence in checks if not held]
    return banded(float(not misses), [sentence for held, sentence in checks if held], misses)
