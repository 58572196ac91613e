"""Messages in an answer: their calls and results, and the answer that the last one is."""

from typing import Any

import pydantic
import pytest

from evalwright.errors import TargetError
from evalwright.model.trace import Output, ToolCall
from evalwright.targets.answers import answer_of


def test_messages_in_the_shape_of_openai_keep_every_call_and_its_result():
    calls = [{"id": i, "type": "function", "function": {"name": f"f{i}", "arguments": "{}"}} for i in "ab"]
    results = [{"role": "tool", "tool_call_id": i, "content": {"error": i}} for i in "ba"]
    answer = answer_of({"messages": [{"role": "assistant", "content": "hm", "tool_calls": calls}, *results]})
    assert [(m.role, m.content, m.tool_call and m.tool_call.name, m.name) for m in answer.messages] == [
        ("assistant", "hm", "fa", None),
        ("assistant", None, "fb", None),
        ("tool", {"error": "b"}, None, "fb"),
        ("tool", {"error": "a"}, None, "fa"),
    ]
    assert [(r.tool_call_id, r.name) for r in answer.tool_results] == [("b", "fb"), ("a", "fa")]


@pytest.mark.parametrize("calls", ["f", {"name": "f"}, 3])
def test_calls_of_a_message_that_are_no_list_are_refused(calls):
    with pytest.raises(TargetError, match=r"messages\[1\]\.tool_calls must be a list"):
        answer_of({"messages": ["hello", {"role": "assistant", "tool_calls": calls}]})


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "look", "input": {}}]},
        {"role": "assistant", "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "tool_call": {"arguments": {}}},
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "1", "name": "look", "input": {}}]},
        {"role": "assistant", "content": [{"type": "mcp_tool_use", "id": "1", "name": "look", "input": {}}]},
        {"role": "assistant", "content": {"type": "tool_use", "name": "look", "input": {}}},
        {"role": "model", "parts": [{"text": "Let me look."}, {"functionCall": {"name": "look", "args": {}}}]},
        {"role": "model", "parts": [{"executable_code": {"code": "look()"}}]},
        {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "1"},
        {"type": "web_search_call", "id": "1", "action": {"query": "x"}},
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "look", "args": {}}]},
        {"role": "assistant", "parts": [{"type": "tool-look", "toolCallId": "1", "state": "output-available"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "look"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "look", "input": {}}}]},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "1", "name": "look", "args": {}}]}},
    ],
)
def test_calls_in_messages_that_no_evaluator_would_see_are_refused(message):
    with pytest.raises(TargetError, match="tool call in messages"):
        answer_of({"final_answer": "x", "messages": [message]})
    assert answer_of({"final_answer": "x", "messages": [message]}, evalh_rules=True).output.final_answer == "x"
    told = answer_of({"final_answer": "x", "messages": [message], "tool_calls": [{"name": "look"}]})
    assert [call.name for call in told.tool_calls] == ["look"]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "content": {"type": "tool_use", "function_call": {"name": "look"}}},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "ok"}]},
        {"role": "user", "content": {"tool_calls": [{"name": "look"}]}},
        {"role": "assistant", "content": [{"type": "text", "text": "a tool_call"}, {"type": "web_search_tool_result"}]},
        {"role": "assistant", "content": "x", "tool_calls": [], "function_call": None},
        {"role": "assistant", "parts": [{"type": "tool_call_response", "id": "1", "response": "ok"}]},
    ],
)
def test_messages_without_calls_are_answers_whatever_they_quote(message):
    assert answer_of({"final_answer": "x", "messages": [message]}).tool_calls == []


def test_calls_that_a_message_has_twice_are_read_once():
    call = {"id": "1", "name": "look", "args": {"at": "sky"}, "type": "tool_call"}
    block = {"type": "tool_use", "id": "1", "name": "look", "input": {"at": "sky"}}
    message = {"type": "ai", "content": [block], "tool_calls": [call], "additional_kwargs": {"tool_calls": [call]}}
    [told] = answer_of({"final_answer": "x", "messages": [message]}).messages
    assert told.tool_call is not None
    assert (told.tool_call.name, told.tool_call.arguments) == ("look", {"at": "sky"})
    other = {**message, "content": [{**block, "id": "2", "type": "server_tool_use"}]}
    with pytest.raises(TargetError, match="tool call in messages"):
        answer_of({"final_answer": "x", "messages": [other]})


def test_messages_that_contain_themselves_are_an_error_of_the_target():
    message: dict[str, object] = {"role": "assistant"}
    message["content"] = [message]
    with pytest.raises(TargetError, match="deeper"):
        answer_of({"final_answer": "x", "messages": [message]})


def test_a_tool_call_inside_a_message_is_kept():
    [message] = answer_of({"messages": [{"role": "assistant", "tool_call": {"name": "f"}}]}).messages
    assert message.tool_call is not None
    assert message.tool_call.name == "f"


class Said(pydantic.BaseModel):
    """A message of LangChain, which is an object with a type and no role."""

    type: str
    content: str | list[dict[str, str]] = ""
    tool_calls: list[dict[str, Any]] = []
    tool_call_id: str | None = None


def test_messages_that_are_objects_keep_their_roles_calls_and_results():
    call = {"name": "look", "args": {"at": "sky"}, "id": "1", "type": "tool_call"}
    said = [
        Said(type="human", content="Is it blue?"),
        Said(type="ai", tool_calls=[call]),
        Said(type="tool", content="blue", tool_call_id="1"),
        Said(type="ai", content=[{"type": "text", "text": "It is blue."}]),
    ]
    answer = answer_of({"messages": said})
    assert [message.role for message in answer.messages] == ["user", "assistant", "tool", "assistant"]
    assert answer.messages[1].tool_call == ToolCall(name="look", id="1", arguments={"at": "sky"})
    assert [(result.name, result.content) for result in answer.tool_results] == [("look", "blue")]
    assert answer.output.final_answer == "It is blue."
    as_plain = answer_of({"messages": [one.model_dump() for one in said]})
    assert as_plain == answer


@pytest.mark.parametrize("message", [("assistant", "hello"), object(), 3, None])
def test_messages_without_a_role_are_refused_rather_than_kept_as_text(message):
    with pytest.raises(TargetError, match=rf"messages\[1\] is a {type(message).__name__} without a role"):
        answer_of({"messages": ["hello", message]})


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}], "hello"),
        (["hello"], "hello"),
        ([{"role": "assistant", "content": "hello"}, {"role": "user", "content": "bye"}], None),
        ([{"role": "assistant", "content": "hm", "tool_calls": [{"name": "look"}]}], None),
        ([{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}], None),
    ],
)
def test_the_last_message_is_the_answer_where_none_is_given(messages, text):
    assert answer_of({"messages": messages}).output.final_answer == text
    assert answer_of({"messages": messages, "structured": {"a": 1}}).output == Output(structured={"a": 1})
    assert answer_of({"messages": messages}, evalh_rules=True).output.final_answer is None


@pytest.mark.parametrize("said", [[], [{"role": "assistant", "content": None}]])
def test_messages_that_only_ask_are_no_answer(said):
    asked = [{"role": "system", "content": "Be kind."}, {"type": "human", "content": "hello"}]
    with pytest.raises(TargetError, match="no answer: no message in messages is the system's"):
        answer_of({"messages": [*asked, *said]})
