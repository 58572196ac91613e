"""Messages of Vercel's AI SDK for user interfaces, and of ShareGPT's form, in records of conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.transcripts import imported, spoken, written

ASKED = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Weather?"}]}
GIVEN = {"toolCallId": "c1", "state": "output-available", "input": {"city": "Bonn"}, "output": {"degrees": 20}}
OLDER = {"toolName": "weather", "toolCallId": "c1", "state": "result", "args": {"city": "Bonn"}}


def conversation(folder: Path, *parts: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """What is said about the import of a question and a reply with these parts, and the recording."""
    record = {"id": "c", "messages": [ASKED, {"id": "2", "role": "assistant", "parts": parts}]}
    done, [case] = imported(folder, "openai-messages", written(folder / "x.jsonl", [record]))
    return done.notes, case["embedded_trace"]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool-weather", **GIVEN},
        {"type": "dynamic-tool", "toolName": "weather", **GIVEN},
        {"type": "tool-invocation", "toolInvocation": {**OLDER, "result": {"degrees": 20}}},
    ],
)
def test_the_parts_of_a_reply_are_its_steps_with_their_calls_and_results(tmp_path, part):
    step, answer = {"type": "step-start"}, {"type": "text", "text": "20 degrees"}
    notes, trace = conversation(tmp_path, step, {"type": "reasoning", "text": "Hm."}, part, step, answer)
    assert spoken(trace) == [
        ("user", "Weather?", None),
        ("assistant", None, "weather"),
        ("tool", {"degrees": 20}, None),
        ("assistant", "20 degrees", None),
    ]
    assert [call["arguments"] for call in trace["tool_calls"]] == [{"city": "Bonn"}]
    assert (trace["messages"][1]["thinking"], trace["output"]["final_answer"], notes) == ("Hm.", "20 degrees", [])


def test_a_tool_that_failed_has_the_reason_as_its_result_and_is_counted(tmp_path):
    failed = {"toolCallId": "c1", "state": "output-error", "input": {}, "errorText": "no such city"}
    _, trace = conversation(tmp_path, {"type": "tool-weather", **failed})
    assert [result["content"] for result in trace["tool_results"]] == ["no such city"]
    assert trace["metrics"]["custom"] == {"failed_tool_results": 1}


def test_parts_that_are_no_texts_are_counted(tmp_path):
    source, file = {"type": "source-url", "url": "u"}, {"type": "file", "url": "u"}
    notes, trace = conversation(tmp_path, {"type": "text", "text": "See"}, source, file)
    assert trace["output"]["final_answer"] == "See\n[file]"
    assert notes == ["lost: blocks of type 'file': 1", "lost: blocks of type 'source-url': 1"]


@pytest.mark.parametrize(
    "thought",
    [
        {"type": "reasoning", "text": "Hm."},
        {"type": "thinking", "thinking": "Hm."},
        {"reasoningContent": {"reasoningText": {"text": "Hm."}}},
    ],
)
def test_the_thinking_among_the_parts_of_an_answer_is_none_of_its_text(tmp_path, thought):
    """As calls of the AI SDK, Anthropic's models and Bedrock return it."""
    said = {"role": "assistant", "content": [thought, {"type": "text", "text": "20 degrees"}]}
    record = {"id": "c", "messages": [{"role": "user", "content": "Weather?"}, said]}
    done, [case] = imported(tmp_path, "openai-messages", written(tmp_path / "x.jsonl", [record]))
    output = case["embedded_trace"]["output"]
    assert (output["final_answer"], output["thinking"], done.notes) == ("20 degrees", "Hm.", [])


def shared(*turns: tuple[str, Any]) -> dict[str, Any]:
    return {"id": "c", "conversations": [{"from": speaker, "value": value} for speaker, value in turns]}


def test_a_conversation_in_the_form_of_sharegpt_has_its_calls_and_results(tmp_path):
    call = '{"name": "weather", "arguments": {"city": "Bonn"}}'
    asked = [("system", "Be kind"), ("human", "Weather?"), ("function_call", call), ("observation", '{"degrees": 20}')]
    file = written(tmp_path / "x.jsonl", [shared(*asked, ("gpt", "20 degrees"))])
    assert detected(head_of(file)) == "openai-messages"
    _, [case] = imported(tmp_path, "openai-messages", file)
    trace = case["embedded_trace"]
    assert (case["id"], case["input"]) == ("c", {"user_message": "Weather?"})
    assert spoken(trace) == [
        ("system", "Be kind", None),
        ("user", "Weather?", None),
        ("assistant", None, "weather"),
        ("tool", {"degrees": 20}, None),
        ("assistant", "20 degrees", None),
    ]
    assert [call["arguments"] for call in trace["tool_calls"]] == [{"city": "Bonn"}]


def test_several_calls_at_once_have_their_results_in_their_order(tmp_path):
    calls = '[{"name": "weather", "arguments": {"city": "Bonn"}}, {"name": "time", "arguments": {}}]'
    turns = [("human", "?"), ("function_call", calls), ("observation", "20"), ("observation", "12:00"), ("gpt", "!")]
    _, [case] = imported(tmp_path, "openai-messages", written(tmp_path / "x.jsonl", [shared(*turns)]))
    trace = case["embedded_trace"]
    assert [call["name"] for call in trace["tool_calls"]] == ["weather", "time"]
    assert [(result["name"], result["content"]) for result in trace["tool_results"]] == [
        ("weather", "20"),
        ("time", "12:00"),
    ]


@pytest.mark.parametrize(
    ("turn", "flaw"),
    [
        (("function_call", "weather!"), r"\[1\].value  expected the JSON of calls {name, arguments}, found the string"),
        (("function_call", '[{"name": "weather"}, 5]'), r"\[1\].value  expected the JSON of calls"),
        (("observation", "20"), "names no tool"),
        (("nobody", "hi"), r"\[1\].from  expected system, human, gpt, function_call or observation, found the string"),
        ((["gpt"], "hi"), r"\[1\].from  expected system, human, gpt, function_call or observation, found a list"),
    ],
)
def test_a_turn_of_sharegpt_that_cannot_be_read_is_a_mistake(tmp_path, turn, flaw):
    file = written(tmp_path / "x.jsonl", [shared(("human", "q"), turn)])
    with pytest.raises(InputError, match=flaw):
        imported(tmp_path, "openai-messages", file)
