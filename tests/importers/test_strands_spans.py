"""Spans of Strands: messages in events, whose parts are those of Bedrock."""

from __future__ import annotations

import json

from importers.spans import event, exported, span
from importers.transcripts import imported, spoken, written

ASKED = event("gen_ai.user.message", {"content": json.dumps([{"text": "Weather?"}])})
CALL = [{"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Bonn"}}}]
RESULT = [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "20"}, {"text": "degrees"}]}}]
CHAT = {"gen_ai.operation.name": "chat"}
SPANS = [
    span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"},
         events=[ASKED, event("gen_ai.choice", {"message": "It is warm"})]),
    span(2, "chat", CHAT, below=1, events=[ASKED, event("gen_ai.choice", {"message": json.dumps(CALL)})]),
    span(3, "execute_tool", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}, below=1, events=[
        event("gen_ai.tool.message", {"role": "tool", "content": '{"city": "Bonn"}', "id": "c1"}),
        event("gen_ai.choice", {"message": json.dumps(RESULT[0]["toolResult"]["content"]), "id": "c1"}),
    ]),
]  # fmt: skip


def trace_of(tmp_path, *spans):
    _, [case] = imported(tmp_path, "otlp-json", written(tmp_path / "x.jsonl", [exported(*spans)]))
    return case["embedded_trace"]


def test_parts_without_a_type_are_texts_calls_and_results(tmp_path):
    talk = [
        ASKED,
        event("gen_ai.assistant.message", {"content": json.dumps(CALL)}),
        event("gen_ai.tool.message", {"content": json.dumps(RESULT)}),
        event("gen_ai.choice", {"message": json.dumps([{"text": "It is warm"}])}),
    ]
    trace = trace_of(tmp_path, span(1, "chat", CHAT, events=talk))
    assert trace["input"]["user_message"] == "Weather?"
    assert spoken(trace) == [
        ("user", "Weather?", None),
        ("assistant", None, "weather"),
        ("tool", "20\ndegrees", None),
        ("assistant", "It is warm", None),
    ]


def test_reasoning_attachments_and_objects_of_bedrock_are_read(tmp_path):
    result = {"toolUseId": "c1", "content": [{"json": {"degrees": 20}}]}
    reply = [{"reasoningContent": {"reasoningText": {"text": "Hm."}}}, {"text": "It is warm"}]
    talk = [
        event("gen_ai.user.message", {"content": json.dumps([{"text": "See"}, {"image": {"format": "png"}}])}),
        event("gen_ai.assistant.message", {"content": json.dumps(CALL)}),
        event("gen_ai.tool.message", {"content": json.dumps([{"toolResult": result}])}),
        event("gen_ai.choice", {"message": json.dumps(reply)}),
    ]
    trace = trace_of(tmp_path, span(1, "chat", CHAT, events=talk))
    assert [message["content"] for message in trace["messages"]] == [
        "See\n[image]", None, {"degrees": 20}, "It is warm",
    ]  # fmt: skip
    assert trace["output"]["thinking"] == "Hm."


def test_the_span_of_a_tool_has_its_arguments_and_result_in_events(tmp_path):
    trace = trace_of(tmp_path, *SPANS[::2])
    assert [(call["name"], call["arguments"]) for call in trace["tool_calls"]] == [("weather", {"city": "Bonn"})]
    assert [result["content"] for result in trace["tool_results"]] == ["20\ndegrees"]


def test_a_call_that_a_model_requested_and_a_span_executed_is_one(tmp_path):
    assert [call["id"] for call in trace_of(tmp_path, *SPANS)["tool_calls"]] == ["c1"]
