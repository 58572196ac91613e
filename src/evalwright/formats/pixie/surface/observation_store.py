"""Finished spans that a program keeps and queries, like pixie 0.4's store; here they stay in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from evalwright.capture.handlers import InstrumentationHandler
from evalwright.capture.spans import LLMSpan, ObserveSpan
from evalwright.capture.tree import ObservationNode, tree_of

__all__ = ["ObservationStore", "StorageHandler", "build_tree"]

_log = logging.getLogger(__name__)

Span = ObserveSpan | LLMSpan
build_tree = tree_of


class ObservationStore:
    """Keeps spans in memory, whatever database `engine` names: `enable_storage` writes them to a file."""

    def __init__(self, engine: Any = None) -> None:
        path = getattr(engine, "path", None)
        if path not in (None, ":memory:"):
            _log.warning("spans are kept in memory, not in %s: enable_storage() writes them to traces.jsonl", path)
        self._spans: list[Span] = []

    async def create_tables(self) -> None:
        """Does nothing: there are no tables."""

    async def save(self, span: Span) -> None:
        self._spans.append(span)

    async def save_many(self, spans: Iterable[Span]) -> None:
        self._spans.extend(spans)

    async def get_trace(self, trace_id: str) -> list[ObservationNode]:
        """The roots of a trace; empty for an unknown trace."""
        return tree_of(await self.get_trace_flat(trace_id))

    async def get_trace_flat(self, trace_id: str) -> list[Span]:
        """The spans of a trace in the order in which they began."""
        return self._where(lambda span: True, trace_id)

    async def get_root(self, trace_id: str) -> ObserveSpan:
        """The first span of a trace without a parent. Raises ValueError if there is none, and for a model call."""
        roots = self._where(lambda span: span.parent_span_id is None, trace_id)
        if not roots:
            raise ValueError(f"No root observation found for trace {trace_id}")
        if not isinstance(roots[0], ObserveSpan):
            raise ValueError(f"Root span for trace {trace_id} is not an ObserveSpan")
        return roots[0]

    async def get_last_llm(self, trace_id: str) -> LLMSpan | None:
        """The model call of a trace that ended last."""
        calls = [span for span in await self.get_trace_flat(trace_id) if isinstance(span, LLMSpan)]
        return max(calls, key=lambda span: span.ended_at, default=None)

    async def get_by_name(self, name: str, trace_id: str | None = None) -> list[Span]:
        """The spans with a name; the name of a model call is its model."""
        return self._where(lambda span: _name(span) == name, trace_id)

    async def get_by_type(self, span_kind: str, trace_id: str | None = None) -> list[Span]:
        """The spans of a kind, `observe` or `llm`."""
        return self._where(lambda span: ("llm" if isinstance(span, LLMSpan) else "observe") == span_kind, trace_id)

    async def get_errors(self, trace_id: str | None = None) -> list[Span]:
        """The spans that have an error."""
        return self._where(lambda span: _error(span) is not None, trace_id)

    async def list_traces(self, limit: int = 50, offset: int = 0) -> list[dict[str, Any]]:
        """A summary of each trace, newest first: its id, root, start, size, and whether anything failed."""
        matching = []
        for trace_id in dict.fromkeys(span.trace_id for span in self._spans):
            spans = await self.get_trace_flat(trace_id)
            root = next((span for span in spans if span.parent_span_id is None), None)
            matching.append(
                {
                    "trace_id": trace_id,
                    "root_name": None if root is None else _name(root),
                    "started_at": (root or spans[0]).started_at.isoformat(),
                    "has_error": any(_error(span) is not None for span in spans),
                    "observation_count": len(spans),
                }
            )
        matching.sort(key=lambda trace: str(trace["started_at"]), reverse=True)
        return matching[offset : offset + limit]

    def _where(self, holds: Callable[[Span], bool], trace_id: str | None) -> list[Span]:
        spans = [span for span in self._spans if trace_id in (None, span.trace_id) and holds(span)]
        return sorted(spans, key=lambda span: span.started_at)


def _name(span: Span) -> str | None:
    return span.request_model if isinstance(span, LLMSpan) else span.name


def _error(span: Span) -> str | None:
    return span.error_type if isinstance(span, LLMSpan) else span.error


class StorageHandler(InstrumentationHandler):
    """Saves every finished span in a store."""

    def __init__(self, store: ObservationStore) -> None:
        self.store = store

    async def on_llm(self, span: LLMSpan) -> None:
        await self.store.save(span)

    async def on_observe(self, span: ObserveSpan) -> None:
        await self.store.save(span)
