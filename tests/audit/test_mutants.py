"""Mutants of traces: what is changed, wherever a trace has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalwright.audit.mutants import Mutant, mutants_of, use_mutants_of
from evalwright.audit.samples import Donors
from evalwright.evaluators.conversation.messages import conversation_of
from evalwright.evaluators.conversation.turns import assistant_texts, turns_of
from evalwright.evaluators.tools.calls import calls_of
from evalwright.model.trace import Metrics, Output, Span, ToolCall, ToolResult, Trace, TraceMessage
from evalwright.testing import a_trace

OLD = "Order 12 is open."
OTHER = Output("Order 7 has shipped.")
FIND, TRACK = ToolCall("find", "c1", {"n": 12}), ToolCall("track", "c2", {"n": 12})


def mutant(trace: Trace, mutation: str, other: Output | None = OTHER) -> Mutant:
    return next(one for one in mutants_of(trace, other) if one.mutation == mutation)


def mutated(trace: Trace, mutation: str) -> Trace:
    changed = mutant(trace, mutation).trace
    assert changed is not None
    return changed


def answered(text: str | None = OLD, **fields: Any) -> Trace:
    return a_trace(output=Output(text), **fields)


@pytest.mark.parametrize(
    ("mutation", "text"),
    [
        ("answer emptied", ""),
        ("answer of another case", "Order 7 has shipped."),
        ("answer cut in half", "Order 12"),
        ("other numbers in the answer", "Order 23 is open."),
        ("refusal instead of the answer", "I cannot help with that."),
    ],
)
def test_the_answer_is_another(mutation: str, text: str) -> None:
    assert mutated(answered(), mutation).output.final_answer == text


def test_fields_of_an_answer_change_with_its_text() -> None:
    trace = a_trace(output=Output("12 open", structured={"n": 12, "sure": True, "note": "of 9"}))
    assert mutated(trace, "other numbers in the answer").output.structured == {"n": 23, "sure": True, "note": "of 1"}
    assert mutated(trace, "answer emptied").output.structured is None
    assert mutated(trace, "answer cut in half").output.structured == {"n": 12}


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        (
            {"messages": [TraceMessage("user", "?"), TraceMessage("assistant", OLD)]},
            lambda trace: conversation_of(trace).assistant_messages,
        ),
        (
            {"extra": {"turns": [[{"message_type": "assistant_message", "content": OLD}]]}},
            lambda trace: assistant_texts(turns_of(trace)),
        ),
        (
            {"extra": {"recording": {"messages": [{"role": "assistant", "content": OLD}]}}},
            lambda trace: [conversation_of(trace).final_response],
        ),
        ({"extra": {"promptfoo": {"output": OLD}}}, lambda trace: [trace.extra["promptfoo"]["output"]]),
        ({"spans": [Span("s", "model", output={"text": OLD})]}, lambda trace: [trace.spans[0].output["text"]]),
    ],
)
def test_no_place_keeps_the_old_answer(fields: dict[str, Any], seen: Any) -> None:
    assert seen(mutated(answered(**fields), "answer of another case")) == ["Order 7 has shipped."]


def test_an_answer_in_parts_is_replaced_as_a_whole() -> None:
    parts = [{"type": "text", "text": "Order 12"}, {"type": "text", "text": "is open."}]
    trace = answered("Order 12\nis open.", messages=[TraceMessage("assistant", parts)])
    changed = mutated(trace, "answer emptied").messages[0].content
    assert changed == [{"type": "text", "text": ""}]


def test_a_document_in_json_is_replaced_where_it_is_kept_parsed() -> None:
    trace = answered('{"n": 12}', extra={"promptfoo": {"output": {"n": 12}}})
    assert mutated(trace, "other numbers in the answer").extra["promptfoo"]["output"] == {"n": 23}
    assert mutated(trace, "answer cut in half").extra["promptfoo"]["output"] == '{"n"'


def test_what_the_system_was_given_stays() -> None:
    settings = {"prompt": OLD, "vars": {"q": OLD}}
    trace = answered(
        messages=[TraceMessage("user", OLD), TraceMessage("assistant", OLD)], extra={"promptfoo": settings}
    )
    changed = mutated(trace, "answer emptied")
    assert (changed.messages[0].content, changed.extra["promptfoo"]) == (OLD, settings)


@pytest.mark.parametrize(
    ("trace", "mutation"),
    [
        (answered("Open."), "other numbers in the answer"),
        (answered(None), "answer emptied"),
        (answered("x"), "answer cut in half"),
        (answered("I cannot help with that."), "refusal instead of the answer"),
        (answered(), "tool call left out"),
        (answered(tool_calls=[FIND]), "tool calls in reverse order"),
        (answered(tool_calls=[FIND, FIND]), "tool calls in reverse order"),
        (answered(tool_calls=[ToolCall("find")]), "other argument of a tool call"),
    ],
)
def test_a_mutation_that_changes_nothing_makes_no_mutant(trace: Trace, mutation: str) -> None:
    assert mutant(trace, mutation).trace is None


def test_without_another_answer_none_is_taken() -> None:
    assert mutant(answered(), "answer of another case", None).trace is None


SHAPES: dict[str, dict[str, Any]] = {
    "calls alone": {},
    "messages": {
        "messages": [
            TraceMessage("assistant", tool_call=FIND),
            TraceMessage("tool", "open", name="find"),
            TraceMessage("assistant", tool_call=TRACK),
            TraceMessage("tool", "open", name="track"),
            TraceMessage("assistant", OLD),
        ]
    },
    "calls of agents": {
        "extra": {
            "output_messages": [
                {"role": "assistant", "tool_calls": [{"tool": "find", "input": {"n": 12}, "output": "open"}]},
                {"role": "assistant", "tool_calls": [{"tool": "track", "input": {"n": 12}}]},
            ]
        }
    },
}
MUTATED: dict[str, list[tuple[str, Any]]] = {
    "tool calls in reverse order": [("track", {"n": 12}), ("find", {"n": 12})],
    "call of another tool added": [("find", {"n": 12}), ("track", {"n": 12}), ("some_other_tool", {})],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mutation", MUTATED)
def test_every_place_has_the_same_calls(shape: str, mutation: str) -> None:
    changed = mutated(answered(tool_calls=[FIND, TRACK], **SHAPES[shape]), mutation)
    assert [(call.name, call.arguments) for call in changed.tool_calls] == MUTATED[mutation]
    assert [(call.name, call.args) for call in calls_of(changed)] == MUTATED[mutation]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_call_is_left_out_everywhere(shape: str) -> None:
    changed = mutant(answered(tool_calls=[FIND, TRACK], **SHAPES[shape]), "tool call left out")
    assert changed.trace is not None
    left = {"no find": "track", "no track": "find"}[changed.change]
    assert [call.name for call in changed.trace.tool_calls] == [left]
    assert [call.name for call in calls_of(changed.trace)] == [left]
    assert [message.name for message in changed.trace.messages if message.role == "tool"] in ([], [left])
    assert len(changed.trace.extra.get("output_messages", [1])) == 1


def test_the_result_of_a_call_goes_with_it() -> None:
    trace = answered(
        tool_calls=[FIND],
        tool_results=[ToolResult("find", "open", "c1")],
        messages=[TraceMessage("assistant", "Let me see.", tool_call=FIND), TraceMessage("tool", "open", name="find")],
    )
    changed = mutated(trace, "tool call left out")
    assert (changed.tool_results, [message.content for message in changed.messages]) == ([], ["Let me see."])


def test_calls_in_turns_and_in_recordings_are_rewritten_in_their_own_form() -> None:
    function = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 12}'}}
    asked = {"tool_call": {"name": "find", "arguments": '{"n": 12}', "tool_call_id": "c1"}}
    recorded = {"messages": [{"role": "assistant", "content": None, "tool_calls": [function]}]}
    turns = [[{"message_type": "tool_call_message", **asked}]]
    trace = answered(tool_calls=[FIND], extra={"turns": turns, "recording": recorded})
    changed = mutated(trace, "other argument of a tool call").extra
    assert json.loads(changed["turns"][0][0]["tool_call"]["arguments"]) == {"n": 23}
    inner = changed["recording"]["messages"][0]["tool_calls"][0]["function"]
    assert (inner["name"], json.loads(inner["arguments"])) == ("find", {"n": 23})


@pytest.mark.parametrize(
    ("given", "other"), [(12, 23), ("A12", "A23"), (True, False), ("blue", "something else"), ([], "something else")]
)
def test_an_argument_becomes_another(given: Any, other: Any) -> None:
    changed = mutated(answered(tool_calls=[ToolCall("find", "c1", {"n": given})]), "other argument of a tool call")
    assert changed.tool_calls[0].arguments == {"n": other}


def test_an_answer_of_the_same_case_stands_in_for_no_other() -> None:
    first, second = answered("one", case_id="a"), answered("two", case_id="a", trial=1)
    elsewhere = answered("three", case_id="b")
    assert Donors(iter([(first, True), (second, True)])).other_than(first) is None
    assert Donors(iter([(first, True), (second, True), (elsewhere, True)])).other_than(first) == Output("three")


def test_ids_of_calls_may_begin_again_in_each_turn() -> None:
    again = ToolCall("track", "c1", {"n": 12})
    messages = [TraceMessage("assistant", tool_call=FIND), TraceMessage("assistant", tool_call=again)]
    changed = mutated(answered(tool_calls=[FIND, again], messages=messages), "tool calls in reverse order")
    assert [message.tool_call.name for message in changed.messages if message.tool_call] == ["track", "find"]


def test_what_tools_returned_stays_although_the_answer_repeats_it() -> None:
    returned = [{"message_type": "tool_return_message", "tool_return": OLD}]
    called = [{"role": "assistant", "tool_calls": [{"tool": "find", "input": {}, "output": OLD}]}]
    trace = answered(
        extra={"turns": [returned], "output_messages": called},
        spans=[Span("s", "find", kind="tool", output=OLD)],
    )
    changed = mutated(trace, "answer emptied")
    assert (changed.extra, changed.spans) == (trace.extra, trace.spans)


def test_spans_of_tools_change_and_others_do_not() -> None:
    spans = [
        Span("m", "find", kind="llm", input="x"),
        Span("t", "find", kind="tool", input={"n": 12}, attributes={"tool_call_id": "c1"}),
    ]
    changed = mutated(answered(tool_calls=[FIND], spans=spans), "tool call left out")
    assert [span.id for span in changed.spans] == ["m"]


def test_a_step_with_none_below_it_is_left_out() -> None:
    spans = [Span("a", "ask"), Span("r", "retrieve", "a"), Span("t", "find", "a", kind="tool"), Span("n", "next")]
    changed = mutant(answered(spans=spans), "step left out")
    assert changed.trace is not None
    assert ([span.id for span in changed.trace.spans], changed.change) == (["a", "t", "n"], "no retrieve")
    assert mutant(answered(spans=[Span("a", "ask")]), "step left out").trace is None


@pytest.mark.parametrize(
    ("mutation", "changed"),
    [
        ("ten times as slow", {"latency_ms": 50, "metrics": {"latency_first_token_ms": 20, "tokens_per_second": 3.0}}),
        ("ten times the cost", {"metrics": {"cost_usd": 5.0}}),
        ("ten times the tokens", {"metrics": {"token_input": 70, "token_output": None}}),
    ],
)
def test_a_mutant_uses_ten_times_as_much(mutation: str, changed: dict[str, Any]) -> None:
    used = Metrics(token_input=7, cost_usd=0.5, latency_first_token_ms=2, tokens_per_second=30.0)
    extra = {"duration_ms": 4, "token_usage": {"input": 7, "model": "m"}, "tries": 3}
    trace = a_trace(latency_ms=5, metrics=used, extra=extra)
    (found,) = [use_mutant.trace for use_mutant in use_mutants_of(trace) if use_mutant.mutation == mutation]
    assert found is not None
    assert found.latency_ms == changed.get("latency_ms", 5)
    for name in ("token_input", "token_output", "cost_usd", "latency_first_token_ms", "tokens_per_second"):
        assert getattr(found.metrics, name) == changed["metrics"].get(name, getattr(used, name))
    slow, wordy = mutation == "ten times as slow", mutation == "ten times the tokens"
    usage = {"input": 70 if wordy else 7, "model": "m"}
    assert found.extra == {"duration_ms": 40 if slow else 4, "token_usage": usage, "tries": 3}
    assert trace.extra == extra


def test_what_was_not_used_is_not_multiplied() -> None:
    assert [use_mutant.trace for use_mutant in use_mutants_of(a_trace(latency_ms=0))] == [None, None, None]


def test_the_same_trace_has_the_same_mutants() -> None:
    trace = answered(tool_calls=[FIND, TRACK])
    assert [*mutants_of(trace, OTHER)] == [*mutants_of(trace, OTHER)]
