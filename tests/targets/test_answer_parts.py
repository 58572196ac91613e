"""The parts of an answer: texts, tool calls and metrics in all shapes, and what no record can hold."""

import pydantic
import pytest

from evalwright.errors import TargetError
from evalwright.model.trace import Answer, Output, ToolCall
from evalwright.targets.answers import answer_of


def test_tool_calls_in_the_shape_of_openai_are_read():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    [found] = answer_of({"tool_calls": [call]}).tool_calls
    assert (found.id, found.name, found.arguments) == ("c", "f", {"a": 1})


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


def test_null_is_the_same_as_no_part():
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
def test_a_tool_call_is_a_name_or_a_mapping_with_arguments_in_any_usual_form(call, name, arguments):
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


@pytest.mark.parametrize("number", [-5, -0.5, "-1", -(10**30)])
def test_a_negative_cost_is_no_cost_and_passes_no_limit(number):
    answer = answer_of({"final_answer": "x", "metrics": {"cost_usd": number, "token_input": number}})
    assert answer.metrics.cost_usd is answer.metrics.token_input is None
    assert len(answer.extra["replaced"]) == 2


@pytest.mark.parametrize(
    ("value", "kept", "note"),
    [
        (float("nan"), "nan", "nan has no JSON form, kept as text"),
        (10**30, str(10**30), f"{10**30} has no JSON form, kept as text"),
        ("half \ud800 pair", "half \ufffd pair", "lone surrogates replaced by U+FFFD"),
    ],
)
def test_what_json_cannot_hold_is_replaced_and_noted(value, kept, note):
    answer = answer_of({"structured": {"x": value}})
    assert answer.output.structured == {"x": kept}
    assert answer.extra["replaced"] == [f"structured.x: {note}"]


@pytest.mark.parametrize(("value", "kept"), [({1: 2}, {"1": 2}), ((1, {2}), [1, [2]])])
def test_what_json_has_in_another_form_is_kept_without_a_note(value, kept):
    answer = answer_of({"structured": {"x": value}})
    assert answer.output.structured == {"x": kept}
    assert "replaced" not in answer.extra


@pytest.mark.slow("answers of great depth")
def test_endless_nesting_is_an_error_of_the_target():
    deep: object = 0
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TargetError, match="deeper"):
        answer_of({"structured": {"deep": deep}})


class Called(pydantic.BaseModel):
    """A tool call of OpenAI's SDK, which nests objects."""

    class Function(pydantic.BaseModel):
        name: str = "look"
        arguments: str = '{"at": "sky"}'

    id: str = "1"
    type: str = "function"
    function: Function = Function()


def test_tool_calls_that_are_objects_are_read():
    [found] = answer_of({"tool_calls": [Called()]}).tool_calls
    assert found == ToolCall(name="look", id="1", arguments={"at": "sky"})
    [message] = answer_of({"messages": [{"role": "assistant", "tool_calls": [Called().model_dump()]}]}).messages
    assert message.tool_call == found
