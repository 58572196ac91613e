"""Cases and traces with whatever may be in them, for property tests."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from evalwright.model.snapshot import Case, Expected
from evalwright.model.trace import (
    Answer,
    Metrics,
    Output,
    Span,
    ToolCall,
    ToolResult,
    Trace,
    TraceError,
    TraceMessage,
)
from evalwright.testing import a_trace

__all__ = ["PATHS", "answers", "cases", "traces"]

PATHS = (
    "output.final_answer",
    "$.output.final_answer",
    "output.structured.a",
    "output.structured.b[0]",
    "messages",
    "messages[-1].content",
    "$.messages[*].role",
    "tool_calls[0].arguments.n",
    "tool_results",
    "metrics.token_input",
    "metrics.custom.seen",
    "latency_ms",
    "error",
    "extra.note",
    "spans[0].name",
    "input.text",
    "case_id",
    "$..n",
    "case.input",
    "case.expected.facts.answer",
    "case.metadata.tier",
    "nothing.there",
)
"""Where the checks of a field may look."""

_texts = st.sampled_from(
    ["", "blue sky", "Dear Sir, order 1234 is refunded", "sorry", '{"a": 1}', "Grün\u2028", "null"]
)
_values: Any = st.sampled_from([None, 1, 1.0, True, "1", [], [1, "x"], {}, {"n": 1}])
_mappings = st.dictionaries(st.sampled_from(["a", "b", "n", "note", "ground_truth", "error"]), _values, max_size=3)
_names = st.sampled_from(["refund", "look"])
_calls = st.builds(ToolCall, _names, st.sampled_from([None, "t0"]), st.just({"order": "1001"}) | _mappings)
_contents: Any = st.sampled_from(["seen", {"ok": True}, {"error": "no"}, {"is_error": True}])
_parts: Any = st.sampled_from([None, "blue sky", [{"type": "text", "text": "sky"}, {"type": "image", "url": "a.png"}]])
_messages = st.builds(
    TraceMessage,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    _parts,
    st.none() | _texts,
    st.none() | _calls,
    st.none() | _names,
)
_numbers = st.sampled_from([None, 0, 3, 5_000])
_amounts = st.sampled_from([None, 0.0, 0.25, 40.0])
_metrics = st.builds(
    Metrics,
    token_input=_numbers,
    token_output=_numbers,
    token_thinking=_numbers,
    cost_usd=_amounts,
    latency_first_token_ms=_numbers,
    tokens_per_second=_amounts,
    stream_completed=st.sampled_from([None, False, True]),
    custom=st.sampled_from([{}, {"seen": 2}]),
)
_extras: Any = st.sampled_from(
    [
        {},
        {"note": "blue"},
        {"answer_unrecorded": "not recorded"},
        {"duration_ms": 12.5, "token_usage": {"input": 4, "output": 9, "cached": 1}},
    ]
)
_spans = st.builds(
    Span, st.sampled_from(["s0", "s1"]), _names, kind=st.sampled_from(["llm", "tool", "span"]), output=_values
)
_errors = st.sampled_from([None, None, None, TraceError("timeout", "too late")])
_inputs: Any = st.sampled_from(["in", {"text": "in"}, [{"role": "user", "content": "in"}], None])


@cache  # a strategy is checked whenever it is new: that took longer than to draw from it
def answers() -> st.SearchStrategy[Answer]:
    """Answers of a system that did not err."""
    return st.builds(
        Answer,
        st.builds(Output, st.none() | _texts, st.none() | _texts, st.none() | _mappings),
        st.lists(_messages, max_size=4),
        st.lists(_calls, max_size=3),
        st.lists(st.builds(ToolResult, _names, _contents, st.sampled_from([None, "t0"])), max_size=3),
        _metrics,
        extra=_extras,
        spans=st.lists(_spans, max_size=2),
    )


@cache
@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Stored answers, of systems that erred, too."""
    answer = draw(answers())
    return a_trace(
        input=draw(_inputs),
        output=answer.output,
        latency_ms=draw(_numbers),
        messages=answer.messages,
        tool_calls=answer.tool_calls,
        tool_results=answer.tool_results,
        metrics=answer.metrics,
        error=draw(_errors),
        extra=answer.extra,
        spans=answer.spans,
    )


_words = st.lists(st.sampled_from(["blue", "sky", "order", "sorry"]), max_size=2)


@cache
def cases() -> st.SearchStrategy[Case]:
    """Cases that expect something, or nothing."""
    facts: Any = st.sampled_from(
        [{}, {"answer": "blue sky"}, {"ground_truth": "sky"}, {"actions": [{"name": "look", "arguments": {"n": 1}}]}]
    )
    return st.builds(
        Case,
        st.sampled_from(["c0", "c1"]),
        _inputs,
        st.builds(Expected, st.lists(_names, max_size=2), _words, _words, facts),
        metadata=st.sampled_from([{}, {"tier": "gold"}]),
        tags=st.sampled_from([[], ["a"]]),
        extra=st.sampled_from([{}, {"ground_truth": "blue sky"}]),
    )
