"""Messages taken apart by the rules of NorthStar."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.formats.northstar.cases import case_of
from evalwright.model.recordings import normalized
from evalwright.model.snapshot import Case
from evalwright.northstar import EvalSuite, normalize_messages
from formats.northstar.conversations import call, case, says, tool

words = st.text(st.characters(), max_size=8)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(["role", "content", "tool_calls", "function_call", "name", "id", "tool_call_id", "text"])
roles = st.sampled_from(["assistant", "tool", "user", "system", "developer", None, 3])
message = st.builds(lambda role, more: {**more, "role": role}, roles, st.dictionaries(keys, plain, max_size=5))


@given(st.lists(plain | message, max_size=6))
def test_arbitrary_messages_are_taken_apart_without_an_error(messages: list[Any]) -> None:
    found = normalized(messages)
    assert len(found.tool_interactions) == len(found.tool_calls)


@given(st.lists(message, max_size=4), plain, plain, plain)
def test_arbitrary_records_become_cases_that_can_be_stored(
    messages: list[Any], asked: Any, payload: Any, wanted: Any
) -> None:
    trace = payload if isinstance(payload, dict) else None
    expected = {"tool_arguments": [{"name": "t", "arguments": {"x": wanted}}]}
    made = case_of(case(*messages, input=asked, trace=trace, metadata={"x": asked}, expected=expected))
    assert msgspec.json.decode(msgspec.json.encode(made), type=Case).id == "a"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"text": "a"}, None, {"text": ""}, "b"], "a\nb"),
        ([], None),
        ({"content": [{"text": "deep"}]}, "deep"),
        ({"b": 1, "a": "é"}, '{"a": "\\u00e9", "b": 1}'),
        (42, "42"),
        (False, "False"),
        ("  ", "  "),
        ("", None),
    ],
)
def test_the_text_of_content(content: Any, text: str | None) -> None:
    assert normalize_messages([says(content)]).final_response == text


def test_the_last_text_is_the_final_response_and_an_empty_user_message_is_kept() -> None:
    run = normalize_messages([{"role": "user", "content": ""}, says("a"), says("b"), says(""), {"role": "x"}])
    assert (run.final_response, run.assistant_messages, run.user_messages) == ("b", ["a", "b"], [""])


def test_calls_of_every_shape() -> None:
    flat = {"id": 7, "name": "flat", "arguments": {"q": 1}}
    message = {**says(None, call("nested"), flat, {"id": "x"}), "function_call": {"name": "old", "arguments": "{"}}
    run = normalize_messages([message])
    assert [(c.id, c.name, c.arguments) for c in run.tool_calls] == [
        ("c1", "nested", "{}"),
        ("7", "flat", {"q": 1}),
        ("x", "unknown_tool", None),
        (None, "old", "{"),
    ]


def test_a_call_has_the_last_output_with_its_id() -> None:
    run = normalize_messages([says(None, call("t")), tool("first"), tool("last"), tool("other", "c9")])
    output = run.tool_interactions[0].output
    assert output is not None
    assert output.content == "last"
    nameless = {"role": "assistant", "tool_calls": [{"id": "", "name": "t"}, {"id": "", "name": "u"}]}
    run = normalize_messages([nameless, {"role": "tool", "tool_call_id": "", "content": "whose?"}])
    assert [interaction.output for interaction in run.tool_interactions] == [None, None]


def test_content_that_is_nested_without_end_is_no_text() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert normalize_messages([says("kept"), {"role": "assistant", "content": deep}]).final_response == "kept"


@pytest.mark.parametrize(("calls", "status"), [(None, "passed"), ("none", "passed"), (5, "errored"), (True, "errored")])
def test_calls_that_are_no_list_are_none_or_the_error_of_their_case(calls: Any, status: str) -> None:
    result = EvalSuite().run([case({**says("x"), "tool_calls": calls}, expected={"contains": "x"})])
    assert result.case_results[0].status.value == status
