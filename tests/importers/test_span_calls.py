"""A model call in exported spans counts once, whoever recorded it: a framework, its library, or both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from importers.spans import exported, span
from importers.transcripts import imported

CALL = "llm.output_messages.0.message.tool_calls.0.tool_call"


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


def test_an_executed_call_has_the_arguments_that_the_model_wrote(tmp_path):
    """LangChain's span of a tool has its only argument as a text."""
    tool = {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": "Bonn"}
    trace = trace_of(tmp_path, span(1, "ChatOpenAI", model(10, 2), below=0), span(2, "weather", tool, below=0))
    (call,) = trace["tool_calls"]
    assert (call["name"], call["id"], call["arguments"]) == ("weather", "in Bonn", {"city": "Bonn"})
