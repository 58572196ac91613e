"""Conversations in spans whose turns are written in several pieces."""

from __future__ import annotations

import json

import pytest

from importers.span_imports import trace
from importers.spans import START, exported, span


def response_call(number: int, asked: list, said: list) -> dict:
    """A call of the Responses API in the form of OpenTelemetry's messages."""
    return span(number, "openai.response", {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said),
    }, below=1)  # fmt: skip


def parts(role: str, *given: dict) -> dict:
    return {"role": role, "parts": list(given)}


def tracked(call_id: str, order: int) -> dict:
    return {"type": "tool_call", "name": "track", "id": call_id, "arguments": {"order": order}}


def found_at(call_id: str, place: str) -> dict:
    return parts("tool", {"type": "tool_call_response", "id": call_id, "response": place})


QUESTION_PARTS = parts("user", {"type": "text", "content": "Where are they?"})
SAID_TEXT = {"type": "text", "content": "I look."}
ANSWERED = [parts("assistant", {"type": "text", "content": "In Bonn and Kiel"})]


def heard(told: dict) -> list[tuple]:
    """The messages of a trace: role, content, thinking, and the tool of a call or a result."""
    return [
        (message["role"], message["content"], message["thinking"], (message["tool_call"] or message)["name"])
        for message in told["messages"]
    ]


TURN = [("assistant", "I look.", "Both.", "track"), ("assistant", None, None, "track")]
RESULTS = [("tool", "Bonn", None, "track"), ("tool", "Kiel", None, "track")]


def test_items_of_a_response_are_one_turn(tmp_path):
    thought = parts("assistant", {"type": "reasoning", "content": "Both."})
    calls = [parts("assistant", tracked("a", 7)), parts("assistant", tracked("b", 8))]
    asked = [
        QUESTION_PARTS,
        thought,
        parts("assistant", SAID_TEXT),
        *calls,
        found_at("a", "Bonn"),
        found_at("b", "Kiel"),
    ]
    told = trace(tmp_path, exported(span(1, "run"), response_call(2, asked, ANSWERED)))
    assert heard(told)[1:] == [*TURN, *RESULTS, ("assistant", "In Bonn and Kiel", None, None)]


def test_thinking_that_the_model_is_not_sent_again_is_kept(tmp_path):
    summaries = json.dumps([{"type": "summary_text", "text": "Both."}])
    said = [
        parts("assistant", SAID_TEXT, {"type": "reasoning", "content": summaries}, tracked("a", 7), tracked("b", 8))
    ]
    asked = [QUESTION_PARTS, parts("assistant", SAID_TEXT, tracked("a", 7), tracked("b", 8))]
    asked += [found_at("a", "Bonn"), found_at("b", "Kiel")]
    calls = response_call(2, [QUESTION_PARTS], said), response_call(3, asked, ANSWERED)
    for call, ended in zip(calls, (10, 20), strict=True):
        call["endTimeUnixNano"] = str(START + ended * 1_000_000)
    assert heard(trace(tmp_path, exported(span(1, "run"), *calls)))[1:3] == TURN


def test_thinking_is_not_that_of_another_reply_with_the_same_text(tmp_path):
    done = parts("assistant", {"type": "text", "content": "Done."})
    asked, calls = [], []
    for number, thought in enumerate(["First.", "Second."], 2):
        asked = [*asked, QUESTION_PARTS]
        said = parts("assistant", {"type": "reasoning", "content": thought}, *done["parts"])
        calls.append(response_call(number, asked, [said]))
        asked = [*asked, done]
    calls.append(response_call(4, [*asked, QUESTION_PARTS], ANSWERED))
    for call, ended in zip(calls, (10, 20, 30), strict=True):
        call["endTimeUnixNano"] = str(START + ended * 1_000_000)
    messages = heard(trace(tmp_path, exported(span(1, "run"), *calls)))
    assert [thinking for role, text, thinking, _ in messages if text == "Done."] == [None, None]


@pytest.mark.parametrize(("ids", "results"), [("xy", RESULTS), ("x", [])], ids=["as many", "fewer"])
def test_results_with_ids_of_their_own_are_those_of_the_calls_before_them(tmp_path, ids, results):
    thought = {"type": "reasoning", "content": "Both."}
    asked = [QUESTION_PARTS, parts("assistant", thought, SAID_TEXT, tracked("a", 7), tracked("b", 8))]
    asked += [found_at(call_id, place) for call_id, place in zip(ids, ("Bonn", "Kiel"), strict=False)]
    told = trace(tmp_path, exported(span(1, "run"), response_call(2, asked, ANSWERED)))
    assert heard(told)[1:-1] == [*TURN, *results]
    assert [result["tool_call_id"] for result in told["tool_results"]] == ["a", "b"][: len(results)]
    assert bool(results) != ("warnings" in told["extra"])


def test_items_of_a_response_that_openllmetry_writes_as_texts_are_no_texts(tmp_path):
    """It knows no parts of LangChain's messages but texts."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Both."}]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "track", "arguments": '{"order": 7}'}
    texts = [{"type": "text", "content": json.dumps(item)} for item in (thought, call)]
    said = parts("assistant", texts[0], SAID_TEXT, texts[1], tracked("a", 7))
    told = trace(tmp_path, exported(span(1, "flow"), response_call(2, [QUESTION_PARTS], [said])))
    assert heard(told)[1:] == TURN[:1]
    assert [call["id"] for call in told["tool_calls"]] == ["a"]


def test_a_user_can_say_what_an_item_of_a_response_is(tmp_path):
    asked = {"type": "text", "content": '{"type": "function_call", "call_id": "a", "name": "track"}'}
    said = parts("assistant", SAID_TEXT)
    told = trace(tmp_path, exported(span(1, "flow"), response_call(2, [parts("user", asked)], [said])))
    assert told["messages"][0]["content"] == asked["content"]
