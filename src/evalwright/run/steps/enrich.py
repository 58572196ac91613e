"""Complete a trace with what an observability platform recorded about the call, before the trace is stored.

Failures are soft: the trace names them in `extra.enrichment_errors`, the end of the run counts them, and the cell
continues.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec

from evalwright.errors import in_seconds
from evalwright.model.plan import Plan, Plugin
from evalwright.model.protocols import Enricher
from evalwright.model.trace import Doubt, Trace
from evalwright.registry import is_built_in, load
from evalwright.run.records import ends_the_run, tool_use
from evalwright.targets.answer_parts import unmeasured
from evalwright.targets.failures import target_failure

__all__ = ["EnrichersOfPlan"]

T = TypeVar("T")

_OF_ANSWER = ("output", "messages", "tool_calls", "tool_results", "metrics", "error", "extra", "spans", "latency_ms")
_OF_CELL = tuple(name for name in Trace.__struct_fields__ if name not in _OF_ANSWER)


class EnrichersOfPlan:
    """The enrichers of a plan, by variant."""

    def __init__(self, plan: Plan) -> None:
        self._enrichers: dict[str, list[tuple[str, Enricher, float]]] = {
            variant.name: [(named.type, _built(named), variant.timeout_seconds) for named in variant.enrich_trace_from]
            for variant in plan.variants
            if variant.enrich_trace_from
        }

    async def enrich(self, trace: Trace) -> list[Doubt]:
        """Call each enricher of the trace's variant in turn, each within the variant's time limit."""
        doubts: list[Doubt] = []
        for name, enricher, limit in self._enrichers.get(trace.variant_name, ()):
            try:
                async with asyncio.timeout(limit):
                    doubts += await enricher.enrich(trace) or ()
            except TimeoutError:
                doubts.append(_failure_doubt(trace, name, f"no reply within {in_seconds(limit)}"))
            except BaseException as error:  # a plug-in may raise anything: the cell continues
                if ends_the_run(error):
                    raise
                doubts.append(_failure_doubt(trace, name, target_failure(error).message))
        trace.tool_calls, trace.tool_results = tool_use(trace)
        return doubts


def _built(named: Plugin) -> Enricher:
    enricher: Enricher = load("enrichers", named.type)(named.config)
    return enricher if is_built_in(type(enricher)) else _PluginEnricher(enricher)


class _PluginEnricher:
    """An enricher of another package. Python checks no types, so it gets a copy, of which only what a reader of the run
    can read is taken over."""

    def __init__(self, enricher: Enricher) -> None:
        self._enricher = enricher

    async def enrich(self, trace: Trace) -> list[Doubt]:
        """Raises ValueError or TypeError for what cannot be stored, and leaves the trace as it was."""
        changed = _as_stored(trace, Trace)
        doubts = _as_stored(await self._enricher.enrich(changed) or (), list[Doubt])
        completed = _as_stored(changed, Trace)
        for name in _OF_CELL:
            if getattr(completed, name) != getattr(trace, name):
                raise ValueError(f"it changed {name}, which says what the trace is of")
        notes: list[str] = []
        for name in unmeasured(changed.metrics, notes):
            setattr(completed.metrics, name, None)
        for name in _OF_ANSWER:
            setattr(trace, name, getattr(completed, name))
        return doubts + [Doubt("a value was replaced or left out", note) for note in notes[:1]]


def _as_stored(value: object, kind: type[T]) -> T:
    return msgspec.json.decode(msgspec.json.encode(value), type=kind)


def _failure_doubt(trace: Trace, enricher: str, error: str) -> Doubt:
    """What the end of the run says of a failure, which is noted in the trace."""
    errors: list[Any] = trace.extra.get("enrichment_errors") or []
    trace.extra = {**trace.extra, "enrichment_errors": [*errors, {"enricher": enricher, "error": error}]}
    return Doubt(f"the enricher {enricher} failed", error)
