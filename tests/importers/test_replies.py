"""The reply that a log of model calls keeps beside the messages of the request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from importers.messages import HELLO, problems
from importers.transcripts import imported, written

ASKED = HELLO[:1]
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_760_000_000,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 12,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
}


def imported_call(folder: Path, call: Any, **mapping: str) -> tuple[list[str], dict[str, Any]]:
    """What is said about the import of one call, and the recording."""
    done, [case] = imported(folder, "openai-messages", written(folder / "x.jsonl", [call]), mapping=mapping or None)
    return done.notes, case["embedded_trace"]


@pytest.mark.parametrize(
    ("call", "mapping"),
    [
        ({"messages": ASKED, "response": COMPLETION}, {}),
        ({"messages": ASKED, "response": "Hi"}, {}),
        ({"messages": ASKED, "response": {"role": "assistant", "content": "Hi"}}, {}),
        ({"messages": ASKED, **COMPLETION}, {}),
        (COMPLETION, {}),
        (
            {"request": {"messages": ASKED}, "got": {"body": COMPLETION}},
            {"messages": "request.messages", "reply": "got.body"},
        ),
    ],
)
def test_the_reply_beside_the_messages_is_the_answer(tmp_path, call, mapping):
    notes, trace = imported_call(tmp_path, call, **mapping)
    assert [message["content"] for message in trace["messages"]] == [*["Hello"] * (call is not COMPLETION), "Hi"]
    assert (trace["output"]["final_answer"], notes) == ("Hi", [])


def test_a_completion_says_its_model_its_tokens_and_when_it_was_created(tmp_path):
    _, trace = imported_call(tmp_path, {"messages": ASKED, "response": COMPLETION})
    metrics = trace["metrics"]
    assert [metrics[f"token_{part}"] for part in ("input", "output", "thinking")] == [12, 5, 2]
    assert (metrics["custom"], trace["extra"]["model"]) == ({"cache_read_tokens": 4}, "m")
    assert trace["started_at"] == "2025-10-09T08:53:20Z"


def test_a_completion_that_was_cut_off_says_why_and_its_further_choices_are_lost(tmp_path):
    choice = {"message": {"content": "H"}, "finish_reason": "length"}
    notes, trace = imported_call(tmp_path, {"messages": ASKED, "response": {"choices": [choice, choice]}})
    assert (trace["extra"]["stopped"], notes) == ("length", ["lost: further choices of a reply: 1"])


def test_usage_beside_a_whole_conversation_is_counted(tmp_path):
    notes, trace = imported_call(tmp_path, {"messages": HELLO, "usage": COMPLETION["usage"]})
    assert (trace["metrics"]["token_input"], notes) == (12, [])


@pytest.mark.parametrize(("messages", "response"), [(HELLO, "ok"), (ASKED, {"code": 200})])
def test_a_response_that_is_no_reply_is_named_as_left_out(tmp_path, messages, response):
    notes, trace = imported_call(tmp_path, {"messages": messages, "response": response})
    assert len(trace["messages"]) == len(messages)
    assert "1 key of records is left out: response" in notes[0]


def test_a_mapped_reply_of_another_form_is_a_mistake(tmp_path):
    said = problems(tmp_path, [{"messages": ASKED, "x": 7}], {"reply": "x"})
    assert said == ["recorded.json  [0].x  expected a text, a message or a chat completion, found the number 7"]


def test_lines_of_records_are_told_by_their_content(tmp_path):
    file = written(tmp_path / "calls.log", [{"id": name, "messages": HELLO} for name in "ab"])
    assert [case["id"] for case in imported(tmp_path, "openai-messages", file)[1]] == ["a", "b"]


def test_usage_of_anthropic_has_cached_tokens_beside_the_input(tmp_path):
    usage = {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 1000}
    _, trace = imported_call(tmp_path, {"messages": HELLO, "usage": usage})
    assert (trace["metrics"]["token_input"], trace["metrics"]["custom"]) == (1003, {"cache_read_tokens": 1000})
