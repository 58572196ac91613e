"""The steps of a trace as an outline: what began inside what, how long it took, what went wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from evalwright.model.trace import Span
from evalwright.reports import numbers

__all__ = ["about", "outlined"]


def outlined(spans: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    """Every span once with its depth, a parent before its children, those by time; without a parent here it is at 0."""
    ids = {span.id for span in spans}
    inside: dict[str | None, list[Span]] = defaultdict(list)
    for span in sorted(spans, key=_begun):
        inside[span.parent_id if span.parent_id in ids else None].append(span)
    waiting = [(0, span) for span in reversed(inside.pop(None, []))]
    while waiting:
        depth, span = waiting.pop()
        yield depth, span
        waiting += [(depth + 1, below) for below in reversed(inside.pop(span.id, []))]
    yield from ((0, span) for ring in inside.values() for span in ring)


def _begun(span: Span) -> float:
    return span.started_at.timestamp() if span.started_at else float("inf")


def about(span: Span) -> str:
    """Its kind where it has one, and its time where that is known: `llm 1.20 s`."""
    found = [] if span.kind == "span" else [span.kind]
    if span.started_at is not None and span.finished_at is not None:
        seconds = span.finished_at.timestamp() - span.started_at.timestamp()
        found.append(numbers.duration(max(0.0, seconds * 1000)))
    return " ".join(found)
