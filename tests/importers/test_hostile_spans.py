"""Spans of any shape are imported or refused, and nothing raises."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.importers.spans import OpenInference, OtlpJson
from importers.spans import TRACE

_PARTS = st.sampled_from([
    "resourceSpans", "scopeSpans", "spans", "traceId", "spanId", "parentSpanId", "name", "attributes", "key", "value",
    "stringValue", "intValue", "arrayValue", "kvlistValue", "values", "events", "status", "code", "startTimeUnixNano",
    "endTimeUnixNano", "gen_ai.input.messages", "llm.input_messages.0.message.role", "data", "context", "trace_id",
    "span_id", "resourceLogs", "scopeLogs", "logRecords", "eventName", TRACE, "01" * 8, "LLM",
])  # fmt: skip
_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | _PARTS
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_PARTS | st.text(), inner, max_size=5),
    max_leaves=30,
)
_KEYS = st.sampled_from([
    "gen_ai.operation.name", "openinference.span.kind", "gen_ai.input.messages", "gen_ai.output.messages",
    "gen_ai.prompt", "gen_ai.completion", "gen_ai.prompt.0.role", "gen_ai.prompt.0", "gen_ai.completion.1.content",
    "llm.input_messages", "llm.output_messages.0.message.tool_calls.0.tool_call.function.name",
    "llm.output_messages.0.message.role", "message", "gen_ai.usage.input_tokens", "llm.token_count.prompt",
    "llm.cost.total", "input.value", "output.value", "tool.name", "gen_ai.tool.call.arguments",
    "gen_ai.system_instructions", "content", "tool_calls", "exception.message", "error.type",
])  # fmt: skip
_SHAPES = st.sampled_from([
    "role", "content", "parts", "type", "tool_calls", "function", "name", "arguments", "id", "message", "contents",
    "message_content", "text", "tool_call", "response", "messages",
])  # fmt: skip
_SAID = st.recursive(
    st.sampled_from(
        ["assistant", "user", "tool", "tool_call", "tool_call_response", "text", "reasoning", "Hi", "{", ""]
    )
    | _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_SHAPES, inner, max_size=5),
    max_leaves=25,
)
_KINDS = st.sampled_from(["chat", "LLM", "TOOL", "execute_tool", "AGENT", "RETRIEVER", "x"])


def read(folder: Path, text: str) -> str:
    """What becomes of a file: a suite that loads, or a refusal in one line each."""
    source = folder / "spans.json"
    source.write_text(text)
    for kind in (OtlpJson, OpenInference):
        out = folder / kind.__name__
        for file in out.glob("*"):
            file.unlink()
        try:
            kind.import_files([source], out)
        except InputError:
            continue
        list(load_suite(out / "eval.yaml").cases)
    return "read or refused"


@given(documents=st.lists(_JSON | st.text(), max_size=4))
def test_no_json_makes_it_raise(tmp_path_factory, documents):
    text = "\n".join(document if isinstance(document, str) else json.dumps(document) for document in documents)
    assert read(tmp_path_factory.mktemp("any"), text.encode(errors="replace").decode()) == "read or refused"


@given(
    spans=st.lists(
        st.tuples(
            st.dictionaries(_KEYS, _SAID | _SAID.map(json.dumps) | _KINDS, max_size=8),
            st.integers(0, 4),
            st.dictionaries(_KEYS, _SAID, max_size=3),
            st.sampled_from(["gen_ai.choice", "gen_ai.user.message", "exception", "gen_ai.content.prompt"]),
        ),
        max_size=5,
    )
)
def test_no_attributes_make_it_raise(tmp_path_factory, spans):
    plain = [
        {
            "name": "s", "context": {"trace_id": TRACE, "span_id": f"{number + 1:016x}"}, "parent_id": f"{below:016x}",
            "attributes": given, "events": [{"name": named, "attributes": event}], "status": {"status_code": "ERROR"},
        }
        for number, (given, below, event, named) in enumerate(spans)
    ]  # fmt: skip
    assert read(tmp_path_factory.mktemp("any"), json.dumps(plain)) == "read or refused"
