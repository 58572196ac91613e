"""What responses of OpenAI and Anthropic say beside their texts: tools of the provider, usage, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importers.transcripts import imported, written


def items_of(folder: Path, *items: object, **more: object) -> dict:
    """The recording of a response with these items."""
    response = {"object": "response", "id": "r", "output": items, **more}
    _, (case,) = imported(folder, "openai-responses", written(folder / "x.jsonl", [response]))
    return case["embedded_trace"]


@pytest.mark.parametrize(
    ("item", "arguments", "result"),
    [
        (
            {"type": "file_search_call", "id": "c", "queries": ["q"], "results": [{"text": "t"}]},
            {"queries": ["q"]},
            {"results": [{"text": "t"}]},
        ),
        (
            {"type": "code_interpreter_call", "id": "c", "code": "1", "outputs": [{"type": "logs", "logs": "1"}]},
            {"code": "1"},
            {"outputs": [{"type": "logs", "logs": "1"}]},
        ),
        ({"type": "image_generation_call", "id": "c", "result": "iVBORw0KGgo="}, {}, "[image]"),
    ],
)
def test_what_a_tool_of_the_provider_returned_is_its_result(tmp_path, item, arguments, result):
    trace = items_of(tmp_path, {"status": "completed", **item})
    assert [call["arguments"] for call in trace["tool_calls"]] == [arguments]
    assert [returned["content"] for returned in trace["tool_results"]] == [result]


@pytest.mark.parametrize("outcome", [{"type": "exit", "exit_code": 2}, {"type": "timeout"}])
def test_a_command_of_a_shell_that_did_not_succeed_has_failed(tmp_path, outcome):
    call = {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
    printed = {"stdout": "", "stderr": "x", "outcome": outcome}
    trace = items_of(tmp_path, call, {"type": "shell_call_output", "call_id": "c", "output": [printed]})
    assert trace["metrics"]["custom"]["failed_tool_results"] == 1


def test_instructions_of_a_response_may_be_items(tmp_path):
    instructions = [{"role": "developer", "content": [{"type": "input_text", "text": "Be brief"}]}]
    trace = items_of(tmp_path, instructions=instructions)
    assert [(message["role"], message["content"]) for message in trace["messages"]] == [("system", "Be brief")]


def test_responses_that_were_appended_to_the_messages_count_their_tokens(tmp_path):
    use = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    response = {"type": "message", "role": "assistant", "usage": {"input_tokens": 10, "output_tokens": 5}}
    messages = [
        {"role": "user", "content": "q"},
        {**response, "content": [use], "stop_reason": "max_tokens"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "seen"}]},
        {**response, "content": [{"type": "text", "text": "Done"}], "stop_reason": "end_turn"},
    ]
    (tmp_path / "x.json").write_text(json.dumps(messages))
    _, (case,) = imported(tmp_path, "anthropic-messages", tmp_path / "x.json")
    trace = case["embedded_trace"]
    assert (trace["metrics"]["token_input"], trace["metrics"]["token_output"]) == (20, 10)
    assert (trace["output"]["final_answer"], "stopped" in trace["extra"]) == ("Done", False)


def test_an_error_of_the_api_in_place_of_a_response_is_one(tmp_path):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    record = {"messages": [{"role": "user", "content": "q"}], "response": error}
    _, (case,) = imported(tmp_path, "anthropic-messages", written(tmp_path / "x.jsonl", [record]))
    assert case["embedded_trace"]["error"] == {"type": "overloaded_error", "message": "Overloaded", "stack": None}
