"""What chat targets are made of: opening messages, conversations as traces and back, tools, configuration."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import InputError, TargetError
from evalwright.model.chat import ChatMessage
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import ToolCall, ToolResult
from evalwright.registry import load
from evalwright.targets.chat.messages import as_chat, as_trace, opening
from evalwright.targets.chat.tools import Tools, ToolSettings
from evalwright.targets.templates import Template

HERE = "targets.test_chat_parts"


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


async def find(**criteria):
    return {"found": criteria}


def fail():
    raise LookupError("no such order")


def texts(given, template=None):
    return [(m.role, m.content) for m in opening(Case("c", given), template)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"user_message": "hi"}, [("user", "hi")]),
        ("hi", [("user", "hi")]),
        (
            {
                "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
                "user_message": "x",
            },
            [("user", "a"), ("assistant", "b")],
        ),
        (
            {"conversation": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]},
            [("user", [{"type": "text", "text": "a"}])],
        ),
    ],
    ids=["message", "text", "messages", "conversation"],
)
def test_the_input_is_the_message_to_the_model(given, expected) -> None:
    assert texts(given) == expected


def test_a_template_makes_the_message() -> None:
    assert texts({"word": "hi", "n": [1]}, Template("{{ input.word }} {{ input.n }}")) == [("user", "hi [1]")]


def test_tool_use_in_messages_is_read_in_the_shape_of_the_api() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "3", "tool_call_id": "c1"}]
    first, second = opening(Case("c", {"messages": messages}), None)
    assert first.tool_calls == [ToolCall("add", "c1", {"a": 1})]
    assert (second.role, second.tool_call_id) == ("tool", "c1")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"question": "hi"}, "no text in input.user_message"),
        ({"user_message": " "}, "no text in input.user_message"),
        ({"messages": "hi"}, "input.messages must be a list"),
        ({"messages": [{"content": "hi"}]}, r"input.messages\[0\] must be a mapping with a role"),
        ({"messages": [{"role": "user", "content": 7}]}, r"input.messages\[0\].content must be text"),
        (
            {"messages": [{"role": "a", "tool_calls": [{"name": "f", "arguments": "{"}]}]},
            r"tool_calls\[0\].arguments is no",
        ),
    ],
    ids=["nothing", "blank", "no-list", "no-role", "number", "bad-arguments"],
)
def test_an_input_that_is_no_message_is_an_error_of_the_cell(given, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        opening(Case("c", given), None)


TURNS = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.integers(0, 3), st.text(max_size=5)), max_size=6)


@given(TURNS)
def test_a_conversation_survives_being_a_trace(turns) -> None:
    messages = []
    for number, (role, tools, text) in enumerate(turns):
        calls = [ToolCall("f", f"{number}.{n}") for n in range(tools)] if role == "assistant" else []
        messages.append(ChatMessage(role, text, tool_calls=calls))
        messages += [ChatMessage("tool", "done", "f", tool_call_id=call.id) for call in calls]
    assert as_chat(as_trace(messages)) == messages


def use(name: str, **arguments) -> ToolResult:
    given_tools = [ToolSettings(f"{HERE}:{function}") for function in ("add", "find", "fail")]
    return asyncio.run(Tools(given_tools).use(ToolCall(name, "c1", arguments)))


@pytest.mark.parametrize(
    ("call", "content"),
    [
        (("add", {"a": 1, "b": 2}), "3"),
        (("find", {"number": "7"}), {"found": {"number": "7"}}),
        (("fail", {}), {"error": "LookupError: no such order"}),
        (("delete", {}), {"error": "there is no tool 'delete', tools are: add, find, fail"}),
        (("add", {"_raw": "{a:"}), {"error": "the arguments are not a JSON object"}),
    ],
    ids=["value", "async", "raises", "unknown", "no-json"],
)
def test_a_tool_gives_a_result_whatever_happens(call, content) -> None:
    name, arguments = call
    assert use(name, **arguments) == ToolResult(name, content, "c1")


def test_wrong_arguments_are_reported_to_the_model() -> None:
    assert "unexpected keyword argument 'c'" in str(use("add", c=1).content)


def test_a_tool_is_offered_with_its_name_docstring_and_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    offers = Tools([ToolSettings(f"{HERE}:add", parameters=schema), ToolSettings(f"{HERE}:fail", "give_up")]).offers
    assert offers == [
        {"name": "add", "description": "The sum of two numbers.", "parameters": schema},
        {"name": "give_up", "description": "", "parameters": {"type": "object", "properties": {}}},
    ]


def problems(adapter: str, config) -> list[str]:
    with pytest.raises(InputError) as refused:
        load("targets", adapter)(Variant("v", adapter, config))
    return [f"{problem.key}: {problem.message}" for problem in refused.value.problems]


def test_every_mistake_of_a_chat_system_is_reported() -> None:
    assert problems("openai_chat", {"max_turns": 0, "temperature": "hot", "tools": [{"name": "x"}]}) == [
        "model: 'model' is missing",
        "temperature: 'temperature': expected float | null, found str",
        "max_turns: 'max_turns': expected int >= 1",
        "tools[0]: 'tools': object missing required field function",
    ]


def test_every_tool_that_cannot_be_found_is_reported() -> None:
    given_tools = [{"function": "nowhere:f"}, {"function": f"{HERE}:HERE"}, {"function": f"{HERE}:add"}] * 2
    listed = problems("anthropic", {"model": "claude-x", "tools": given_tools})
    assert [line.split(":")[0] for line in listed] == [
        "tools[0].function",
        "tools[1].function",
        "tools[3].function",
        "tools[4].function",
        "tools[5].name",
    ]


def test_a_key_in_the_suite_is_refused_without_being_shown() -> None:
    (listed,) = problems("openai_chat", {"model": "m", "api_key": "sk-123"})
    assert "api_key_env" in listed
    assert "sk-123" not in listed


@pytest.mark.parametrize("address", ["http://models:99999/v1", "http://models:0/v1", "http://models:v1", "https:///v1"])
def test_an_address_without_a_host_or_with_no_port_is_a_mistake(address) -> None:
    (listed,) = problems("openai_chat", {"model": "m", "base_url": address})
    assert "expected an address such as" in listed
    assert repr(address) in listed


SIMULATOR = {
    "user_model": "claude-x",
    "user_persona_prompt": "terse",
    "stopping_criterion": {"type": "turn_count", "n": 1},
    "inner_system": {"adapter": "replay"},
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"stopping_criterion": {"type": "turn_cuont"}}, ["stopping_criterion.type"]),
        ({"stopping_criterion": {"type": 5}}, ["stopping_criterion.type"]),
        ({"stopping_criterion": {"type": "turn_count", "n": 0}}, ["stopping_criterion.n"]),
        ({"stopping_criterion": {"type": "turn_count", "n": True}}, ["stopping_criterion.n"]),
        ({"stopping_criterion": {"type": "content_match", "patterns": []}}, ["stopping_criterion.patterns"]),
        ({"stopping_criterion": {"type": "judge"}}, ["stopping_criterion.model", "stopping_criterion.question"]),
        ({"inner_system": {}}, ["inner_system.adapter"]),
        ({"inner_system": {"adapter": "telepathy"}}, ["inner_system.adapter"]),
        ({"inner_system": {"adapter": "openai_chat"}}, ["inner_system.model"]),
        ({"user_model": " ", "max_turns": 0, "inner_system": None}, ["user_model", "inner_system", "max_turns"]),
    ],
    ids=["type", "no-text", "n", "bool", "patterns", "judge", "adapter", "unknown", "inner", "several"],
)
def test_every_mistake_of_a_simulation_is_reported_at_its_key(change, expected) -> None:
    assert [line.split(":")[0] for line in problems("user_simulator", SIMULATOR | change)] == expected
