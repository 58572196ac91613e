"""Streams of known protocols, recorded from the AI SDK, Pydantic AI and APIs of models, and calls that receive them."""

import json

from evalwright.targets.http.protocols import PROTOCOLS
from targets.loopback import ask, chunked

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


def streamed(name, *pieces, **config):
    form = name if name in PROTOCOLS else "ai_sdk"
    return ask(chunked(*pieces), response_mapping={}, stream=True, stream_format=form, **config)
