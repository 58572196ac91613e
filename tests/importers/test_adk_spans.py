"""Spans of Google's Agent Development Kit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from importers.spans import exported, span
from importers.transcripts import imported, spoken, written

ASKED = {"role": "user", "parts": [{"text": "Weather?"}]}
CALLED = {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Bonn"}}}]}
RETURNED = {"id": "c1", "name": "weather", "response": {"result": "20"}}
ANSWERED = {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "20 degrees"}]}


def model(number: int, given: list[Any], reply: Any, **config: Any) -> Any:
    request = {"model": "m", "config": config, "contents": given}
    return span(number, "call_llm", {
        "gcp.vertex.agent.llm_request": json.dumps(request),
        "gcp.vertex.agent.llm_response": json.dumps({"content": reply}), "gen_ai.usage.input_tokens": 10,
    }, below=0)  # fmt: skip


def tool(args: str, response: str) -> Any:
    return span(2, "execute_tool weather", {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1",
        "gcp.vertex.agent.tool_call_args": args, "gcp.vertex.agent.tool_response": response,
    }, below=0)  # fmt: skip


def trace_of(folder: Path, *spans: Any) -> dict[str, Any]:
    records = [exported(span(0, "invocation"), *spans)]
    _, [case] = imported(folder, "otlp-json", written(folder / "x.jsonl", records))
    found: dict[str, Any] = case["embedded_trace"]
    return found


def test_requests_and_replies_of_models_are_the_conversation(tmp_path):
    results = {"role": "user", "parts": [{"function_response": RETURNED}]}
    second = model(1, [ASKED, CALLED, results], ANSWERED, system_instruction="Be brief")
    trace = trace_of(tmp_path, second, model(3, [ASKED], CALLED))
    assert (trace["input"]["user_message"], trace["output"]["final_answer"]) == ("Weather?", "20 degrees")
    assert spoken(trace) == [
        ("system", "Be brief", None),
        ("user", "Weather?", None),
        ("assistant", None, "weather"),
        ("tool", {"result": "20"}, None),
        ("assistant", "20 degrees", None),
    ]
    assert (trace["output"]["thinking"], trace["metrics"]["token_input"]) == ("Hm.", 20)


def test_the_span_of_a_tool_has_what_it_was_given_and_returned(tmp_path):
    trace = trace_of(tmp_path, tool('{"city": "Bonn"}', '{"result": "20"}'))
    assert [call["arguments"] for call in trace["tool_calls"]] == [{"city": "Bonn"}]
    assert [result["content"] for result in trace["tool_results"]] == [{"result": "20"}]


def test_content_that_the_kit_was_told_to_leave_out_is_no_result(tmp_path):
    assert trace_of(tmp_path, tool("{}", "{}"))["tool_results"] == []


def test_the_span_that_merges_the_results_of_parallel_calls_is_no_call(tmp_path):
    merged = span(4, "execute_tool (merged)", {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)", "gen_ai.tool.call.id": "event-1",
        "gcp.vertex.agent.tool_call_args": "N/A", "gcp.vertex.agent.tool_response": '{"author": "agent"}',
    }, below=0)  # fmt: skip
    trace = trace_of(tmp_path, tool('{"city": "Bonn"}', '{"result": "20"}'), merged)
    assert [call["name"] for call in trace["tool_calls"]] == ["weather"]


def test_an_instruction_may_have_parts(tmp_path):
    instruction = {"role": "user", "parts": [{"text": "Be brief"}]}
    trace = trace_of(tmp_path, model(1, [ASKED], ANSWERED, system_instruction=instruction))
    assert spoken(trace)[0] == ("system", "Be brief", None)
