"""Streams of known protocols: recorded from the AI SDK, Pydantic AI and APIs of models."""

import json

import pytest

from evalwright.errors import InputError, TargetError
from evalwright.targets.http.protocols import PROTOCOLS
from targets.loopback import ask, build, chunked

CALL = {"toolCallId": "c1", "toolName": "weather"}
USAGE = {"inputTokens": 30, "outputTokens": 12, "outputTokenDetails": {"reasoningTokens": 4}}
AI_SDK = [
    {"type": "start"},
    {"type": "start-step"},
    {"type": "reasoning-start", "id": "r"},
    {"type": "reasoning-delta", "id": "r", "delta": "Look "},
    {"type": "reasoning-delta", "id": "r", "delta": "it up."},
    {"type": "text-start", "id": "1"},
    {"type": "text-delta", "id": "1", "delta": "Let me check."},
    {"type": "tool-input-start", **CALL},
    {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"city":'},
    {"type": "tool-input-available", **CALL, "input": {"city": "Rome"}},
    {"type": "tool-output-available", "toolCallId": "c1", "output": {"sky": "?"}, "preliminary": True},
    {"type": "tool-output-available", "toolCallId": "c1", "output": {"sky": "clear"}},
    {"type": "finish-step"},
    {"type": "start-step"},
    {"type": "text-delta", "id": "1", "delta": "It is "},
    {"type": "text-delta", "id": "1", "delta": "sunny."},
    {"type": "finish-step"},
    {"type": "finish", "finishReason": "stop", "messageMetadata": {"totalUsage": USAGE}},
]
DATA_STREAM = b"""f:{"messageId":"msg-1"}
g:"Look it up."
0:"Let me "
0:"check."
b:{"toolCallId":"c1","toolName":"weather"}
c:{"toolCallId":"c1","argsTextDelta":"{\\"city\\":\\"Rome\\"}"}
9:{"toolCallId":"c1","toolName":"weather","args":{"city":"Rome"}}
a:{"toolCallId":"c1","result":{"sky":"clear"}}
e:{"finishReason":"tool-calls","usage":{"promptTokens":10,"completionTokens":5},"isContinued":false}
f:{"messageId":"msg-2"}
0:"It is sunny."
e:{"finishReason":"stop","usage":{"promptTokens":20,"completionTokens":7},"isContinued":false}
d:{"finishReason":"stop","usage":{"promptTokens":30,"completionTokens":12}}
"""
AG_UI = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    {"type": "REASONING_MESSAGE_START", "messageId": "m0", "role": "reasoning"},
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m0", "delta": "Look it up."},
    {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Let me check."},
    {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "weather", "parentMessageId": "m1"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"city":'},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '"Rome"}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    {"type": "TOOL_CALL_RESULT", "messageId": "m2", "toolCallId": "c1", "content": '{"sky":"clear"}', "role": "tool"},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m3", "delta": "It is "},
    {"type": "TEXT_MESSAGE_CHUNK", "delta": "sunny."},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "s1", "subagentRunId": "s", "delta": "of another"},
    {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success"},
     "usage": [{"inputTokens": 10, "outputTokens": 5}, {"inputTokens": 20, "outputTokens": 7}]},
]  # fmt: skip
OPENAI_CHAT = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_content": "Look it up."}}]},
    {"choices": [{"index": 0, "delta": {"content": "It is "}}]},
    {"choices": [{"index": 0, "delta": {"content": "sunny."}}, {"index": 1, "delta": {"content": "no"}}]},
    {
        "choices": [
            {"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "weather", "arguments": ""}}]}}
        ]
    },
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"Rome"}'}}]}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 12}},
]
FUNCTION_CALL = {"id": "fc", "type": "function_call", "call_id": "c1", "name": "weather"}
OPENAI_RESPONSES = [
    {"type": "response.created", "response": {"id": "r", "error": None}},
    {"type": "response.reasoning_summary_text.delta", "item_id": "rs", "summary_index": 0, "delta": "Look it up."},
    {"type": "response.output_item.added", "item": {**FUNCTION_CALL, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": '{"city":'},
    {"type": "response.output_item.done", "item": {**FUNCTION_CALL, "arguments": '{"city":"Rome"}'}},
    {"type": "response.output_text.delta", "item_id": "m", "delta": "It is sunny."},
    {"type": "response.completed", "response": {"usage": {"input_tokens": 30, "output_tokens": 12}}},
]
ANTHROPIC = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 20, "cache_read_input_tokens": 10}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Look it up."}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "It is sunny."}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "c1", "name": "weather"}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"city":'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"Rome"}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 12}},
    {"type": "message_stop"},
]  # fmt: skip
ASKED = {"type": "human", "id": "h", "content": "weather?"}
THOUGHT = [{"type": "thinking", "thinking": "Look it up."}, {"type": "text", "text": "Let me "}]
LANGGRAPH = [
    ("metadata", {"run_id": "r", "attempt": 1}),
    ("values", {"messages": [ASKED]}),
    ("messages", [{"type": "AIMessageChunk", "id": "1", "content": THOUGHT}, {"langgraph_node": "model"}]),
    ("messages", [{"type": "AIMessageChunk", "id": "1", "content": "check.", "tool_call_chunks": [
        {"index": 0, "id": "c1", "name": "weather", "args": '{"city":'}]}, {}]),
    ("messages", [{"type": "AIMessageChunk", "id": "1", "content": "", "tool_call_chunks": [
        {"index": 0, "id": None, "name": None, "args": '"Rome"}'}]}, {}]),
    ("messages", [{"type": "AIMessageChunk", "id": "1", "usage_metadata": {
        "input_tokens": 10, "output_tokens": 5}}, {}]),
    ("messages", [{"type": "tool", "id": "2", "tool_call_id": "c1", "content": '{"sky": "clear"}'}, {}]),
    ("messages", [{"type": "AIMessageChunk", "id": "3", "content": "It is "}, {}]),
    ("messages", [{"type": "AIMessageChunk", "id": "3", "content": "sunny.", "usage_metadata": {
        "input_tokens": 20, "output_tokens": 7}}, {}]),
]  # fmt: skip
CALLED = {
    "type": "ai",
    "id": "1",
    "content": [THOUGHT[0], {"type": "text", "text": "Let me check."}],
    "tool_calls": [{"id": "c1", "name": "weather", "args": {"city": "Rome"}}],
    "usage_metadata": {"input_tokens": 10, "output_tokens": 5},
}
RESULT = {"type": "tool", "id": "2", "tool_call_id": "c1", "content": '{"sky": "clear"}'}
ANSWERED = {
    "type": "ai",
    "id": "3",
    "content": "It is sunny.",
    "usage_metadata": {"input_tokens": 20, "output_tokens": 7},
}
MODES = {
    "messages-tuple": LANGGRAPH,
    "values": [("values", {"messages": [ASKED, CALLED, RESULT, ANSWERED][:n]}) for n in range(1, 5)],
    "updates": [("updates", {"node": {"messages": [message]}}) for message in (CALLED, RESULT, ANSWERED)],
    "messages": [
        ("messages/partial", [{**CALLED, "content": "Let"}]), ("messages/complete", [CALLED]),
        ("messages/complete", [RESULT]), ("messages/partial", [{**ANSWERED, "content": "It"}]),
        ("messages/partial", [ANSWERED]),
    ],
    "both": [*LANGGRAPH, ("values", {"messages": [ASKED, CALLED, RESULT, ANSWERED]})],
}  # fmt: skip


def named(events):
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events).encode()


def sse(*events):
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


STREAMS = {
    "ai_sdk": sse(*AI_SDK) + b"data: [DONE]\n\n",
    "data stream": DATA_STREAM,
    "ag_ui": sse(*AG_UI),
    "openai_chat": sse(*OPENAI_CHAT) + b"data: [DONE]\n\n",
    "openai_responses": sse(*OPENAI_RESPONSES),
    "anthropic_messages": sse(*ANTHROPIC),
    "langgraph": named(LANGGRAPH),
}
AGENTS = ("ai_sdk", "data stream", "ag_ui", "langgraph")


def streamed(name, *pieces, **config):
    form = name if name in PROTOCOLS else "ai_sdk"
    return ask(chunked(*pieces), response_mapping={}, stream=True, stream_format=form, **config)


@pytest.mark.parametrize("name", STREAMS)
def test_a_protocol_tells_text_thinking_calls_and_tokens(name):
    answer = streamed(name, STREAMS[name])
    assert (answer.output.final_answer, answer.output.thinking) == ("It is sunny.", "Look it up.")
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [("c1", "weather", {"city": "Rome"})]
    metrics = answer.metrics
    assert (metrics.token_input, metrics.token_output, metrics.stream_completed) == (30, 12, True)
    assert (answer.error, answer.doubts) == (None, ())


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_tells_its_steps_and_the_results_of_its_calls(name):
    answer = streamed(name, STREAMS[name])
    assert [(message.role, message.content) for message in answer.messages] == [
        ("assistant", "Let me check."),
        ("tool", {"sky": "clear"}),
        ("assistant", "It is sunny."),
    ]
    assert [(result.tool_call_id, result.name) for result in answer.tool_results] == [("c1", "weather")]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_anywhere_says_that_its_end_is_missing(name):
    whole = STREAMS[name]
    for end in range(1, len(whole), 31):
        answer = streamed(name, whole[:end], allow_missing=["final_answer"])
        assert answer.metrics.stream_completed is True or "stream_interrupted" in answer.extra
        assert [call.name for call in answer.tool_calls] in ([], ["weather"])


ERRORS = {
    "ai_sdk": sse({"type": "error", "errorText": "too busy"}, {"type": "finish"}) + b"data: [DONE]\n\n",
    "data stream": b'3:"too busy"\nd:{"finishReason":"error"}\n',
    "ag_ui": sse({"type": "RUN_ERROR", "message": "too busy"}),
    "openai_chat": sse({"error": {"message": "too busy"}}),
    "openai_responses": sse({"type": "response.failed", "response": {"error": {"message": "too busy"}}}),
    "anthropic_messages": b"event: error\n" + sse({"type": "error", "error": {"message": "too busy"}}),
    "langgraph": named([("error", {"error": "RuntimeError", "message": "too busy"})]),
}


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_the_stream_is_an_error_with_the_text_up_to_it(name, begun):
    before = STREAMS[name].partition(b"sunny.")[0].rpartition(b"\n")[0] + b"\n\n" if begun else b""
    answer = streamed(name, before + ERRORS[name])
    assert "too busy" in answer.error.message
    assert bool(answer.messages) is begun


@pytest.mark.parametrize("mode", MODES)
def test_the_modes_of_langgraph_give_the_same_answer(mode):
    one, other = (streamed("langgraph", named(events)) for events in (LANGGRAPH, MODES[mode]))
    assert (one.output, one.messages, one.tool_calls) == (other.output, other.messages, other.tool_calls)
    assert (other.metrics.token_input, other.metrics.token_output) == (30, 12)


def test_a_state_without_messages_is_the_structured_output():
    answer = streamed("langgraph", named([("values", {"n": 1}), ("values", {"n": 2})]))
    assert answer.output.structured == {"n": 2}


def test_a_tool_that_failed_is_a_result_and_no_error():
    failed = {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no sky"}
    refused = {"type": "tool-input-error", **CALL, "toolCallId": "c2", "input": "{", "errorText": "bad input"}
    answer = streamed("ai_sdk", sse(*AI_SDK[:10], refused, failed, *AI_SDK[12:]))
    assert [(result.tool_call_id, result.content) for result in answer.tool_results] == [
        ("c2", "bad input"),
        ("c1", "no sky"),
    ]
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Rome"}, {"_raw": "{"}]
    assert answer.error is None


def test_a_step_that_is_repeated_counts_once():
    again = [{"type": "reset-step"}, {"type": "text-delta", "id": "2", "delta": "It is raining."}]
    answer = streamed("ai_sdk", sse(*AI_SDK[:16], *again, *AI_SDK[16:]))
    assert answer.output.final_answer == "It is raining."
    assert len(answer.tool_calls) == 1


def test_an_agent_that_only_sends_snapshots_answers_with_the_last_one():
    said = [
        {"id": "1", "role": "user", "content": "weather?"},
        {"id": "2", "role": "assistant", "toolCalls": [{"id": "c1", "function": {"name": "weather"}}]},
        {"id": "3", "role": "tool", "toolCallId": "c1", "content": "clear"},
        {"id": "4", "role": "assistant", "content": "It is sunny."},
    ]  # fmt: skip
    snapshots = [{"type": "MESSAGES_SNAPSHOT", "messages": said[:n]} for n in (2, 4)]
    answer = streamed("ag_ui", sse(*snapshots, {"type": "RUN_FINISHED"}))
    assert (answer.output.final_answer, [call.name for call in answer.tool_calls]) == ("It is sunny.", ["weather"])
    assert [message.role for message in answer.messages] == ["assistant", "tool", "assistant"]


def test_events_that_nothing_reads_are_counted():
    data = {"type": "data-weather", "data": {"sky": "clear"}}
    assert streamed("ai_sdk", sse(data, *AI_SDK, data)).extra["unread_events"] == {"data-weather": 2}


def test_a_stream_of_another_protocol_is_no_answer():
    with pytest.raises(TargetError, match=r"no answer: there is no text in the .* TEXT_MESSAGE_CONTENT"):
        streamed("ai_sdk", STREAMS["ag_ui"])


@pytest.mark.parametrize("event", ["[1]", "7", '{"type": 7}', '{"type": "text-delta", "delta": [1]}', "plain text"])
def test_an_event_of_a_wrong_shape_is_an_error(event):
    with pytest.raises(TargetError, match="event"):
        streamed("ai_sdk", f"data: {event}\n\n".encode(), STREAMS["ai_sdk"])


PATHS = {
    "ai_sdk": ("$.delta", "reasoning-delta"),
    "ag_ui": ("$.delta", "REASONING_MESSAGE_CONTENT"),
    "openai_chat": ("$.choices[0].delta.content", "tool call"),
    "openai_responses": ("$.delta", "response.reasoning_summary_text.delta"),
    "anthropic_messages": ("$.delta.text", "tool call of content_block_start"),
}


@pytest.mark.parametrize("name", PATHS)
def test_paths_that_read_half_of_a_known_protocol_leave_a_doubt_that_names_it(name):
    token, missed = PATHS[name]
    config = {"stream_format": "sse", "stream_event_field": token}
    answer = ask(chunked(STREAMS[name]), response_mapping={}, stream=True, **config)
    [doubt] = answer.doubts
    assert missed in doubt.example
    assert f"stream_format: {name}" in doubt.example


@pytest.mark.parametrize("name", ["ai_sdk", "ag_ui", "openai_chat", "openai_responses", "anthropic_messages"])
def test_paths_do_not_miss_an_error_of_a_known_protocol(name):
    text = b'data: {"t": "Hal"}\n\n'
    config = {"stream_format": "sse", "stream_event_field": "$.t"}
    answer = ask(chunked(text + ERRORS[name]), response_mapping={}, stream=True, **config)
    assert answer.output.final_answer == "Hal"
    assert "too busy" in answer.extra["stream_interrupted"]
    with pytest.raises(TargetError, match="too busy"):
        ask(chunked(ERRORS[name]), response_mapping={}, stream=True, **config)


def test_paths_that_read_the_calls_of_a_protocol_leave_none():
    config = {"stream_event_field": "$.choices[0].delta.content", "stream_tool_call_field": "$..tool_calls"}
    answer = ask(chunked(STREAMS["openai_chat"]), response_mapping={}, stream=True, stream_format="sse", **config)
    assert (len(answer.tool_calls), answer.doubts) == (1, ())


@pytest.mark.parametrize("form", PROTOCOLS)
def test_paths_have_no_effect_in_a_known_protocol(form):
    paths = {"stream_event_field": "$.x", "response_mapping": {"final_answer": "$.x"}}
    with pytest.raises(InputError) as raised:
        build(endpoint="http://localhost:1/", stream=True, stream_format=form, **paths)
    assert [problem.key for problem in raised.value.problems] == [*reversed(paths)]
