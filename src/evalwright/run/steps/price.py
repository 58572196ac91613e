"""What a cell cost, computed from its tokens and the price table if the system did not report it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.importers.span_conventions import SpanUsage, models_of, usage_of
from evalwright.llm.prices import dollars
from evalwright.model.plan import Plan, Price, Variant
from evalwright.model.trace import Span, Trace

__all__ = ["Pricing"]

_MILLION = 1_000_000
_CHATS = ("anthropic", "chat", "openai_chat")
"""Targets whose services count all tokens: if a count is missing, the other one is not the whole cost."""
_CAPTURED = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_creation_tokens": "gen_ai.usage.cache_creation.input_tokens",
}
"""Attributes of captured calls, with their names in OpenTelemetry's conventions."""


class Pricing:
    """The prices of a plan, by variant: a variant's model is `metadata.model`, else `model` of its configuration."""

    def __init__(self, plan: Plan) -> None:
        self._prices = {
            variant.name: price for variant in plan.variants if (price := plan.prices.get(_model(variant))) is not None
        }
        self._by_model = plan.prices
        self._chats = {variant.name for variant in plan.variants if variant.adapter in _CHATS}

    def fill(self, trace: Trace) -> None:
        """Set `cost_usd` if it is null, tokens were counted and the model has a price.

        For a variant without a model, it is the sum of the captured model calls, if all of them have a price.
        """
        price = self._prices.get(trace.variant_name)
        metrics = trace.metrics
        if metrics.cost_usd is not None:
            return
        if price is None:
            metrics.cost_usd = self._cost_of_calls(trace)
            return
        if not (metrics.token_input or metrics.token_output or metrics.token_thinking):
            return
        if trace.variant_name in self._chats and None in (metrics.token_input, metrics.token_output):
            return
        thinking = _thinking(price, metrics.token_thinking)
        read, written = (_custom_count(metrics.custom, f"cache_{what}_tokens") for what in ("read", "write"))
        metrics.cost_usd = thinking + dollars(price, metrics.token_input or 0, metrics.token_output or 0, read, written)
        if metrics.token_thinking and metrics.cost_thinking_usd is None:
            metrics.cost_thinking_usd = thinking

    def _cost_of_calls(self, trace: Trace) -> float | None:
        costs = [self._cost_of_call(call) for call in _calls(trace.spans)] if self._by_model else []
        return sum(cost for cost in costs if cost is not None) if costs and None not in costs else None

    def _cost_of_call(self, call: Span) -> float | None:
        models = _models_of_call(call)
        price = next((self._by_model[model] for model in models if model in self._by_model), None)
        usage = _usage(call)
        if price is None or usage.input is None or usage.output is None:
            return None
        if not (usage.input or usage.output) and call.status != "error":
            return None  # a stream whose end does not count its tokens
        return dollars(price, usage.input, usage.output, usage.cache_read or 0, usage.cache_write or 0)


def _calls(spans: Sequence[Span]) -> list[Span]:
    """The captured model calls. Those below each other are one call: the innermost that counts tokens stands for it."""
    parents = {span.id: span.parent_id for span in spans}
    calls = [span for span in spans if span.kind == "llm" and _models_of_call(span)]
    counted = {call.id: _above(call, parents) for call in calls if _usage(call).input or _usage(call).output}
    around = {id for ids in counted.values() for id in ids}
    return [
        call
        for call in calls
        if call.id not in around and (call.id in counted or counted.keys().isdisjoint(_above(call, parents)))
    ]


def _models_of_call(call: Span) -> list[str]:
    captured = (call.attributes.get(key) for key in ("response_model", "request_model"))
    return [*(name for name in captured if isinstance(name, str)), *models_of(call.attributes)]


def _usage(call: Span) -> SpanUsage:
    """The tokens of a call, by the names of captured calls or of the conventions of spans."""
    captured = {theirs: call.attributes[ours] for ours, theirs in _CAPTURED.items() if ours in call.attributes}
    return usage_of({**call.attributes, **captured}) or SpanUsage()


def _above(span: Span, parents: Mapping[str, str | None]) -> list[str]:
    ids: list[str] = []
    at = span.parent_id
    while at is not None and at not in ids:
        ids.append(at)
        at = parents.get(at)
    return ids


def _custom_count(custom: dict[str, Any], name: str) -> int:
    value = custom.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _thinking(price: Price, tokens: int | None) -> float:
    return (tokens or 0) * price.thinking_per_million_tokens / _MILLION


def _model(variant: Variant) -> str:
    named = variant.metadata.get("model") or variant.config.get("model")
    return named if isinstance(named, str) else ""
