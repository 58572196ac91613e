"""Traces of the OpenAI Agents SDK, as its processors and endpoints get them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.platforms import ASKED, AT, CALL
from importers.transcripts import imported, written

USED = {
    "requests": 1, "input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 40},
    "output_tokens_details": {"reasoning_tokens": 3},
}  # fmt: skip
TRACE = {"object": "trace", "id": "trace_1", "workflow_name": "Shop", "group_id": "g", "metadata": {"k": "1"}}
BACK = {"role": "tool", "tool_call_id": "c1", "content": "{'place': 'Bonn'}"}
ITEM = {"type": "function_call", "call_id": "c1", "name": "track", "arguments": '{"order": 7}'}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}


def span(id: str, kind: str, parent: str | None, start: int, end: int, error: Any = None, **data: Any) -> dict:
    return {
        "object": "trace.span", "id": id, "trace_id": "trace_1", "parent_id": parent, "started_at": AT.format(start),
        "ended_at": AT.format(end), "span_data": {"type": kind, **data}, "error": error,
    }  # fmt: skip


def task(id: str, start: int, end: int) -> dict:
    usage = {"input_tokens": 250, "output_tokens": 29}
    return span(id, "custom", None, start, end, name="task", data={"sdk_span_type": "task", "usage": usage})


def generation(id: str, parent: str, start: int, given: list, reply: dict, **more: Any) -> dict:
    output = [{"role": "assistant", "content": None, **reply}]
    return span(id, "generation", parent, start, start + 1, input=given, output=output, model="m", **more)


TOOL = span("track", "function", "agent", 2, 3, name="track", input='{"order": 7}', output="{'place': 'Bonn'}")
AGENT = span("agent", "agent", "task", 0, 5, name="Shop", tools=["track"])
GENERATED = [
    generation("one", "agent", 1, ASKED, {"tool_calls": [CALL]}, usage=USED),
    generation("two", "agent", 4, [*ASKED, {"role": "assistant", "content": None, "tool_calls": [CALL]}, BACK],
               {"content": "In Bonn"}, usage={**USED, "input_tokens": 150, "output_tokens": 9}),
]  # fmt: skip
STREAMED = [
    GENERATED[0],
    {**GENERATED[1], "span_data": {**GENERATED[1]["span_data"], "output": [{"object": "response", "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Bonn"}]}]}]}},
]  # fmt: skip
RESPONDED = [
    span("one", "response", "agent", 1, 2, input=ASKED[0]["content"], usage=USED, response={
        "object": "response", "model": "m", "output": [THOUGHT, ITEM]}),
    span("two", "response", "agent", 4, 5, usage={**USED, "input_tokens": 150, "output_tokens": 9}, input=[
        *ASKED, THOUGHT, ITEM, {"type": "function_call_output", "call_id": "c1", "output": "{'place': 'Bonn'}"}],
        response={"model": "m", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Bonn"}]}]}),
]  # fmt: skip


def one_case(folder: Path, *records: Any) -> tuple[Any, dict, dict]:
    file = written(folder / "x.jsonl", [*records])
    assert detected(head_of(file)) == "openai-agents"
    result, (case,) = imported(folder, "openai-agents", file)
    return result, case, case["embedded_trace"]


@pytest.mark.parametrize("calls", [GENERATED, STREAMED, RESPONDED], ids=["generations", "stream", "responses"])
@pytest.mark.parametrize("batch", [False, True], ids=["lines", "batch"])
def test_a_run_of_an_agent_is_a_case_with_its_calls_tokens_and_answer(tmp_path, calls, batch):
    records = [TRACE, *calls, TOOL, AGENT, task("task", 0, 5)]
    _, case, trace = one_case(tmp_path, *([{"data": records}] if batch else records))
    assert case["metadata"] == {"workflow_name": "Shop", "k": "1", "session.id": "g"}
    assert (case["input"], trace["output"]["final_answer"]) == ({"user_message": ASKED[0]["content"]}, "In Bonn")
    assert (trace["latency_ms"], trace["error"]) == (5000, None)
    assert [(message["role"], message["content"]) for message in trace["messages"]] == [
        ("user", ASKED[0]["content"]), ("assistant", None), ("tool", "{'place': 'Bonn'}"), ("assistant", "In Bonn"),
    ]  # fmt: skip
    assert [(call["name"], call["id"], call["arguments"]) for call in trace["tool_calls"]] == [
        ("track", "c1", {"order": 7})
    ]
    assert [(result["tool_call_id"], result["content"]) for result in trace["tool_results"]] == [
        ("c1", "{'place': 'Bonn'}")
    ]
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (250, 29, 6)
    assert metrics["custom"] == {"cache_read_tokens": 80}
    assert (trace["messages"][1].get("thinking") == "Hm") == (calls is RESPONDED)
    assert "warnings" not in trace["extra"]


def test_responses_that_were_exported_without_their_text_have_no_verdict_but_calls_and_tokens(tmp_path):
    bare = [span(f"r{n}", "response", "agent", n, n + 1, response_id="r", usage=USED) for n in (1, 4)]
    _, _, trace = one_case(tmp_path, TRACE, *bare, TOOL, AGENT, task("task", 0, 5))
    assert trace["extra"]["answer_unrecorded"] == "the export contains neither input nor answer"
    assert [call["arguments"] for call in trace["tool_calls"]] == [{"order": 7}]
    assert trace["metrics"]["token_input"] == 200


def test_a_run_whose_model_leaves_no_span_has_the_tokens_of_the_run(tmp_path):
    _, _, trace = one_case(tmp_path, TRACE, AGENT, task("task", 0, 5))
    assert (trace["metrics"]["token_input"], trace["metrics"]["token_output"]) == (250, 29)


def test_several_runs_in_one_trace_are_one_case_from_the_first_to_the_last(tmp_path):
    again = [*ASKED, {"role": "assistant", "content": "In Bonn"}, {"role": "user", "content": "And 8?"}]
    runs = [
        generation("a", "first", 0, ASKED, {"content": "In Bonn"}, usage=USED), task("first", 0, 2),
        generation("b", "second", 3, again, {"content": "In Ulm"}, usage=USED), task("second", 3, 9),
    ]  # fmt: skip
    _, case, trace = one_case(tmp_path, TRACE, *runs)
    assert (case["metadata"]["k"], case["input"]["user_message"]) == ("1", ASKED[0]["content"])
    assert (trace["latency_ms"], trace["output"]["final_answer"], len(trace["messages"])) == (9000, "In Ulm", 4)
    assert (trace["metrics"]["token_input"], trace["error"], "warnings" in trace["extra"]) == (200, None, False)


ENDED = {"message": "Max turns exceeded", "data": {"max_turns": 2}}
BROKE = {"message": "Error in agent run", "data": {"error": "no such order"}}


@pytest.mark.parametrize(
    ("error", "message"),
    [(ENDED, "Max turns exceeded"), (BROKE, "Error in agent run: no such order"), ("broke", "broke")],
)
@pytest.mark.parametrize("text", [None, "Let me look"])
def test_a_run_whose_agent_failed_is_an_error_whatever_it_said_before(tmp_path, error, message, text):
    said = generation("one", "agent", 1, ASKED, {"content": text, "tool_calls": [CALL]}, usage=USED)
    _, _, trace = one_case(tmp_path, TRACE, said, TOOL, {**AGENT, "error": error}, task("task", 0, 5))
    assert trace["error"]["message"] == message


def test_an_agent_that_failed_as_a_tool_of_another_is_a_failed_call(tmp_path):
    broken = {**span("inner", "agent", "track", 2, 3, name="Inner"), "error": BROKE}
    failed = {**TOOL, "error": {"message": "Error running tool (non-fatal)", "data": {"tool_name": "track"}}}
    _, _, trace = one_case(tmp_path, TRACE, *GENERATED, broken, failed, AGENT, task("task", 0, 5))
    assert (trace["error"], trace["output"]["final_answer"]) == (None, "In Bonn")
    assert trace["metrics"]["custom"]["failed_tool_results"] == 1


def test_what_is_neither_a_trace_nor_a_span_is_lost_with_its_place(tmp_path):
    result, _, _ = one_case(tmp_path, {"data": [TRACE, *GENERATED, AGENT, task("task", 0, 5), None, {"id": "x"}]})
    assert result.notes == ["lost: line 1: expected a trace, or a span with an id, a trace_id and span_data"] * 2
