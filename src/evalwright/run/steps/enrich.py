"""Complete a trace with what an observability platform recorded about the call, before the trace is stored.

Failures are soft: the trace names them in `extra.enrichment_errors`, the end of the run counts them, and the cell
continues.
"""

from __future__ import annotations

import asyncio
from typing import Any

from evalwright.model.plan import Plan
from evalwright.model.protocols import Enricher
from evalwright.model.trace import Doubt, Trace
from evalwright.registry import load
from evalwright.run.records import ends_the_run
from evalwright.targets.failures import target_failure

__all__ = ["Enriching"]


class Enriching:
    """The enrichers of a plan, by variant."""

    def __init__(self, plan: Plan) -> None:
        self._enrichers: dict[str, list[tuple[str, Enricher, float]]] = {
            variant.name: [
                (named.type, load("enrichers", named.type)(named.config), variant.timeout_seconds)
                for named in variant.enrich_trace_from
            ]
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
                doubts.append(_failed(trace, name, f"no reply within {limit:g} seconds"))
            except BaseException as error:  # a plug-in may raise anything: the cell continues
                if ends_the_run(error):
                    raise
                doubts.append(_failed(trace, name, target_failure(error).message))
        return doubts


def _failed(trace: Trace, enricher: str, error: str) -> Doubt:
    """What the end of the run says of a failure, which is noted in the trace."""
    errors: list[Any] = trace.extra.get("enrichment_errors") or []
    trace.extra = {**trace.extra, "enrichment_errors": [*errors, {"enricher": enricher, "error": error}]}
    return Doubt(f"the enricher {enricher} failed", error)
