"""What a Python target may return, and what becomes of it."""

import dataclasses
import json
import re
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import TargetError
from evalwright.files.plain import MAX_DEPTH, plain
from evalwright.model.trace import Answer, Output, ToolCall
from evalwright.targets.answers import answer_of


@pytest.mark.parametrize(
    ("returned", "found"), [(None, "NoneType"), (3, "int"), ([1], "list"), (object(), "object"), (b"text", "bytes")]
)
def test_what_is_no_answer_is_refused_by_its_type(returned, found):
    with pytest.raises(TargetError, match=rf"found {found}; e\.g\. return \"text\""):
        answer_of(returned)


def test_a_refused_answer_names_the_place_of_the_function():
    with pytest.raises(TargetError, match=r"found NoneType \(test_answers\.py:\d+\)"):
        answer_of(None, test_a_refused_answer_names_the_place_of_the_function)


def test_a_text_is_the_answer():
    assert answer_of("done") == Answer(output=Output(final_answer="done"))


def test_an_answer_is_taken_as_it_is():
    answer = Answer(output=Output(final_answer="done"))
    assert answer_of(answer) == answer


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (Answer.of("x", tool_calls=[ToolCall("look", {"day": 1})]), "tool_calls[0].id"),  # type: ignore[arg-type]
        (Answer.of(5), "output.final_answer"),  # type: ignore[arg-type]
        (Answer.of("x", cost_usd="0.01"), "metrics.cost_usd"),  # type: ignore[arg-type]
        (Answer.of("x", tokens_in=1.5), "metrics.token_input"),  # type: ignore[arg-type]
        (Answer.of("x", extra={"it": object()}), "type object"),
        (Answer.of("x\ud800"), "surrogates"),
    ],
)
def test_an_answer_that_no_reader_could_read_back_is_an_error(answer: Answer, named: str):
    with pytest.raises(TargetError, match=re.escape(named)):
        answer_of(answer)


@pytest.mark.parametrize(
    ("returned", "named"),
    [
        ({"answer": "yes"}, "'answer', as other values belong under extra; did you mean \"final_answer\""),
        ({"final_answer": "x", "label": "spam", "score": 1}, "'label'.*'score'"),
        (
            {"final_answer": "x", "metrics": {"token_inputs": 3}},
            "'token_inputs' in metrics, as other numbers belong under custom; did you mean",
        ),
        ({"final_answer": "x", "tool_calls": ["f", {"tool": "g", "args": {}}]}, r"'tool' in tool_calls\[1\]"),
        ({"final_answer": "x", "tool_calls": [{"arguments": {}}]}, r"tool_calls\[0\] has no 'name'"),
        ({"final_answer": "x", "tool_results": [{"result": 1}]}, r"'result' in tool_results\[0\]"),
    ],
)
def test_keys_that_nothing_reads_are_refused_by_name(returned, named):
    with pytest.raises(TargetError, match=f"nothing reads the key {named}|{named}"):
        answer_of(returned)


@pytest.mark.parametrize(
    "returned",
    [{}, {"final_answer": None}, {"thinking": "hm"}, {"metrics": {"token_input": 1}}, {"tool_calls": [], "extra": {}}],
)
def test_a_mapping_that_answers_nothing_is_refused_unless_it_may(returned):
    with pytest.raises(TargetError, match=r"no answer: .*test_answers\.py.*allow_missing"):
        answer_of(returned, test_a_mapping_that_answers_nothing_is_refused_unless_it_may)
    assert answer_of(returned, optional=["final_answer"]).output.final_answer is None
    assert answer_of(returned, evalh_rules=True).output.final_answer is None


@pytest.mark.parametrize(
    "returned",
    [{"final_answer": ""}, {"structured": {}}, {"tool_calls": ["f"]}, {"messages": [{"role": "user", "content": "x"}]}],
)
def test_an_empty_text_and_what_was_done_are_answers(returned):
    given = answer_of(returned)
    parts = {
        "final_answer": given.output.final_answer, "structured": given.output.structured,
        "tool_calls": [call.name for call in given.tool_calls],
        "messages": [{"role": one.role, "content": one.content} for one in given.messages],
    }  # fmt: skip
    assert {name: parts[name] for name in returned} == returned


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ({"label": "spam", "score": 0.9}, None),
        ({"answer": "yes", "text": "no"}, "yes"),
        ({"output": {"a": 1}, "content": "c"}, "c"),
    ],
)
def test_where_any_mapping_is_taken_one_without_known_keys_is_structured(returned, text):
    assert answer_of(returned, any_mapping=True).output == Output(final_answer=text, structured=returned)
    with pytest.raises(TargetError, match="'answer'"):
        answer_of({"final_answer": "x", "answer": "y"}, any_mapping=True)


def test_by_evalh_s_rules_other_keys_are_ignored():
    assert answer_of({"final_answer": "a", "answer": "x", "metrics": {"n": 1}}, evalh_rules=True).output == Output("a")


def test_objects_with_declared_fields_are_mappings():
    @dataclasses.dataclass
    class Plain:
        final_answer: str
        thinking: str = "hm"

    class Checked(pydantic.BaseModel):
        final_answer: str
        thinking: str = "hm"

    class Packed(msgspec.Struct):
        final_answer: str
        thinking: str = "hm"

    class Other(pydantic.BaseModel):
        reply: str

    assert [answer_of(kind("x")).output for kind in (Plain, Packed)] == [Output("x", "hm")] * 2
    assert answer_of(Checked(final_answer="x")).output == Output("x", "hm")
    with pytest.raises(TargetError, match="'reply'"):
        answer_of(Other(reply="x"))


def test_tool_calls_in_the_shape_of_openai_are_read():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    [found] = answer_of({"tool_calls": [call]}).tool_calls
    assert (found.id, found.name, found.arguments) == ("c", "f", {"a": 1})


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


def test_texts_of_other_types_become_strings():
    output = answer_of({"final_answer": 42, "thinking": 7.5}).output
    assert (output.final_answer, output.thinking) == ("42", "7.5")


def test_structured_must_be_a_mapping():
    with pytest.raises(TargetError, match=r"structured.*list"):
        answer_of({"structured": [1]})


@pytest.mark.parametrize("metrics", [[1], "5", 0])
def test_metrics_must_be_a_mapping(metrics):
    with pytest.raises(TargetError, match="metrics must be a mapping, found"):
        answer_of({"final_answer": "x", "metrics": metrics})


def test_null_lists_are_empty():
    nothing = dict.fromkeys(["tool_calls", "tool_results", "messages", "metrics", "extra"])
    assert answer_of({"final_answer": "x", **nothing}) == Answer(output=Output("x"))


@pytest.mark.parametrize(
    ("call", "name", "arguments"),
    [
        ({"name": "f", "arguments": {"a": 1}}, "f", {"a": 1}),
        ({"name": "f", "input": {"a": 1}}, "f", {"a": 1}),
        ({"name": "f", "arguments": '{"a": 1}'}, "f", {"a": 1}),
        ({"name": "f", "arguments": ""}, "f", {}),
        ({"name": "f", "arguments": "not json"}, "f", {"_raw": "not json"}),
        ("f", "f", {}),
    ],
)
def test_shapes_of_a_tool_call(call, name, arguments):
    [found] = answer_of({"tool_calls": [call]}).tool_calls
    assert (found.name, found.arguments) == (name, arguments)


def test_metrics_take_numeric_strings_and_note_everything_else():
    answer = answer_of(
        {
            "final_answer": "x",
            "metrics": {
                "token_input": "12",
                "token_output": 3.9,
                "token_thinking": True,
                "cost_usd": "0.5",
                "stream_chunks": "x",
                "stream_completed": 1,
                "tokens_per_second": float("nan"),
                "cost_thinking_usd": 10**5000,
                "latency_first_token_ms": None,
            },
        }
    )
    metrics = answer.metrics
    assert (metrics.token_input, metrics.token_output, metrics.cost_usd) == (12, 3, 0.5)
    assert metrics.token_thinking is metrics.stream_chunks is metrics.stream_completed is None
    assert metrics.tokens_per_second is metrics.cost_thinking_usd is None
    assert answer.extra["replaced"] == [
        "metrics.token_output: expected a whole number, found 3.9; 3 is kept",
        "metrics.token_thinking: expected a finite number from 0 on, found bool; left out",
        "metrics.stream_chunks: expected a finite number from 0 on, found 'x'; left out",
        "metrics.tokens_per_second: expected a finite number from 0 on, found nan; left out",
        "metrics.cost_thinking_usd: expected a finite number from 0 on, found int; left out",
    ]


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


@pytest.mark.parametrize("number", [-5, -0.5, "-1", -(10**30)])
def test_a_negative_cost_is_no_cost_and_passes_no_limit(number):
    answer = answer_of({"final_answer": "x", "metrics": {"cost_usd": number, "token_input": number}})
    assert answer.metrics.cost_usd is answer.metrics.token_input is None
    assert len(answer.extra["replaced"]) == 2


def test_a_tool_call_inside_a_message_is_kept():
    [message] = answer_of({"messages": [{"role": "assistant", "tool_call": {"name": "f"}}]}).messages
    assert message.tool_call is not None
    assert message.tool_call.name == "f"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (10**30, str(10**30)),
        ({1: 2}, {"1": 2}),
        ((1, {2}), [1, [2]]),
        ("half \ud800 pair", "half \ufffd pair"),
    ],
)
def test_what_json_cannot_hold_is_replaced_visibly(value, kept):
    answer = answer_of({"structured": {"x": value}})
    assert answer.output.structured == {"x": kept}


def test_a_replacement_is_recorded():
    answer = answer_of({"structured": {"x": float("nan")}})
    assert "structured.x" in answer.extra["replaced"][0]


@pytest.mark.slow("answers of great depth")
def test_endless_nesting_is_an_error_of_the_target():
    cyclic: dict[str, object] = {}
    cyclic["self"] = cyclic
    deep: object = 0
    for _ in range(100_000):
        deep = [deep]
    for value in (cyclic, {"deep": deep}):
        with pytest.raises(TargetError, match="deeper"):
            answer_of({"structured": value})


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.characters(categories=["Cs"])
    | st.binary()
    | st.dates()
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.tuples(inner)
        | st.frozensets(st.text())
    ),
    max_leaves=20,
)


@given(anything)
def test_plain_data_survives_a_round_trip_unchanged(value):
    cleaned = plain(value, "x", [])
    assert msgspec.json.decode(msgspec.json.encode(cleaned)) == cleaned
    assert plain(cleaned, "x", []) == cleaned


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_json_data_is_left_as_it_is(value):
    notes: list[str] = []
    assert plain(value, "x", notes) == json.loads(json.dumps(value))
    assert notes == []


def test_the_depth_that_is_taken_can_be_stored():
    value: object = "x"
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert msgspec.json.encode(plain(value, "x", []))


class Said(pydantic.BaseModel):
    """A message of LangChain, which is an object with a type and no role."""

    type: str
    content: str | list[dict[str, str]] = ""
    tool_calls: list[dict[str, Any]] = []
    tool_call_id: str | None = None


class Called(pydantic.BaseModel):
    """A tool call of OpenAI's SDK, which nests objects."""

    class Function(pydantic.BaseModel):
        name: str = "look"
        arguments: str = '{"at": "sky"}'

    id: str = "1"
    type: str = "function"
    function: Function = Function()


def test_messages_that_are_objects_keep_their_roles_calls_and_results():
    call = {"name": "look", "args": {"at": "sky"}, "id": "1", "type": "tool_call"}
    said = [
        Said(type="human", content="Is it blue?"),
        Said(type="ai", tool_calls=[call]),
        Said(type="tool", content="blue", tool_call_id="1"),
        Said(type="ai", content=[{"type": "text", "text": "It is blue."}]),
    ]
    answer = answer_of({"messages": said})
    assert [one.role for one in answer.messages] == ["user", "assistant", "tool", "assistant"]
    assert answer.messages[1].tool_call == ToolCall(name="look", id="1", arguments={"at": "sky"})
    assert [(result.name, result.content) for result in answer.tool_results] == [("look", "blue")]
    assert answer.output.final_answer == "It is blue."
    as_plain = answer_of({"messages": [one.model_dump() for one in said]})
    assert as_plain == answer


def test_tool_calls_that_are_objects_are_read():
    [found] = answer_of({"tool_calls": [Called()]}).tool_calls
    assert found == ToolCall(name="look", id="1", arguments={"at": "sky"})
    [message] = answer_of({"messages": [{"role": "assistant", "tool_calls": [Called().model_dump()]}]}).messages
    assert message.tool_call == found


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
