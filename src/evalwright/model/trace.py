"""What a system did with one case: the trace and its parts (produced records).

Field names and defaults are those of the evalh format; readers accept every 1.x file,
ignore unknown keys and fill missing ones. Additions of ours: `trial`, `attempt`, `case_index`, `spans`, `occurrence`,
`group`.
"""

# No `from __future__ import annotations`: msgspec resolves annotations that are strings in the module named by the
# class, which for public records is `evalwright`.

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from evalwright.model.cell import Attempt, OfCase

__all__ = [
    "SCHEMA_VERSION",
    "UNDATED",
    "Answer",
    "Doubt",
    "Metrics",
    "Output",
    "Span",
    "SpanEvent",
    "ToolCall",
    "ToolResult",
    "Trace",
    "TraceError",
    "TraceMessage",
    "is_newer",
]

SCHEMA_VERSION = "1.0"
_MAJOR = 1
_DIGITS = 9
UNDATED = datetime(1970, 1, 1, tzinfo=UTC)
"""Start of a recording without a date; its replay begins at once. The date of reading would make a different case of
the same file each time."""


def is_newer(version: object) -> bool:
    """Whether a later major version of evalwright wrote a record, in which the same names may have other meanings.

    A version that does not begin with a short number is read as ours: its fields decide.
    """
    head = str(version).partition(".")[0]
    return head.isascii() and head.isdigit() and len(head) <= _DIGITS and int(head) > _MAJOR


class TraceError(msgspec.Struct, frozen=True, gc=False):
    """Why there is no verdict: `type` is one word (timeout, http_5xx, adapter_error, exception, cost_limit)."""

    type: str
    message: str
    stack: str | None = None
    status: int | msgspec.UnsetType = msgspec.UNSET
    """The HTTP status of a service that refused to answer."""
    retry_after_seconds: float | msgspec.UnsetType = msgspec.UNSET
    """How long the service asked to wait before the next call."""
    attempts: int | msgspec.UnsetType = msgspec.UNSET
    """How often a model was called: the layer that calls models retries itself, so that no other layer has to."""


class ToolCall(msgspec.Struct, gc=False, repr_omit_defaults=True):
    """One call of a tool by the system."""

    name: str
    id: str | None = None
    arguments: dict[str, Any] = {}
    started_at: datetime | None = None


class ToolResult(msgspec.Struct, gc=False, repr_omit_defaults=True):
    """What a tool returned."""

    name: str
    content: dict[str, Any] | str
    tool_call_id: str | None = None


class TraceMessage(msgspec.Struct, gc=False, repr_omit_defaults=True):
    """One message of the conversation; `name` is the tool's name for role `tool`."""

    role: str
    content: Any = None
    thinking: str | None = None
    tool_call: ToolCall | None = None
    name: str | None = None


class Output(msgspec.Struct, gc=False, repr_omit_defaults=True):
    """The system's answer; thinking is never part of `final_answer`."""

    final_answer: str | None = None
    thinking: str | None = None
    structured: dict[str, Any] | None = None


class Metrics(msgspec.Struct, gc=False, repr_omit_defaults=True):
    """What the call used: tokens, US dollars, milliseconds; null if not reported."""

    token_input: int | None = None
    token_output: int | None = None
    token_thinking: int | None = None
    cost_usd: float | None = None
    cost_thinking_usd: float | None = None
    latency_first_token_ms: int | None = None
    latency_last_token_ms: int | None = None
    tokens_per_second: float | None = None
    stream_chunks: int | None = None
    stream_completed: bool | None = None
    custom: dict[str, Any] = {}


class SpanEvent(msgspec.Struct, gc=False, repr_omit_defaults=True):
    """An event at one moment inside a span."""

    name: str
    at: datetime | None = None
    attributes: dict[str, Any] = {}


class Span(msgspec.Struct, gc=False, repr_omit_defaults=True):
    """One step inside the system: a model call, a tool call, a retrieval, an agent's turn.

    `kind` is one word (agent, llm, tool, retriever, embedding, chain, span); `status` is `ok`, `error` or `unset`.
    """

    id: str
    name: str
    parent_id: str | None = None
    kind: str = "span"
    started_at: datetime | None = None
    finished_at: datetime | None = None
    status: str = "unset"
    error: str | None = None
    input: Any = None
    output: Any = None
    attributes: dict[str, Any] = {}
    events: list[SpanEvent] = []


class Doubt(msgspec.Struct, frozen=True, gc=False):
    """What is odd about an answer without spoiling it; the end of the run says of how many of a system's it is so.

    Doubts of the same kind have the same `what`, which "in 2 of 5 replies" can follow; the details are in `example`.
    """

    what: str
    example: str = ""
    if_all: bool = False
    """Only worth saying if it is so of every answer of the session."""


class Answer(msgspec.Struct, gc=False):
    """What a target returns for one case; the runner turns it into a trace.

    `output` has the answer: `final_answer` (text), `structured` (a mapping) and `thinking` (text). `metrics` has token
    counts and `cost_usd` (US dollars). `extra` is kept with the trace.

    `started_at`, `finished_at`, `latency_ms` (milliseconds) and `input` are set by replay only; for everything else the
    runner measures the times, and the input is the case's. `doubts` are not stored with the trace. Without a call
    (`called` is false) there is no latency: 0 would lower the mean.

    Example:
        `Answer.of("It is on its way.", tool_calls=[ToolCall("find_order", arguments={"number": "1001"})])`
    """

    output: Output = msgspec.field(default_factory=Output)
    messages: list[TraceMessage] = []
    tool_calls: list[ToolCall] = []
    tool_results: list[ToolResult] = []
    metrics: Metrics = msgspec.field(default_factory=Metrics)
    error: TraceError | None = None
    extra: dict[str, Any] = {}
    started_at: datetime | None = None
    finished_at: datetime | None = None
    latency_ms: int | None = None
    spans: list[Span] = []
    doubts: tuple[Doubt, ...] = ()
    input: Any = None
    called: bool = True

    @classmethod
    def of(
        cls,
        text: str | None = None,
        *,
        thinking: str | None = None,
        structured: dict[str, Any] | None = None,
        tool_calls: list[ToolCall] | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        cost_usd: float | None = None,
        extra: dict[str, Any] | None = None,
        doubts: Sequence[Doubt] = (),
    ) -> "Answer":
        """An answer made of the parts that most systems report.

        Args:
            text: The answer as text.
            thinking: What the model thought before it answered.
            structured: The answer as a mapping.
            tool_calls: The calls of tools, in order.
            tokens_in: Tokens of the input, cached ones included.
            tokens_out: Tokens of the output.
            cost_usd: The cost of the call, US dollars.
            extra: Anything else to be kept with the trace.
            doubts: What the target could not use in the reply; a warning at the end of the run counts them.

        Returns:
            The answer; parts that are None are unknown.
        """
        return cls(
            output=Output(text, thinking, structured),
            tool_calls=tool_calls or [],
            metrics=Metrics(token_input=tokens_in, token_output=tokens_out, cost_usd=cost_usd),
            extra=extra or {},
            doubts=tuple(doubts),
        )


class Trace(OfCase, msgspec.Struct, gc=False):
    """One attempt of one cell (case, variant, trial), as stored in `traces.jsonl`.

    `attempt` counts finished attempts at the cell, from 1; the newest one wins in every reader.
    `latency_ms` is null only for a recording without a measured time, and for a cell whose system was not called.
    `case_index` is the position of the case in the run's `cases.jsonl`, null in folders of other programs.
    `group` is the case's, and not written if it has none.
    """

    case_id: str
    variant_name: str
    started_at: datetime
    finished_at: datetime
    latency_ms: int | None
    input: Any
    output: Output
    run_id: str = ""
    messages: list[TraceMessage] = []
    tool_calls: list[ToolCall] = []
    tool_results: list[ToolResult] = []
    metrics: Metrics = msgspec.field(default_factory=Metrics)
    error: TraceError | None = None
    extra: dict[str, Any] = {}
    trial: int = 0
    attempt: Attempt = 1
    case_index: int | None = None
    spans: list[Span] = []
    schema_version: str = SCHEMA_VERSION
    group: str | msgspec.UnsetType = msgspec.UNSET
