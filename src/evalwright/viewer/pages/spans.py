"""The spans of a trace as rows of a table, each with its bar on one scale of time."""

from __future__ import annotations

from typing import NamedTuple

from evalwright.model.trace import Span, Trace
from evalwright.reports.steps import outlined, recorded_in
from evalwright.viewer.pages.blocks import Blocks, ShownText

__all__ = ["SpanRow", "SpanTable", "span_rows"]

_MOST = 500
_DEEPEST = 12
_TOKENS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    ("llm.token_count.prompt", "llm.token_count.completion"),
    ("input_tokens", "output_tokens"),
)


class SpanRow(NamedTuple):
    """One step; `left` and `width` are the ends of its bar, from 0 to 100."""

    depth: int
    name: str
    kind: str
    start: float | None
    duration: float | None
    tokens: str
    cost: float | None
    status: str
    error: ShownText | None
    left: float
    width: float
    parts: list[tuple[str, ShownText]]
    id: str
    """The place of its row on the page."""


class SpanTable(NamedTuple):
    """The rows of a page for spans, and how many are left out."""

    rows: list[SpanRow]
    left_out: int
    most: int = _MOST

    @property
    def failed(self) -> list[SpanRow]:
        """The steps that ended in an error."""
        return [row for row in self.rows if row.status == "error"]

    @property
    def more_elsewhere(self) -> bool:
        """Whether a page with everything has more of them."""
        return self.left_out > 0 and len(self.rows) < self.most


def span_rows(trace: Trace, blocks: Blocks, share: int | None = None) -> SpanTable:
    """At most 500, or five times `share`: the earliest, and errors regardless of time."""
    most = _MOST if share is None else min(_MOST, 5 * share)
    spans = trace.spans
    places = {id(span): place for place, span in enumerate(spans)}
    rows = list(outlined(spans))
    if len(rows) > most:
        first = sorted(spans, key=lambda s: (s.started_at is None, s.started_at.timestamp() if s.started_at else 0.0))
        errors = [span for span in first if span.status == "error"]
        kept = {id(span) for span in first[:most]} | {id(span) for span in (errors if most == _MOST else errors[:most])}
        rows = [(depth, span) for depth, span in rows if id(span) in kept]
    starts = [span.started_at.timestamp() for span in spans if span.started_at]
    ends = [span.finished_at.timestamp() for span in spans if span.finished_at]
    begin = min(starts, default=0.0)
    length = max(max(ends, default=begin) - begin, 1e-9)
    made = [_row(depth, span, begin, length, blocks, places[id(span)]) for depth, span in rows]
    return SpanTable(made, len(spans) - len(made))


def _row(depth: int, span: Span, begin: float, length: float, blocks: Blocks, place: int) -> SpanRow:
    at = f"trace/spans/{place}"
    start = span.started_at.timestamp() - begin if span.started_at else None
    took = None
    if span.started_at and span.finished_at:
        took = max(0.0, span.finished_at.timestamp() - span.started_at.timestamp())
    recorded = list(recorded_in(span))
    if recorded and blocks.is_full and (everything := blocks.elsewhere(at)).whole:  # one address for all of them
        parts = [("recorded", everything)]
    else:
        parts = [(label, blocks.of(value, f"{at}/{label}")) for label, value in recorded]
    return SpanRow(
        min(depth, _DEEPEST),
        span.name,
        span.kind,
        None if start is None else start * 1000,
        None if took is None else took * 1000,
        _tokens(span),
        _span_cost(span),
        span.status,
        blocks.of(span.error, f"{at}/error") if span.error else None,
        0.0 if start is None else 100 * start / length,
        0.0 if took is None else max(0.6, 100 * took / length),
        parts,
        f"span{place + 1}",
    )


def _tokens(span: Span) -> str:
    for names in _TOKENS:
        attributes = [span.attributes.get(name) for name in names]
        if any(isinstance(attribute, int | float) for attribute in attributes):
            return " → ".join(f"{number:,}" if isinstance(number, int | float) else "?" for number in attributes)
    return ""


def _span_cost(span: Span) -> float | None:
    cost_usd = span.attributes.get("cost_usd", span.attributes.get("llm.cost.total"))
    return float(cost_usd) if isinstance(cost_usd, int | float) else None
