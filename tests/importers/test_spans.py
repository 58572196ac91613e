"""Exported spans become cases with traces, one a trace, and a suite that replays them."""

from __future__ import annotations

import gzip
import json
import time
from base64 import b64encode

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from evalwright.importers.pricing import ListPricing
from evalwright.importers.spans import OpenInference, OtlpJson
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from importers.span_imports import cases, imported, model_call, trace
from importers.spans import TRACE, attributes, event, exported, span


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


@pytest.mark.parametrize("index", ["span", "number"])
def test_a_table_of_phoenix_may_be_written_by_columns(index, tmp_path):
    """As `to_json` of pandas writes it unless told otherwise."""
    spans = [{**COLUMNS, "context.span_id": f"{n:02}" * 8, "name": "Chat", "parent_id": None, "span_kind": "LLM",
              "context.trace_id": f"{n:02}" * 16, "start_time": 1760000000000, "end_time": 1760000001000}
             for n in (1, 2)]  # fmt: skip
    keys = [span.pop("context.span_id") if index == "span" else str(n) for n, span in enumerate(spans)]
    table = {name: dict(zip(keys, (span[name] for span in spans), strict=True)) for name in spans[0]}
    assert imported(tmp_path, table, plain=True).cases == 2
    assert detected(head_of(tmp_path / "spans.json")) == "openinference"
    found = [case["embedded_trace"] for case in cases(tmp_path)]
    assert [(one["output"]["final_answer"], one["spans"][0]["id"]) for one in found] == [
        ("Yo", "01" * 8),
        ("Yo", "02" * 8),
    ]


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


@pytest.mark.parametrize(
    ("models", "cost", "note"),
    [
        (["m", "m"], 24.0, "1 cost was computed from tokens (a table), see extra.cost_from"),
        (["m", "n"], None, "1 recording of several models, whose tokens are counted together: the cost is unknown"),
        ([None], None, "1 recording that names no model: the cost is unknown"),
    ],
    ids=["of one model", "of two", "of none that is named"],
)
def test_costs_that_no_span_has_are_worked_out_if_all_calls_are_of_one_model(tmp_path, models, cost, note):
    tokens = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5}
    calls = [
        span(i, "chat", {**tokens, "gen_ai.request.model": model, "gen_ai.response.model": model}, below=1)
        for i, model in enumerate(models, 2)
    ]
    (tmp_path / "spans.json").write_text(json.dumps(exported(span(1, "agent"), *calls)))
    pricing = ListPricing(lambda model, sent, *_: float(sent), "a table")
    done = OtlpJson.import_files([tmp_path / "spans.json"], tmp_path / "out", None, pricing)
    found = cases(tmp_path)[0]["embedded_trace"]
    assert (found["metrics"]["cost_usd"], "cost_from" in found["extra"]) == (cost, cost is not None)
    assert done.notes[-1] == note


def test_a_call_that_a_framework_has_by_another_name_of_the_model_is_of_one_model(tmp_path):
    counts = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5}
    calls = [
        span(i, "chat", {**counts, "gen_ai.response.model": model}, below=i - 1) for i, model in ((2, "m"), (3, "m-1"))
    ]
    (tmp_path / "spans.json").write_text(json.dumps(exported(span(1, "agent"), *calls)))
    pricing = ListPricing(lambda model, *_: 2.0 if model == "m-1" else None, "a table")
    OtlpJson.import_files([tmp_path / "spans.json"], tmp_path / "out", None, pricing)
    assert cases(tmp_path)[0]["embedded_trace"]["metrics"]["cost_usd"] == 2.0


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


SAID_BEFORE = [
    {"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "Let me look"},
                                    {"type": "tool_call", "id": "c1", "name": "track", "arguments": {"order": 7}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "Bonn"}]},
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "status", "answer", "unrecorded", "error"),
    [
        ({}, {}, None, "the export lacks the reply of the last call of a model", None),
        ({"output.value": "In Bonn"}, {}, "In Bonn", None, None),
        ({}, FAILED, None, None, "quota gone"),
    ],
    ids=["not exported", "a value", "failed"],
)
def test_what_a_model_said_before_a_reply_that_is_not_among_the_messages_is_no_answer(
    tmp_path, reply, status, answer, unrecorded, error
):
    """OpenLLMetry exports no replies of the Agents SDK's chat completions."""
    asked = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(SAID_BEFORE)}
    found = trace(tmp_path, exported(span(1, "flow"), span(2, "chat", {**asked, **reply}, below=1, **status)))
    assert (found["output"]["final_answer"], found["extra"].get("answer_unrecorded")) == (answer, unrecorded)
    assert (found["error"] and found["error"]["message"]) == error
    assert [call["name"] for call in found["tool_calls"]] == ["track"]
