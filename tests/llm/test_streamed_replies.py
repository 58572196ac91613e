"""Streams as the clients give them, put together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.llm.streamed_replies import openai_completion

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk


async def chunks(*texts: str | None) -> AsyncIterator[ChatCompletionChunk]:
    for number, text in enumerate(texts, 1):
        yield chunk({"content": text}, "stop" if number == len(texts) else None)


def chunk(delta: dict[str, Any], ended: str | None = None, choice: int = 0) -> ChatCompletionChunk:
    """A chunk as the client makes it from what a server sends: unchecked."""
    from openai.types.chat import ChatCompletionChunk  # takes a second: not while every worker collects

    return ChatCompletionChunk.construct(
        id="1",
        object="chat.completion.chunk",
        created=0,
        model="m",
        choices=[{"index": choice, "delta": delta, "finish_reason": ended}],
    )


def called(*fragments: tuple[int | None, str | None, str | None, str]) -> list[tuple[str | None, str, str]]:
    """The calls in a stream of fragments: index, id, name and arguments."""

    async def sent() -> AsyncIterator[ChatCompletionChunk]:
        for index, identity, name, arguments in fragments:
            call = {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
            yield chunk({"tool_calls": [{**call, "index": index}]})
        yield chunk({}, "tool_calls")

    message = asyncio.run(openai_completion(sent(), time.monotonic())).response.choices[0].message
    return [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls]


def test_the_milliseconds_to_the_first_word_are_recorded() -> None:
    found = asyncio.run(openai_completion(chunks(None, "", "hello ", "you"), time.monotonic() - 1000))
    assert (found.response.choices[0].message.content, found.response.model) == ("hello you", "m")
    assert found.first_ms is not None
    assert 1_000_000 <= found.first_ms < 1_060_000


def test_a_stream_without_words_has_no_first_one() -> None:
    assert asyncio.run(openai_completion(chunks(None, ""), time.monotonic())).first_ms is None


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("ids", [("a", "b"), (None, None)])
def test_calls_with_the_same_index_or_none_are_not_merged(
    index: int | None, ids: tuple[str | None, str | None]
) -> None:
    printed = called((index, ids[0], "refund", '{"a"'), (index, None, None, ": 1}"), (index, ids[1], "find", "{}"))
    assert printed == [(ids[0], "refund", '{"a": 1}'), (ids[1], "find", "{}")]


def test_a_name_that_every_fragment_repeats_is_one_name() -> None:
    assert called((0, "a", "refund", '{"a"'), (0, "a", "refund", ": 1}")) == [("a", "refund", '{"a": 1}')]


def test_calls_are_in_the_order_of_their_indices() -> None:
    fragments = [(1, "b", "find", ""), (0, "a", "refund", "{}"), (1, None, None, "{}")]
    assert called(*fragments) == [("a", "refund", "{}"), ("b", "find", "{}")]


@pytest.mark.parametrize(
    "deltas",
    [
        [{"function_call": {"name": "refund", "arguments": '{"a"'}}, {"function_call": {"arguments": ": 1}"}}],
        [
            {"tool_calls": [{"index": 0, "type": "custom", "custom": {"name": "refund", "input": '{"a"'}}]},
            {"tool_calls": [{"index": 0, "custom": {"input": ": 1}"}}]},
        ],
    ],
)
def test_older_and_freer_calls_are_read_too(deltas: list[dict[str, Any]]) -> None:
    async def sent() -> AsyncIterator[ChatCompletionChunk]:
        for delta in deltas:
            yield chunk(delta)
        yield chunk({}, "stop")

    message = asyncio.run(openai_completion(sent(), time.monotonic())).response.choices[0].message
    [call] = message.tool_calls
    assert (call.function.name, call.function.arguments) == ("refund", '{"a": 1}')


def test_of_several_replies_the_first_one_counts() -> None:
    async def sent() -> AsyncIterator[ChatCompletionChunk]:
        for choice, text in ((0, "one"), (1, "two"), (0, "!")):
            yield chunk({"content": text}, choice=choice)
        yield chunk({}, "stop")

    assert asyncio.run(openai_completion(sent(), time.monotonic())).response.choices[0].message.content == "one!"
