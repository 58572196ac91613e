"""Values of a trace by path."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import EvaluatorError
from evalwright.evaluators.fields import ABSENT, select
from evalwright.model.trace import Metrics, Output, ToolCall, Trace, TraceMessage
from evalwright.testing import a_case, a_trace

TRACE = a_trace(
    latency_ms=7,
    input={"q": "hi", "list": [1, [2, 3]], "none": None},
    output=Output("Hello!", structured={"total": 3, "nothing": None, "a-b": 1}),
    tool_calls=[ToolCall("find", "t1", {"id": 4711}), ToolCall("book", "t2", {"id": None})],
    messages=[TraceMessage("assistant", tool_call=ToolCall("find", "t1", {"id": 4711}))],
    metrics=Metrics(cost_usd=0.25, custom={"reward": 1}),
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("output.final_answer", "Hello!"),
        ("$.output.final_answer", "Hello!"),
        ("latency_ms", 7),
        ("started_at", "2026-01-02T03:04:05.678000Z"),
        ("output.structured.total", 3),
        ("output.structured.nothing", None),
        ("output.structured.a-b", 1),
        ("output.thinking", None),
        ("error", None),
        ("output.nope", ABSENT),
        ("output.final_answer.x", ABSENT),
        ("output.final_answer[0]", ABSENT),
        ("input.list[1][0]", 2),
        ("input.list[-1][-1]", 3),
        ("input.list[2]", ABSENT),
        ("input.list[-3]", ABSENT),
        ("input.none.x", ABSENT),
        ("tool_calls[0].name", "find"),
        ("tool_calls[9].name", ABSENT),
        ("tool_calls.name", ABSENT),
        ("tool_calls[*].name", "find"),
        ("tool_calls[*].nope", ABSENT),
        ("tool_calls[?(@.name=='book')].id", "t2"),
        ("tool_calls[?(@.name=='book')].arguments.id", None),
        ("tool_calls[?(@.name=='nope')].id", ABSENT),
        ("metrics.custom.reward", 1),
        ("__class__", ABSENT),
        ("output.__struct_fields__", ABSENT),
    ],
)
def test_the_first_match_of_a_path(path: str, value: object) -> None:
    assert select(path)(TRACE) == value


def test_parts_of_a_trace_are_given_as_they_are_stored() -> None:
    assert select("messages")(TRACE) == msgspec.to_builtins(TRACE)["messages"]


@pytest.mark.parametrize("path", ["output.[[", "", "tool_calls[?(", "a b"])
def test_a_malformed_path_is_an_error_when_it_is_used(path: str) -> None:
    chosen = select(path)
    for _ in range(2):
        with pytest.raises(EvaluatorError, match="malformed"):
            chosen(TRACE)


def test_the_error_of_a_malformed_path_has_the_name_of_its_cause() -> None:
    with pytest.raises(EvaluatorError) as raised:
        select("output.[[")(TRACE)
    assert raised.value.type == "JsonPathParserError"


def test_a_case_has_no_recording_to_choose_from() -> None:
    case = a_case(recorded=msgspec.Raw(b'{"output": {}}'))
    assert [select("recorded")(case), select("recorded.output")(case)] == [ABSENT, ABSENT]


NAMES = st.sampled_from(["a", "b", "name", "arguments", "final_answer", "structured", "output", "tool_calls", "x1"])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
MAPPINGS = st.dictionaries(NAMES, VALUES, max_size=3)
TRACES = st.builds(
    a_trace,
    input=MAPPINGS,
    output=st.builds(Output, st.none() | st.text(max_size=3), structured=st.none() | MAPPINGS),
    tool_calls=st.lists(st.builds(ToolCall, NAMES, arguments=MAPPINGS), max_size=2),
)
STEPS = st.lists(NAMES.map(lambda name: f".{name}") | st.integers(-3, 3).map(lambda i: f"[{i}]"), max_size=4)
FIRST = st.sampled_from(["input", "output", "tool_calls", "metrics", "nope"])


@given(TRACES, FIRST, STEPS)
def test_plain_paths_agree_with_the_jsonpath_library(trace: Trace, first: str, steps: list[str]) -> None:
    from jsonpath_ng.ext import parse

    path = first + "".join(steps)
    matches: list[Any] = parse(path).find(msgspec.to_builtins(trace))
    expected = matches[0].value if matches else ABSENT
    value = select(path)(trace)
    assert (type(value), value) == (type(expected), expected)
