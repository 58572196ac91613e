"""A model call in exported spans counts once, whoever recorded it: a framework, its library, or both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from importers.spans import exported, span
from importers.transcripts import imported

CALL = "llm.output_messages.0.message.tool_calls.0.tool_call"
SECOND = CALL.replace("calls.0", "calls.1")


def model(given: int, said: int, city: str = "Bonn") -> dict[str, Any]:
    return {
        "openinference.span.kind": "LLM",
        "llm.token_count.prompt": given,
        "llm.token_count.completion": said,
        "llm.token_count.prompt_details.cache_read": given // 2,
        "llm.output_messages.0.message.role": "assistant",
        f"{CALL}.id": f"in {city}",
        f"{CALL}.function.name": "weather",
        f"{CALL}.function.arguments": json.dumps({"city": city}),
    }


def trace_of(folder: Path, *spans: Any) -> dict[str, Any]:
    (folder / "spans.json").write_text(json.dumps(exported(span(0, "app", {"input.value": "q"}), *spans)))
    _, (case,) = imported(folder, "otlp-json", folder / "spans.json")
    return case["embedded_trace"]


def counted(trace: dict[str, Any]) -> tuple[Any, ...]:
    return trace["metrics"]["token_input"], [call["arguments"] for call in trace["tool_calls"]]


def test_the_calls_of_a_framework_and_its_library_are_one_beside_each_other(tmp_path):
    trace = trace_of(
        tmp_path,
        span(1, "ChatOpenAI", model(10, 2), below=0),
        span(2, "ChatCompletion", model(10, 2), below=0),
    )
    assert counted(trace) == (10, [{"city": "Bonn"}])
    assert trace["metrics"]["custom"] == {"cache_read_tokens": 5}
    assert trace["spans"][2]["parent_id"] == trace["spans"][1]["id"]


def test_and_below_each_other(tmp_path):
    tool = {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": '{"city": "Bonn"}'}
    trace = trace_of(
        tmp_path,
        span(1, "response", model(10, 2), below=0),
        span(2, "Response", model(10, 2), below=1),
        span(3, "weather", tool, below=0),
    )
    assert counted(trace) == (10, [{"city": "Bonn"}])


def test_a_tool_without_arguments_has_those_that_the_model_requested(tmp_path):
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "in Bonn"}
    trace = trace_of(tmp_path, span(1, "chat", model(10, 2), below=0), span(2, "execute_tool weather", tool, below=0))
    assert [(call["id"], call["arguments"]) for call in trace["tool_calls"]] == [("in Bonn", {"city": "Bonn"})]


def test_other_calls_at_the_same_time_are_several(tmp_path):
    trace = trace_of(
        tmp_path,
        span(1, "chat small", model(10, 2), below=0),
        span(2, "chat small", model(10, 2), below=0),
        span(3, "chat large", model(0, 0, "Rome"), below=0),
    )
    assert counted(trace)[0] == 20
    assert sorted(one["city"] for one in counted(trace)[1]) == ["Bonn", "Bonn", "Rome"]


@pytest.mark.parametrize("city", ["Bonn", '{"name": "Bonn"}'])
def test_an_executed_call_has_the_arguments_that_the_model_wrote(tmp_path, city):
    """LangChain's span of a tool has its only argument as a text."""
    tool = {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": city}
    trace = trace_of(tmp_path, span(1, "ChatOpenAI", model(10, 2, city), below=0), span(2, "weather", tool, below=0))
    (call,) = trace["tool_calls"]
    assert (call["name"], call["id"], call["arguments"]) == ("weather", f"in {city}", {"city": city})


@pytest.mark.parametrize(("city", "calls"), [("Bonn", 1), ("Rome", 2)])
def test_a_requested_call_with_an_id_that_only_the_model_has_is_the_executed_one_with_its_arguments(
    tmp_path, city, calls
):
    """OpenLLMetry writes the id of the item of a response in place of that of the call."""
    done = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "call_1"}
    done["gen_ai.tool.call.arguments"] = json.dumps({"city": city})
    framework = span(1, "ChatOpenAI", {**model(10, 2), f"{CALL}.id": "call_1"}, below=0)
    tool = span(3, "execute_tool weather", done, below=0)
    trace = trace_of(tmp_path, framework, span(2, "openai.response", model(10, 2), below=1), tool)
    assert len(trace["tool_calls"]) == calls
    assert "call_1" in [call["id"] for call in trace["tool_calls"]]


def test_calls_that_began_at_the_same_time_are_in_the_order_in_which_they_were_requested(tmp_path):
    """Clocks of milliseconds have one time for several; the spans that take longer come first."""
    second = {f"{SECOND}.id": "in Kiel", f"{SECOND}.function.name": "weather", f"{SECOND}.function.arguments": "{}"}
    both = [span(3, "weather", {"gen_ai.tool.name": "weather", "gen_ai.tool.call.id": f"in {city}"}, below=0)
            for city in ("Kiel", "Bonn")]  # fmt: skip
    trace = trace_of(
        tmp_path, span(1, "chat", {**model(1, 1), **second}, below=0), both[0], {**both[1], "spanId": "f" * 16}
    )
    assert [call["id"] for call in trace["tool_calls"]] == ["in Bonn", "in Kiel"]


def called(id: str, result: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": id, "name": "weather", "arguments": {}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": result}]},
    ]


ANSWERED = {
    "openinference.span.kind": "LLM",
    "gen_ai.input.messages": json.dumps([*called("earlier", "snow"), *called("in Bonn", "rain")]),
    "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Rain."}]}]),
}
"""A call of a model that was told the results of its own tools, and one of an earlier trace."""


def results_of(folder: Path, *tools: Any) -> list[tuple[Any, Any]]:
    trace = trace_of(folder, span(5, "chat", model(1, 1), below=0), *tools, span(1, "chat", ANSWERED, below=0))
    return [(result["tool_call_id"], result["content"]) for result in trace["tool_results"]]


def tool(number: int, id: str, **more: Any) -> Any:
    about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": id}
    return span(number, "execute_tool weather", about, below=0, **more)


def test_a_result_that_only_the_next_call_of_the_model_has_is_beside_those_of_spans(tmp_path):
    failed = tool(3, "in Rome", status={"code": 2, "message": "timed out"})
    assert results_of(tmp_path, tool(2, "in Bonn"), failed) == [("in Bonn", "rain"), ("in Rome", "timed out")]


def test_results_of_an_earlier_trace_are_none_of_this_one(tmp_path):
    assert results_of(tmp_path, tool(2, "in Bonn")) == [("in Bonn", "rain")]


def test_a_cost_that_only_the_span_around_the_calls_has_is_not_lost(tmp_path):
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.cost": 0.5}
    metrics = trace_of(tmp_path, span(1, "agent", agent, below=0), span(2, "chat", model(10, 2), below=1))["metrics"]
    assert (metrics["token_input"], metrics["cost_usd"]) == (10, 0.5)


OPENLLMETRY = {
    "function": {"args": [], "kwargs": {"city": "Bonn"}},
    "position": {"args": ["Bonn"], "kwargs": {}},
    "langchain": {"input_str": "{'city': 'Bonn'}", "tags": [], "inputs": {"city": "Bonn"}, "kwargs": {"name": "x"}},
}


@pytest.mark.parametrize("again", [[], ["gen_ai.tool.call.arguments", "gen_ai.tool.call.result"]], ids=["one", "two"])
@pytest.mark.parametrize("form", OPENLLMETRY)
def test_a_tool_in_openllmetry_has_the_arguments_that_it_was_called_with(tmp_path, form, again):
    result = {"output": "20", "kwargs": {"tags": []}} if form == "langchain" else "20"
    payloads = json.dumps(OPENLLMETRY[form]), json.dumps(result)
    tool = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "weather",
        **dict(zip(("traceloop.entity.input", "traceloop.entity.output"), payloads, strict=True)),
        **dict(zip(again, payloads, strict=False)),
    }
    trace = trace_of(tmp_path, span(1, "model", model(10, 2), below=0), span(2, "weather.tool", tool, below=0))
    assert counted(trace) == (10, [{"city": "Bonn"}])
    assert [result["content"] for result in trace["tool_results"]] == ["20"]


@pytest.mark.parametrize("given", [OPENLLMETRY["position"], {"inputs": {"city": "Bonn"}, "tags": [], "kwargs": {}}])
def test_a_workflow_in_openllmetry_asks_what_it_was_given(tmp_path, given):
    workflow = {"traceloop.span.kind": "workflow", "traceloop.entity.input": json.dumps(given)}
    (tmp_path / "spans.json").write_text(json.dumps(exported(span(0, "weather.workflow", workflow))))
    _, (case,) = imported(tmp_path, "otlp-json", tmp_path / "spans.json")
    assert case["input"]["user_message"] == "Bonn"


@pytest.mark.parametrize(
    "returned",
    [{"traceloop.entity.output": "null"}, {"output.value": "null", "output.mime_type": "application/json"}],
)
def test_an_application_that_returned_nothing_has_no_answer(tmp_path, returned):
    root = span(0, "app", {"traceloop.span.kind": "workflow", "input.value": "q", **returned})
    (tmp_path / "spans.json").write_text(json.dumps(exported(root)))
    _, (case,) = imported(tmp_path, "otlp-json", tmp_path / "spans.json")
    assert case["embedded_trace"]["output"]["final_answer"] is None


def test_the_span_of_a_handoff_is_no_call_beside_the_one_that_asked_for_it(tmp_path):
    """OpenInference gives it the kind of a tool."""
    handoff = {"openinference.span.kind": "TOOL", "input.value": "Shop", "output.value": "Refunds"}
    found = trace_of(tmp_path, span(1, "chat", model(1, 1), below=0), span(2, "handoff to Refunds", handoff, below=0))
    assert [call["name"] for call in found["tool_calls"]] == ["weather"]
