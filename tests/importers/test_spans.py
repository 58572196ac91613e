"""Exported spans become cases with traces, one a trace, and a suite that replays them."""

from __future__ import annotations

import gzip
import json
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.importers.spans import OpenInference, OtlpJson
from evalwright.model.import_result import ImportResult
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from importers.spans import TRACE, attributes, event, exported, span

QUESTION = [{"role": "user", "content": "Where is order 7?"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"order": 7}'}}


def imported(folder: Path, *documents: Any, plain: bool = False) -> ImportResult:
    source = folder / "spans.json"
    source.write_text(
        "\n".join(document if isinstance(document, str) else json.dumps(document) for document in documents)
    )
    return (OpenInference if plain else OtlpJson).import_files([source], folder / "out")


def cases(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / "cases.jsonl").read_text().splitlines()]


def trace(folder: Path, *documents: Any, plain: bool = False) -> dict[str, Any]:
    imported(folder, *documents, plain=plain)
    found: dict[str, Any] = cases(folder)[0]["embedded_trace"]
    return found


def model_call(conventions: str) -> dict[str, Any]:
    """A span in which a model was asked, called a tool, and used 12 and 5 tokens."""
    if conventions == "messages":
        asked = [{"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]}]
        call = {"type": "tool_call", "id": "c1", "name": "track", "arguments": {"order": 7}}
        said = [
            {"role": "assistant", "parts": [{"type": "text", "content": "On its way"}, call], "finish_reason": "stop"}
        ]
        return span(2, "chat m", {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
            "gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said),
            "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5,
        }, below=1)  # fmt: skip
    if conventions == "structured messages":
        asked = [{"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]}]
        call = {"type": "tool_call", "id": "c1", "name": "track", "arguments": {"order": 7}}
        said = [{"role": "assistant", "parts": [{"type": "text", "content": "On its way"}, call]}]
        return span(2, "chat m", {
            "gen_ai.operation.name": "chat", "gen_ai.input.messages": asked, "gen_ai.output.messages": said,
            "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5,
        }, below=1)  # fmt: skip
    if conventions == "content events":
        said = [{"role": "assistant", "content": "On its way", "tool_calls": [CALL]}]
        return span(2, "chat m", {
            "gen_ai.operation.name": "chat", "gen_ai.system": "openai",
            "gen_ai.usage.prompt_tokens": 12, "gen_ai.usage.completion_tokens": 5,
        }, below=1, events=[
            event("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(QUESTION)}),
            event("gen_ai.content.completion", {"gen_ai.completion": json.dumps(said)}),
        ])  # fmt: skip
    if conventions == "message events":
        said = {"role": "assistant", "content": "On its way", "tool_calls": [CALL]}
        return span(2, "chat m", {
            "gen_ai.operation.name": "chat", "gen_ai.system": "openai",
            "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5,
        }, below=1, events=[
            event("gen_ai.user.message", {"content": "Where is order 7?"}),
            event("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": json.dumps(said)}),
        ])  # fmt: skip
    if conventions == "indexed prompts":
        return span(2, "openai.chat", {
            "llm.request.type": "chat", "gen_ai.system": "OpenAI",
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Where is order 7?",
            "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "On its way",
            "gen_ai.completion.0.tool_calls.0.id": "c1", "gen_ai.completion.0.tool_calls.0.name": "track",
            "gen_ai.completion.0.tool_calls.0.arguments": '{"order": 7}',
            "gen_ai.usage.prompt_tokens": 12, "gen_ai.usage.completion_tokens": 5,
        }, below=1)  # fmt: skip
    assert conventions == "openinference"
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    return span(2, "ChatCompletion", {
        "openinference.span.kind": "LLM", "llm.model_name": "m",
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Where is order 7?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": "On its way",
        f"{call}.id": "c1", f"{call}.function.name": "track", f"{call}.function.arguments": '{"order": 7}',
        "llm.token_count.prompt": 12, "llm.token_count.completion": 5,
    }, below=1)  # fmt: skip


CONVENTIONS = [
    "messages", "structured messages", "content events", "message events", "indexed prompts", "openinference",
]  # fmt: skip


@pytest.mark.parametrize("conventions", CONVENTIONS)
class TestEveryConventionTellsOfAModelCall:
    def test_what_was_asked_and_answered(self, conventions, tmp_path):
        recorded = trace(tmp_path, exported(span(1, "POST /ask"), model_call(conventions)))
        assert (recorded["input"]["user_message"], recorded["output"]["final_answer"]) == (
            "Where is order 7?",
            "On its way",
        )

    def test_which_tool_was_wanted(self, conventions, tmp_path):
        recorded = trace(tmp_path, exported(span(1, "POST /ask"), model_call(conventions)))
        assert [(call["name"], call["id"], call["arguments"]) for call in recorded["tool_calls"]] == [
            ("track", "c1", {"order": 7})
        ]

    def test_how_many_tokens_it_took(self, conventions, tmp_path):
        recorded = trace(tmp_path, exported(span(1, "POST /ask"), model_call(conventions)))
        assert (recorded["metrics"]["token_input"], recorded["metrics"]["token_output"]) == (12, 5)

    def test_that_its_span_is_a_model_call(self, conventions, tmp_path):
        recorded = trace(tmp_path, exported(span(1, "POST /ask"), model_call(conventions)))
        assert [(one["kind"], one["parent_id"]) for one in recorded["spans"]] == [
            ("span", None),
            ("llm", "0000000000000001"),
        ]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "server_tool_call", "id": "1", "name": "find", "server_tool_call": {"q": "x"}},
        {"type": "server_tool_use", "id": "1", "name": "find", "input": {"q": "x"}},
        {"type": "mcp_tool_use", "id": "1", "name": "find", "input": {"q": "x"}},
        {"type": "tool-call", "toolCallId": "1", "toolName": "find", "args": {"q": "x"}},
        {"functionCall": {"id": "1", "name": "find", "args": {"q": "x"}}},
        {"toolUse": {"toolUseId": "1", "name": "find", "input": {"q": "x"}}},
    ],
)
def test_calls_are_read_in_the_form_of_every_provider(part, tmp_path):
    messages = [{"role": "assistant", "parts": [part, {"type": "text", "content": "Found"}]}]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(messages)}
    recorded = trace(tmp_path, exported(span(1, "chat", attributes)))
    assert recorded["output"]["final_answer"] == "Found"
    assert [(call["name"], call["id"], call["arguments"]) for call in recorded["tool_calls"]] == [
        ("find", "1", {"q": "x"})
    ]


@pytest.mark.parametrize("texts", [["On its way"], ["On its", "way"]])
def test_text_that_a_message_says_twice_is_said_once(texts, tmp_path):
    """As OpenInference writes messages of the Agents SDK: whole, and in parts."""
    message = "llm.output_messages.0.message"
    parts = {f"{message}.contents.{i}.message_content.text": text for i, text in enumerate(texts)}
    attributes = {"openinference.span.kind": "LLM", f"{message}.role": "assistant", **parts}
    recorded = trace(tmp_path, exported(span(1, "chat", {**attributes, f"{message}.content": "\n".join(texts)})))
    assert recorded["output"]["final_answer"] == "\n".join(texts)
    (tmp_path / "apart").mkdir()
    apart = trace(tmp_path / "apart", exported(span(1, "chat", {**attributes, f"{message}.content": "So:"})))
    assert apart["output"]["final_answer"] == "\n".join(["So:", *texts])


def test_the_root_tells_input_output_and_latency(tmp_path):
    root = span(
        1, "ask", {"input.value": '{"question": "Why?"}', "output.value": "Because", "openinference.span.kind": "CHAIN"}
    )
    recorded = trace(tmp_path, exported(model_call("openinference"), root))
    assert (recorded["input"], recorded["output"]["final_answer"], recorded["latency_ms"]) == (
        {"user_message": "Why?", "question": "Why?"},
        "Because",
        98,
    )


def test_a_tool_that_was_carried_out_is_one_call_with_its_result(tmp_path):
    tool = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "track", "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"order": 7}', "gen_ai.tool.call.result": '{"at": "Bonn"}',
    }  # fmt: skip
    recorded = trace(
        tmp_path, exported(span(1, "ask"), model_call("messages"), span(3, "execute_tool track", tool, below=1))
    )
    assert ([call["name"] for call in recorded["tool_calls"]], recorded["tool_results"][0]["content"]) == (
        ["track"],
        {"at": "Bonn"},
    )


def test_sums_that_spans_around_repeat_are_counted_once(tmp_path):
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5}
    recorded = trace(tmp_path, exported(span(1, "invoke_agent", agent), model_call("messages")))
    assert recorded["metrics"]["token_input"] == 12


@pytest.mark.parametrize(("given", "tokens"), [(100, 100), (80, 80), (79, 159)])
def test_an_input_that_is_less_than_its_cached_parts_leaves_them_out(tmp_path, given, tokens):
    usage = {"input_tokens": given, "cache_read.input_tokens": 50, "cache_creation.input_tokens": 30}
    call = span(1, "chat", {f"gen_ai.usage.{key}": count for key, count in usage.items()})
    assert trace(tmp_path, exported(call))["metrics"]["token_input"] == tokens


@pytest.mark.parametrize(("count", "tokens"), [("12", 12), ("1.5", None), ("many", None), ("9" * 20, None)])
def test_counts_that_were_exported_as_text_are_read(tmp_path, count, tokens):
    recorded = trace(tmp_path, exported(span(1, "ask", {"gen_ai.usage.input_tokens": count})))
    assert recorded["metrics"]["token_input"] == tokens


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("gen_ai.usage.input_tokens", -1, "expected a number of tokens, found the number -1"),
        ("llm.token_count.completion", "many", "expected a number of tokens, found the string 'many'"),
        ("llm.cost.total", -0.5, "expected a cost in dollars, found the number -0.5"),
    ],
)
def test_usage_that_cannot_be_read_is_told(tmp_path, key, value, told):
    given = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": '["hi"]', key: value}
    recorded = trace(tmp_path, exported(span(1, "chat", given)))
    assert recorded["extra"]["warnings"] == [f"span 0000000000000001 (chat): {key}: {told}"]


def test_spans_of_a_trace_are_gathered_from_all_lines(tmp_path):
    other = {**span(1, "other"), "traceId": "ab" * 16}
    imported(tmp_path, exported(model_call("messages")), exported(other), exported(span(1, "ask")))
    assert [(case["id"], len(case["embedded_trace"]["spans"])) for case in cases(tmp_path)] == [
        (TRACE, 2),
        ("ab" * 16, 1),
    ]


def test_a_document_may_span_lines_and_another_follow(tmp_path):
    other = {**span(1, "other"), "traceId": "ab" * 16}
    imported(tmp_path, json.dumps(exported(span(1, "ask")), indent=2), json.dumps(exported(other), indent=1))
    assert [case["id"] for case in cases(tmp_path)] == [TRACE, "ab" * 16]


def test_events_of_a_span_may_come_as_log_records(tmp_path):
    messages = [{"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]}]
    record = {
        "traceId": TRACE,
        "spanId": f"{2:016x}",
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": attributes({"gen_ai.output.messages": messages}),
    }
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    recorded = trace(
        tmp_path, exported(span(1, "ask"), span(2, "chat", {"gen_ai.operation.name": "chat"}, below=1)), logs
    )
    assert recorded["output"]["final_answer"] == "Hi"


ASKED, ANSWERED = (
    [{"message": {"role": "user", "content": "Hi"}}],
    [{"message.role": "assistant", "message.content": "Yo"}],
)
NESTED = {
    "context": {"trace_id": TRACE, "span_id": "01" * 8},
    "attributes": {"llm": {"input_messages": ASKED, "token_count": {"prompt": 3}}, "llm.output_messages": ANSWERED},
}
COLUMNS = {
    "context.trace_id": TRACE,
    "context.span_id": "01" * 8,
    "attributes.llm.input_messages": ASKED,
    "attributes.llm.output_messages": ANSWERED,
    "attributes.llm.token_count.prompt": 3,
}


@pytest.mark.parametrize("shape", [NESTED, COLUMNS], ids=["nested", "columns"])
def test_plain_spans_of_phoenix_are_read(shape, tmp_path):
    times = {"start_time": "2026-05-01T10:00:00+00:00", "end_time": "2026-05-01T10:00:01.500000+00:00"}
    recorded = trace(tmp_path, {"name": "Chat", "span_kind": "LLM", "parent_id": None, **times, **shape}, plain=True)
    assert (recorded["input"]["user_message"], recorded["output"]["final_answer"]) == ("Hi", "Yo")
    assert (recorded["latency_ms"], recorded["metrics"]["token_input"]) == (1500, 3)


@pytest.fixture
def in_tokyo(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


def test_times_without_a_zone_are_in_utc(tmp_path, in_tokyo):
    times = {"start_time": "2026-05-01T10:00:00", "end_time": "2026-05-01T10:00:01"}
    recorded = trace(tmp_path, {"name": "Chat", "span_kind": "LLM", "parent_id": None, **times, **NESTED}, plain=True)
    assert (recorded["started_at"], recorded["finished_at"]) == ("2026-05-01T10:00:00Z", "2026-05-01T10:00:01Z")


def test_spans_as_an_sdk_prints_them_are_read(tmp_path):
    printed = {
        "name": "ask", "context": {"trace_id": "0x" + TRACE, "span_id": "0x" + "01" * 8}, "kind": "SpanKind.INTERNAL",
        "parent_id": None, "start_time": "2026-05-01T10:00:00Z", "end_time": "2026-05-01T10:00:01Z",
        "status": {"status_code": "UNSET"}, "attributes": {"input.value": "Hi", "output.value": "Hello"}, "events": [],
    }  # fmt: skip
    imported(tmp_path, json.dumps(printed, indent=4), plain=True)
    assert [(case["id"], case["embedded_trace"]["output"]["final_answer"]) for case in cases(tmp_path)] == [
        (TRACE, "Hello")
    ]


def test_ids_in_base64_are_the_same_ids(tmp_path):
    ids = {"traceId": b64encode(bytes.fromhex(TRACE)).decode(), "spanId": b64encode(bytes(7) + b"\x01").decode()}
    imported(tmp_path, exported({**span(1, "ask"), **ids}, span(2, "inner", below=1)))
    assert [(case["id"], len(case["embedded_trace"]["spans"])) for case in cases(tmp_path)] == [(TRACE, 2)]


class TestBroken:
    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            ({"startTimeUnixNano": "soon"}, "startTimeUnixNano: expected nanoseconds since 1970"),
            ({"endTimeUnixNano": "5"}, "ends before it starts"),
            ({"endTimeUnixNano": 0}, "has no end"),
            ({"spanId": None}, "expected the id of the span"),
            ({"attributes": "none"}, "attributes: expected a list of objects"),
            ({"parentSpanId": f"{1:016x}"}, "is below itself"),
        ],
    )
    def test_spans_are_the_error_of_their_trace(self, wrong, told, tmp_path):
        recorded = trace(tmp_path, exported({**span(1, "ask"), **wrong}))
        assert (recorded["error"]["type"], told in recorded["error"]["message"]) == ("broken_trace", True)

    def test_lines_are_told_and_the_others_read(self, tmp_path):
        result = imported(tmp_path, exported(span(1, "ask")), '{"resourceSpans": [{"sco')
        assert (result.cases, "lost: line 2: is not valid JSON" in result.notes[0]) == (1, True)

    def test_a_first_line_is_told_too(self, tmp_path):
        result = imported(tmp_path, '{"resourceSpans": [{"sco', exported(span(1, "ask")))
        assert (result.cases, "lost: line 1" in result.notes[0]) == (1, True)

    def test_spans_without_a_trace_are_told(self, tmp_path):
        result = imported(tmp_path, exported({**span(1, "ask"), "traceId": "0" * 32}, span(2, "ask")))
        assert "lost: line 1: a span without a trace" in result.notes[0]

    def test_what_an_application_failed_of_is_the_error(self, tmp_path):
        raised = event("exception", {"exception.type": "ValueError", "exception.message": "no such order"})
        recorded = trace(tmp_path, exported(span(1, "ask", status={"code": 2}, events=[raised])))
        assert (recorded["error"]["type"], recorded["error"]["message"]) == ("exception", "ValueError: no such order")

    def test_a_root_that_is_not_there_is_told(self, tmp_path):
        recorded = trace(tmp_path, exported(model_call("messages")))
        assert recorded["extra"]["warnings"] == ["the root span is missing; 'chat m', the first one, is used instead"]

    def test_a_file_without_spans_is_refused_with_its_reasons(self, tmp_path):
        with pytest.raises(InputError, match="line 1: expected 'resourceSpans', found the keys a"):
            imported(tmp_path, {"a": 1})


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains no spans"):
        imported(tmp_path)


def test_spans_of_one_trace_may_be_in_several_files_and_packed(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(exported(span(1, "ask", {"input.value": "Where?"}))))
    (tmp_path / "b.json").write_bytes(gzip.compress(json.dumps(exported(span(2, "step", below=1))).encode()))
    (tmp_path / "c.json").write_bytes(gzip.compress(b'{"resourceSpans": []}' * 9)[:-9])
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for format in (OtlpJson, OpenInference):
        out = tmp_path / format.__name__
        assert format.import_files(files, out).cases == 1
        (trace,) = [json.loads(line)["embedded_trace"] for line in (out / "cases.jsonl").read_text().splitlines()]
        assert {one["name"] for one in trace["spans"]} == {"ask", "step"}
        assert trace["extra"]["imported_from"]["file"] == "a.json and 1 more file"
    with pytest.raises(InputError, match=r"c\.json  cannot be read"):
        OtlpJson.import_files([*files, tmp_path / "c.json"], tmp_path / "out")


FAILED = {"status": {"code": 2, "message": "quota gone"}}


@pytest.mark.parametrize(
    ("inner", "error"),
    [
        (span(2, "bad", {"openinference.span.kind": "AGENT"}, below=1, **FAILED), "quota gone"),
        (span(2, "chat", {"gen_ai.operation.name": "chat"}, below=1, **FAILED), "quota gone"),
        (span(2, "look", {"gen_ai.operation.name": "execute_tool"}, below=1, **FAILED), None),
    ],
)
def test_an_agent_that_failed_without_an_answer_is_an_error_whatever_is_around_it(tmp_path, inner, error):
    around = span(1, "Agent workflow", {"openinference.span.kind": "AGENT"}, status={"code": 1})
    recorded = trace(tmp_path, exported(around, inner))
    assert (recorded["error"] and recorded["error"]["message"]) == error


def test_an_application_that_recovered_has_no_error(tmp_path):
    around = span(1, "workflow", {"openinference.span.kind": "AGENT", "output.value": "Try later."})
    bad = span(2, "bad", {"openinference.span.kind": "AGENT"}, below=1, **FAILED)
    assert trace(tmp_path, exported(around, bad))["error"] is None


def test_what_a_step_returned_before_the_application_failed_is_no_answer(tmp_path):
    chain = {"openinference.span.kind": "CHAIN"}
    step = span(2, "tools", {**chain, "output.value": '{"update": {}}'}, below=1)
    assert trace(tmp_path, exported(span(1, "app", chain, **FAILED), step))["output"]["final_answer"] is None


def test_the_stack_of_an_exception_is_no_part_of_its_message(tmp_path):
    stack = "Traceback (most recent call last):\n  File x\nValueError: boom"
    status = {"code": 2, "message": f"ValueError('boom'){stack}"}
    error = trace(tmp_path, exported(span(1, "app", status=status)))["error"]
    assert (error["message"], error["stack"]) == ("ValueError('boom')", stack)


def test_messages_of_langchain_may_be_pairs_of_role_and_text(tmp_path):
    given = {"input.value": '{"messages": [["system", "Be brief."], ["user", "Where is order 7?"]]}'}
    recorded = trace(tmp_path, exported(span(1, "LangGraph", given)))
    assert recorded["input"]["user_message"] == "Where is order 7?"


def test_reasoning_is_read_from_the_text_of_its_part(tmp_path):
    part = "llm.output_messages.0.message.contents.0.message_content"
    given = {"openinference.span.kind": "LLM", f"{part}.type": "reasoning", f"{part}.text": "hm"}
    recorded = trace(tmp_path, exported(span(1, "response", given)))
    assert [message["thinking"] for message in recorded["messages"]] == ["hm"]


def test_a_mapping_is_refused(tmp_path):
    with pytest.raises(InputError, match="spans need no mapping"):
        OtlpJson.import_files([tmp_path / "spans.json"], tmp_path / "out", {"id": "x"})


@pytest.fixture
def judged(tmp_path):
    failed = {**span(1, "ask", status={"code": 2, "message": "boom"}), "traceId": "ef" * 16}
    silent = {**span(1, "ask", {"input.value": "Where?"}), "traceId": "ab" * 16}
    wordless = {**span(1, "ask", {"gen_ai.usage.input_tokens": 7}), "traceId": "ac" * 16}
    shielded = {"input.value": "Where?", "output.value": "__REDACTED__"}
    hidden = {**span(1, "ask", shielded), "traceId": "ad" * 16}
    imported(tmp_path, exported(span(1, "ask"), model_call("messages"), silent, wordless, hidden, failed))
    suite = load_suite(tmp_path / "out" / "eval.yaml")
    outcome = run_suite(suite, RunOptions(out=tmp_path / "runs"))
    return outcome.summary.variants[0]


def test_the_suite_runs_and_what_failed_or_was_not_recorded_gets_no_verdict(judged):
    assert [judged.cells[name] for name in ("pass", "fail", "skip", "error")] == [1, 1, 2, 1]


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
