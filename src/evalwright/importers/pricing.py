"""Costs that a recording does not contain, computed from its tokens if the user asks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from evalwright.errors import counted
from evalwright.importers.span_conventions import models_of
from evalwright.model.trace import Metrics, Span, Trace

__all__ = ["ListPricing", "PriceOf"]

PriceOf = Callable[[str, int, int, int, int], float | None]
"""US dollars for a model's tokens: input, output, and the parts of the input that were read from and written to the
cache. None for a model without a price."""

_UNNAMED = "recorded"
"""What a system is called whose recording does not name it."""


class ListPricing:
    """Fills in costs, and counts the recordings without one."""

    def __init__(self, price_of: PriceOf, source: str) -> None:
        self._price_of, self._source = price_of, source
        self._counts: Counter[str] = Counter()

    def fill(self, trace: Trace) -> None:
        metrics = trace.metrics
        if metrics.cost_usd is not None:
            return
        models = set(_models(trace)) or {trace.variant_name} - {_UNNAMED}
        if metrics.token_input is None or metrics.token_output is None:
            self._counts["without tokens"] += 1
        elif not models:
            self._counts["that names no model"] += 1
        elif len(models) > 1:
            self._counts["of several models, whose tokens are counted together"] += 1
        else:
            self._price(trace, models.pop(), metrics.token_input, metrics.token_output)

    def _price(self, trace: Trace, model: str, sent: int, written: int) -> None:
        cost = self._price_of(
            model, sent, written, _cached_tokens(trace.metrics, "read"), _cached_tokens(trace.metrics, "write")
        )
        if cost is None:
            self._counts[f"of the model {model!r}, which has no price"] += 1
            return
        trace.metrics.cost_usd = cost
        trace.extra["cost_from"] = f"{self._source}: {model}"
        self._counts[""] += 1

    def start_over(self) -> None:
        """Reset the counts, because the same recordings will come again."""
        self._counts.clear()

    def notes(self) -> Iterator[str]:
        if self._counts[""]:
            what = counted(self._counts[""], "cost was", "costs were")
            yield f"{what} computed from tokens ({self._source}), see extra.cost_from"
        for why, number in self._counts.items():
            if why:
                yield f"{counted(number, 'recording')} {why}: the cost is unknown"


def _models(trace: Trace) -> Iterator[str]:
    """The models that the recording names."""
    agent = trace.extra.get("agent")
    named = [trace.extra.get("model"), agent.get("model_name") if isinstance(agent, dict) else None]
    yield from (model for model in [*trace.extra.get("models", ()), *named] if isinstance(model, str))
    yield from _called_models(trace.spans)


def _called_models(spans: Sequence[Span]) -> Iterator[str]:
    """The models of the innermost calls: the span of a framework around one may have another name of its model."""
    parents = {span.id: span.parent_id for span in spans}
    calls = [span for span in spans if span.kind == "llm" and models_of(span.attributes)]
    around: set[str | None] = {None}
    for span in calls:
        at = span.parent_id
        while at not in around:
            around.add(at)
            at = parents.get(at or "")
    yield from (models_of(span.attributes)[0] for span in calls if span.id not in around)


def _cached_tokens(metrics: Metrics, what: str) -> int:
    count = metrics.custom.get(f"cache_{what}_tokens")
    return count if isinstance(count, int) else 0
