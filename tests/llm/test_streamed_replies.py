"""Streams as the clients give them, put together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from openai.types.chat import ChatCompletionChunk

from evalwright.llm.streamed_replies import openai_completion


async def chunks(*texts: str | None) -> AsyncIterator[ChatCompletionChunk]:
    for number, text in enumerate(texts, 1):
        delta, ended = {"content": text}, "stop" if number == len(texts) else None
        yield ChatCompletionChunk.model_validate(
            {
                "id": "1",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": ended}],
            }
        )


def test_the_milliseconds_to_the_first_word_are_told() -> None:
    found = asyncio.run(openai_completion(chunks(None, "", "hello ", "you"), time.monotonic() - 1000))
    assert found.response.choices[0].message.content == "hello you"
    assert found.first_ms is not None
    assert 1_000_000 <= found.first_ms < 1_000_900


def test_a_stream_without_words_has_no_first_one() -> None:
    assert asyncio.run(openai_completion(chunks(None, ""), time.monotonic())).first_ms is None
