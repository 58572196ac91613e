"""The spans of a trace as an outline, with kind and duration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from evalwright.model.trace import Span
from evalwright.reports import numbers

__all__ = ["about", "outlined", "recorded_in"]


def outlined(spans: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    """Every span once with its depth: parents before children, children by start. Without a known parent it is at 0."""
    ids = {span.id for span in spans}
    inside: dict[str | None, list[Span]] = defaultdict(list)
    for span in sorted(spans, key=_start):
        inside[span.parent_id if span.parent_id in ids else None].append(span)
    pending = [(0, span) for span in reversed(inside.pop(None, []))]
    while pending:
        depth, span = pending.pop()
        yield depth, span
        pending += [(depth + 1, below) for below in reversed(inside.pop(span.id, []))]
    yield from ((0, span) for ring in inside.values() for span in ring)


def recorded_in(span: Span) -> list[tuple[str, Any]]:
    """What was recorded of a step besides its name and times: input, output, attributes and events, if there are any.

    For example, prompts and replies of models.
    """
    events = [msgspec.to_builtins(event) for event in span.events]
    parts = [("input", span.input), ("output", span.output), ("attributes", span.attributes), ("events", events)]
    return [(label, value) for label, value in parts if value is not None and value not in ({}, [])]


def _start(span: Span) -> float:
    return span.started_at.timestamp() if span.started_at else float("inf")


def about(span: Span) -> str:
    """Kind and duration of a span, where known: `llm 1.20 s`."""
    facts = [] if span.kind == "span" else [span.kind]
    if span.started_at is not None and span.finished_at is not None:
        seconds = span.finished_at.timestamp() - span.started_at.timestamp()
        facts.append(numbers.duration(max(0.0, seconds * 1000)))
    return " ".join(facts)
