"""What a cell cost, computed from its tokens and the price table if the system did not report it."""

from __future__ import annotations

from typing import Any

from evalwright.llm.prices import dollars
from evalwright.model.plan import Plan, Price, Variant
from evalwright.model.trace import Trace

__all__ = ["Pricing"]

_MILLION = 1_000_000
_CHATS = ("anthropic", "chat", "openai_chat")
"""Targets whose services count all tokens: if a count is missing, the other one is not the whole cost."""


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
            metrics.cost_usd = self._of_calls(trace)
            return
        if not (metrics.token_input or metrics.token_output or metrics.token_thinking):
            return
        if trace.variant_name in self._chats and None in (metrics.token_input, metrics.token_output):
            return
        thinking = _thinking(price, metrics.token_thinking)
        read, written = (_counted(metrics.custom, f"cache_{what}_tokens") for what in ("read", "write"))
        metrics.cost_usd = thinking + dollars(price, metrics.token_input or 0, metrics.token_output or 0, read, written)
        if metrics.token_thinking and metrics.cost_thinking_usd is None:
            metrics.cost_thinking_usd = thinking

    def _of_calls(self, trace: Trace) -> float | None:
        calls = [span.attributes for span in trace.spans if span.kind == "llm" and "request_model" in span.attributes]
        costs = [self._of_call(call) for call in calls] if self._by_model else []
        return sum(cost for cost in costs if cost is not None) if costs and None not in costs else None

    def _of_call(self, call: dict[str, Any]) -> float | None:
        price = self._by_model.get(call.get("response_model") or "") or self._by_model.get(call["request_model"])
        given, said = call.get("input_tokens"), call.get("output_tokens")
        if price is None or not isinstance(given, int) or not isinstance(said, int):
            return None
        return dollars(price, given, said)


def _counted(custom: dict[str, Any], name: str) -> int:
    found = custom.get(name)
    return found if isinstance(found, int) and found > 0 else 0


def _thinking(price: Price, tokens: int | None) -> float:
    return (tokens or 0) * price.thinking_per_million_tokens / _MILLION


def _model(variant: Variant) -> str:
    named = variant.metadata.get("model") or variant.config.get("model")
    return named if isinstance(named, str) else ""
