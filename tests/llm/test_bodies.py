"""What reaches a server of each interface, and what is read of its reply."""

import json

import msgspec
import pytest

from evalwright.errors import EvaluatorError
from evalwright.model.chat import ChatMessage, ChatRequest, ServedCall, Usage
from evalwright.model.trace import ToolCall
from llm.models import JSON, bodies, openai, outcomes_of, reply
from llm.providers import anthropic_events

TOOL = {"name": "find", "description": "finds", "parameters": {"type": "object"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
ELSEWHERE = {"type": "image_url", "image_url": "https://images.example/a.png"}
CONVERSATION = [
    ChatMessage("system", "be brief"),
    ChatMessage("user", "where?"),
    ChatMessage("assistant", "looking", tool_calls=[ToolCall("find", "1", {"q": 1}), ToolCall("find", "2", {})]),
    ChatMessage("tool", "here", tool_call_id="1"),
    ChatMessage("tool", "there", tool_call_id="2"),
    ChatMessage("user", [{"type": "text", "text": "these?"}, IMAGE, ELSEWHERE], name="ann"),
]


def claude_reply(*content, stop_reason="end_turn", **usage):
    """A reply of an Anthropic server."""
    body = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": list(content), "usage": usage}
    return reply({**body, "stop_reason": stop_reason, "stop_sequence": None}, headers=JSON)


def sent(model, script, messages=CONVERSATION, **fields):
    _, server = outcomes_of([script], ChatRequest(model, messages, **fields))
    (body,) = bodies(server)
    return body


def test_a_conversation_in_the_form_of_anthropic():
    body = sent(
        "claude-haiku-4-5", claude_reply({"type": "text", "text": "x"}), system="be kind", tools=[TOOL], temperature=0.5
    )
    assert body["system"] == "be kind\n\nbe brief"
    assert body["tools"] == [{"name": "find", "description": "finds", "input_schema": {"type": "object"}}]
    assert (body["temperature"], "tool_choice" in body) == (0.5, False)
    user, assistant, results, last = body["messages"]
    assert user == {"role": "user", "content": "where?"}
    text, first, second = assistant["content"]
    assert (text, first) == (
        {"type": "text", "text": "looking"},
        {"type": "tool_use", "id": "1", "name": "find", "input": {"q": 1}},
    )
    assert second["id"] == "2"
    assert results["role"] == "user"
    assert [(part["tool_use_id"], part["content"]) for part in results["content"]] == [("1", "here"), ("2", "there")]
    assert [part["type"] for part in last["content"]] == ["text", "image", "image"]
    assert last["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert last["content"][2]["source"] == {"type": "url", "url": "https://images.example/a.png"}


@pytest.mark.parametrize("address", ["data:image/svg+xml,%3Csvg", "https://images.example/a;base64,QUJD"])
def test_an_image_is_sent_to_anthropic_as_its_address_unless_it_holds_base64(address):
    image = [{"type": "image_url", "image_url": {"url": address}}]
    body = sent("claude-test", claude_reply({"type": "text", "text": "x"}), [ChatMessage("user", image)])
    assert body["messages"][0]["content"] == [{"type": "image", "source": {"type": "url", "url": address}}]


def test_a_request_to_anthropic_has_no_keys_that_were_not_configured():
    body = sent("claude-test", claude_reply({"type": "text", "text": "x"}), [ChatMessage("user", "hi")])
    assert body.keys() == {"model", "max_tokens", "messages"}
    assert sent(
        "claude-test", claude_reply({"type": "text", "text": "x"}), [ChatMessage("user", "hi")], max_tokens=7
    ) == {
        **body,
        "max_tokens": 7,
    }


def test_each_turn_of_tools_is_a_message_of_its_own():
    turns = [
        ChatMessage("user", [{"type": "text", "text": "go"}]),
        ChatMessage("assistant", "", tool_calls=[ToolCall("find", "1", {})]),
        ChatMessage("tool", "here", tool_call_id="1"),
        ChatMessage("assistant", "", tool_calls=[ToolCall("find", "2", {})]),
        ChatMessage("tool", "there", tool_call_id="2"),
    ]
    messages = sent("claude-test", claude_reply({"type": "text", "text": "x"}), turns)["messages"]
    assert [(one["role"], len(one["content"])) for one in messages] == [
        ("user", 1),
        ("assistant", 1),
        ("user", 1),
        ("assistant", 1),
        ("user", 1),
    ]


def test_a_conversation_in_the_form_of_openai():
    body = sent("gpt-test", openai(), system="be kind", tools=[TOOL], temperature=0.5, max_tokens=7, schema={})
    first, second, user, assistant, result, _, last = body["messages"]
    assert [first, second] == [
        {"role": "system", "content": "be kind"},
        {"role": "system", "content": "be brief"},
    ]
    assert user == {"role": "user", "content": "where?"}
    assert assistant["tool_calls"][0] == {
        "id": "1",
        "type": "function",
        "function": {"name": "find", "arguments": '{"q": 1}'},
    }
    assert result == {"role": "tool", "content": "here", "tool_call_id": "1"}
    assert (last["name"], last["content"][1]) == ("ann", IMAGE)
    assert (body["temperature"], body["max_tokens"], "tool_choice" in body) == (0.5, 7, False)
    assert body["tools"] == [{"type": "function", "function": TOOL}]
    assert body["response_format"] == {"type": "json_object"}


def test_reasoning_models_take_their_limit_under_another_name():
    body = sent("o3-test", openai(), max_tokens=7, schema={"type": "object"})
    assert (body["max_completion_tokens"], "max_tokens" in body) == (7, False)
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


@pytest.mark.parametrize(
    ("choice", "of_openai", "of_anthropic"),
    [
        ("auto", "auto", {"type": "auto"}),
        ("required", "required", {"type": "any"}),
        ("none", "none", None),
        ("find", {"type": "function", "function": {"name": "find"}}, {"type": "tool", "name": "find"}),
    ],
)
def test_which_tool_is_to_be_used(choice, of_openai, of_anthropic):
    assert sent("gpt-test", openai(), tools=[TOOL], tool_choice=choice)["tool_choice"] == of_openai
    body = sent("claude-test", claude_reply({"type": "text", "text": "x"}), tools=[TOOL], tool_choice=choice)
    assert body.get("tool_choice") == of_anthropic


def test_tool_calls_and_a_refusal_of_anthropic_are_replies_without_text():
    calls = [{"type": "tool_use", "id": str(i), "name": "find", "input": given} for i, given in enumerate([{"q": 1}])]
    (called,), _ = outcomes_of(
        [claude_reply(*calls, input_tokens=3, output_tokens=4)], ChatRequest("claude-test", CONVERSATION)
    )
    assert (called.text, called.tool_calls) == ("", [ToolCall("find", "0", {"q": 1})])
    assert (called.usage, called.refusal) == (Usage(3, 4), None)
    (refusal,), _ = outcomes_of([claude_reply(stop_reason="refusal")], ChatRequest("claude-test", CONVERSATION))
    assert (refusal.text, bool(refusal.refusal)) == ("", True)


@pytest.mark.parametrize(("purpose", "text"), [("judge", ""), ("system", '{"passed": true}')])
def test_text_before_a_refusal_is_no_verdict(purpose, text):
    before = claude_reply({"type": "text", "text": '{"passed": true}'}, stop_reason="refusal")
    (refusal,), _ = outcomes_of([before], ChatRequest("claude-test", CONVERSATION), purpose=purpose)
    assert (refusal.text, refusal.refusal) == (text, '{"passed": true}')


def test_arguments_that_are_no_object_are_kept_as_they_came():
    calls = [
        {"id": str(i), "type": "function", "function": {"name": "find", "arguments": text}}
        for i, text in enumerate(["", "[1]", "{no json"])
    ]
    (answer,), _ = outcomes_of([openai(None, tool_calls=calls)])
    assert [call.arguments for call in answer.tool_calls] == [{}, {"_raw": "[1]"}, {"_raw": "{no json"}]
    odd = {"type": "tool_use", "id": "1", "name": "find", "input": [1]}
    (answer,), _ = outcomes_of([claude_reply(odd)], ChatRequest("claude-test", CONVERSATION))
    assert [call.arguments for call in answer.tool_calls] == [{"_raw": [1]}]


SEARCHED = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]},
    {"type": "mcp_tool_use", "id": "m1", "name": "delete", "server_name": "files", "input": {}},
    {"type": "mcp_tool_result", "tool_use_id": "m1", "content": "gone"},
    {"type": "server_tool_use", "id": "s2", "name": "code_execution", "input": {}},
    {"type": "text", "text": "found"},
]


@pytest.mark.parametrize("stream", [False, True])
def test_calls_that_anthropic_runs_itself_are_kept_with_their_results(stream):
    script = claude_reply(*SEARCHED, input_tokens=1, output_tokens=1)
    if stream:
        whole = {"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        events = anthropic_events({**whole, "content": SEARCHED, "usage": usage})
        lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        script = reply(lines.encode(), headers=["Content-Type: text/event-stream"])
    (found,), _ = outcomes_of([script], ChatRequest("claude-test", CONVERSATION, stream=stream or msgspec.UNSET))
    assert (found.text, found.tool_calls) == ("found", [])
    assert found.served_calls == [
        ServedCall(ToolCall("web_search", "s1", {"query": "x"}), '[{"type": "web_search_result", "url": "u"}]'),
        ServedCall(ToolCall("delete", "m1", {}), "gone"),
        ServedCall(ToolCall("code_execution", "s2", {}), None),
    ]


def test_older_and_freer_calls_of_openai_are_read():
    custom = {"id": "1", "type": "custom", "custom": {"name": "bash", "input": "rm"}}
    legacy = {"name": "find", "arguments": '{"q": 1}'}
    (found,), _ = outcomes_of([openai("", tool_calls=[custom], function_call=legacy)])
    assert found.tool_calls == [ToolCall("bash", "1", {"_raw": "rm"}), ToolCall("find", None, {"q": 1})]


@pytest.mark.parametrize("model", ["gpt-test", "claude-haiku-4-5"])
def test_tools_of_the_provider_are_offered_beside_those_of_the_suite(model):
    script = openai("x") if model == "gpt-test" else claude_reply({"type": "text", "text": "x"})
    search = {"type": "web_search_20250305", "name": "web_search"}
    body = sent(model, script, tools=[TOOL], extra={"tools": [search]})
    assert body["tools"][0] == search
    assert "find" in str(body["tools"][1])


def responded(*output, status="completed", **more):
    """A reply of OpenAI's Responses API."""
    usage = {
        "input_tokens": 30, "output_tokens": 9, "total_tokens": 39,
        "input_tokens_details": {"cached_tokens": 20}, "output_tokens_details": {"reasoning_tokens": 4},
    }  # fmt: skip
    body = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-test-1", "parallel_tool_calls": True}
    return reply({**body, "status": status, "output": list(output), "usage": usage, **more}, headers=JSON)


def message(*content):
    parts = [{"type": "output_text", "annotations": [], **part} for part in content]
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": parts}


def test_the_responses_api_gets_its_own_form_of_request():
    asks = {
        "extra": {"reasoning_effort": "low", "reasoning": {"summary": "auto"}},
        "system": "be kind",
        "schema": SCHEMA,
    }
    body = sent(
        "gpt-test", responded(message({"text": "{}"})), [ChatMessage("user", "hi")],
        api="responses", temperature=0.5, max_tokens=7, **asks,
    )  # fmt: skip
    form = {"type": "json_schema", "name": "reply", "schema": SCHEMA, "strict": True}
    assert body == {
        "model": "gpt-test", "input": [{"role": "user", "content": "hi"}], "instructions": "be kind",
        "temperature": 0.5, "max_output_tokens": 7, "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": form},
    }  # fmt: skip
    plain = sent("gpt-test", responded(message({"text": "x"})), [ChatMessage("user", "hi")], api="responses")
    assert plain == {"model": "gpt-test", "input": [{"role": "user", "content": "hi"}]}


def test_a_reply_of_the_responses_api_has_thoughts_calls_and_usage():
    refused = responded(message({"type": "refusal", "refusal": "no"}))
    ([found], _) = outcomes_of([refused], ChatRequest("gpt-test", [ChatMessage("user", "hi")], api="responses"))
    assert (found.text, found.refusal) == ("", "no")
    thought = {"type": "reasoning", "id": "t", "summary": [{"type": "summary_text", "text": "hm"}]}
    call = {"type": "function_call", "id": "f", "call_id": "c1", "name": "find", "arguments": '{"q": 1}'}
    listed = {**call, "call_id": "c2", "arguments": "[1]"}
    script = responded(thought, message({"text": "a"}, {"text": "b"}), call, listed)
    ([found], _) = outcomes_of([script], ChatRequest("gpt-test", [ChatMessage("user", "hi")], api="responses"))
    assert (found.text, found.thinking, found.model, found.finish_reason) == ("ab", "hm", "gpt-test-1", "completed")
    assert found.tool_calls == [ToolCall("find", "c1", {"q": 1}), ToolCall("find", "c2", {"_raw": "[1]"})]
    assert found.usage == Usage(30, 9, 4, 20)


def test_calls_that_the_responses_api_runs_itself_are_kept():
    mcp = {"type": "mcp_call", "id": "m", "name": "delete", "arguments": '{"a": 1}', "server_label": "s"}
    output = [
        {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "x"}},
        {**mcp, "output": "ok", "error": None},
        {**mcp, "output": None, "error": {"type": "http_error", "code": 500}},
        {**mcp, "output": None},
        {"type": "file_search_call", "id": "f", "queries": ["q"], "results": [{"text": "t"}]},
        {"type": "code_interpreter_call", "id": "i", "code": "1", "container_id": "c", "outputs": None},
        {"type": "image_generation_call", "id": "g", "status": "completed", "result": "iVBORw0KGgo="},
        {"type": "custom_tool_call", "call_id": "c", "name": "bash", "input": "rm"},
    ]
    (found,), _ = outcomes_of([responded(*output)], ChatRequest("gpt-test", CONVERSATION, api="responses"))
    assert found.tool_calls == [ToolCall("bash", "c", {"_raw": "rm"})]
    assert found.served_calls == [
        ServedCall(ToolCall("web_search", "w", {"action": {"query": "x"}})),
        ServedCall(ToolCall("delete", "m", {"a": 1}), "ok"),
        ServedCall(ToolCall("delete", "m", {"a": 1}), {"type": "http_error", "code": 500}),
        ServedCall(ToolCall("delete", "m", {"a": 1})),
        ServedCall(ToolCall("file_search", "f", {"queries": ["q"]}), {"results": [{"text": "t"}]}),
        ServedCall(ToolCall("code_interpreter", "i", {"code": "1", "container_id": "c"})),
        ServedCall(ToolCall("image_generation", "g", {}), "[image]"),
    ]


@pytest.mark.parametrize(
    ("script", "kind", "text"),
    [
        (responded(), "bad_reply", "no content"),
        (
            responded(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "bad_reply",
            "length",
        ),
    ],
)
def test_a_reply_of_the_responses_api_that_says_nothing_is_an_error(script, kind, text):
    ([error], _) = outcomes_of([script] * 9, ChatRequest("gpt-test", [ChatMessage("user", "hi")], api="responses"))
    assert isinstance(error, EvaluatorError)
    assert error.type == kind
    assert text in str(error)
