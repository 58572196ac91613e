"""What is kept of the calls of models: by whom they were made, in which order, and how much of their texts."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest

from evalwright.llm.kept_calls import KEPT_BYTES, keeping, kept_call, questions_of
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest, Usage


def say(text: str, model: str = "m") -> None:
    with kept_call(model, [{"role": "user", "content": "ask"}]) as call:
        call.note_output(text)


def test_calls_are_kept_by_the_innermost_block_and_by_none_after_it() -> None:
    with keeping() as outer:
        say("one")
        with keeping() as inner:
            say("two")
        say("three")
    say("four")
    assert [call["reply"] for call in outer] == ["one", "three"]
    assert [call["reply"] for call in inner] == ["two"]


def test_calls_are_kept_in_the_order_in_which_they_began_and_know_their_errors() -> None:
    with keeping() as calls, suppress(ZeroDivisionError), kept_call("first", []):
        assert calls[0]["error"]["type"] == "unfinished"
        say("done", "second")
        raise ZeroDivisionError("by 0")
    assert [(call["model"], call["error"]) for call in calls] == [
        ("first", {"type": "ZeroDivisionError", "message": "by 0"}),
        ("second", None),
    ]
    assert all(0 <= call["latency_ms"] < 60_000 for call in calls)


def test_the_time_of_a_call_is_kept_in_milliseconds_whatever_came_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = time.monotonic
    with keeping() as calls:
        for later, fails in ((300, False), (700, True)):
            with suppress(ZeroDivisionError), kept_call("m", []) as call:
                monkeypatch.setattr(time, "monotonic", lambda later=later: clock() + later)
                if fails:
                    raise ZeroDivisionError
                call.note_output("done")
    assert 300_000 <= calls[0]["latency_ms"] < 300_250
    assert 400_000 <= calls[1]["latency_ms"] < 400_350


def test_messages_are_read_only_where_they_are_kept() -> None:
    read: list[int] = []

    def messages() -> list[dict[str, Any]]:
        read.append(1)
        return []

    with kept_call("m", messages):
        pass
    assert read == []
    with keeping(), kept_call("m", messages):
        pass
    assert read == [1]


@pytest.mark.parametrize("letter", ["a", "é", "€", "𝄞"])
def test_texts_are_cut_behind_256_kib(letter: str) -> None:
    size = len(letter.encode())
    most = KEPT_BYTES // size
    with keeping() as calls:
        say(letter * most)
        say(letter * (most + 1))
    whole, cut = (call["reply"] for call in calls)
    assert whole == letter * most
    assert cut == f"{letter * most}… [cut: {(most + 1) * size:,} bytes in full]"


def test_a_reply_is_kept_masked_with_what_it_used_and_further_only_what_there_is() -> None:
    with keeping() as calls:
        for reply in (
            ChatReply("tell s3cret", "m", usage=Usage(3), cost_usd=0.5, latency_ms=7, cached=True),
            ChatReply("", "m", refusal="never", thinking="s3cret thought"),
        ):
            with kept_call(
                "m", [{"role": "user", "content": ["s3cret"]}], lambda text: text.replace("s3cret", "*")
            ) as call:
                call.replied(reply)
    said, refused = calls
    assert said["messages"] == [{"role": "user", "content": ["*"]}]
    assert [said[key] for key in ("reply", "usage", "cost_usd", "latency_ms", "cached", "error")] == [
        "tell *", {"token_input": 3}, 0.5, 7, True, None,
    ]  # fmt: skip
    assert {"thinking", "tool_calls", "finish_reason", "refused"}.isdisjoint(said)
    assert (refused["reply"], refused["refused"], refused["thinking"]) == ("never", True, "* thought")


def test_the_prompt_of_the_system_comes_first() -> None:
    request = ChatRequest("m", [ChatMessage("user", "ask")], system="be brief")
    assert questions_of(request) == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "ask"}]
