"""Replies that arrive piece by piece, assembled into what the providers' APIs would have sent in one piece.

OpenAI's chunks: platform.openai.com/docs/api-reference/chat-streaming. Anthropic's events:
docs.anthropic.com/en/docs/build-with-claude/streaming.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, NamedTuple

from evalwright.llm.failures import CallFailed

__all__ = ["StreamedReply", "anthropic_message", "openai_completion"]


class StreamedReply(NamedTuple):
    """A whole response, and the milliseconds from the call to its first word, thought or tool."""

    response: Any
    first_ms: int | None


class _Clock:
    def __init__(self, started: float) -> None:
        self._started = started
        self.first_ms: int | None = None

    def received(self, chunk: object) -> None:
        if chunk and self.first_ms is None:
            self.first_ms = int((time.monotonic() - self._started) * 1000)


async def openai_completion(chunks: AsyncIterator[Any], started: float) -> StreamedReply:
    """The message assembled from the chunks of a chat completion. Raises CallFailed for a stream that breaks off."""
    clock, whole = _Clock(started), _Completion()
    async for chunk in chunks:
        for choice in chunk.choices or ():
            if not choice.index:  # of several replies (`n`) the first one counts, as without a stream
                whole.add(choice, clock)
        whole.usage = getattr(chunk, "usage", None) or whole.usage
        whole.model = chunk.model or whole.model
    if whole.finish_reason is None:
        raise _broken_off()
    return StreamedReply(whole.response(), clock.first_ms)


class _Completion:
    def __init__(self) -> None:
        self.model: str | None = None
        self.usage: Any = None
        self.finish_reason: str | None = None
        self._texts: dict[str, list[str]] = {}
        self._calls: list[SimpleNamespace] = []
        self._calls_at: dict[int | None, SimpleNamespace] = {}
        """The last call at each index."""

    def add(self, choice: Any, clock: _Clock) -> None:
        self.finish_reason = choice.finish_reason or self.finish_reason
        delta = choice.delta
        if delta is None:
            return
        for name in ("content", "refusal", "reasoning_content", "reasoning"):
            if isinstance(text := getattr(delta, name, None), str):
                self._texts.setdefault(name, []).append(text)
                clock.received(text)
        legacy = getattr(delta, "function_call", None)
        for piece in delta.tool_calls or ([] if legacy is None else [SimpleNamespace(function=legacy)]):
            clock.received(True)
            custom = getattr(piece, "custom", None)  # unknown to the client, which leaves it a dictionary
            if custom is None:
                self._add_call(piece, piece.function)
            else:
                self._add_call(piece, SimpleNamespace(name=custom.get("name"), arguments=custom.get("input")))

    def _add_call(self, piece: Any, function: Any) -> None:
        """Add a fragment of a call of `function`.

        Some servers give all calls the same index or none: another id, or another name after arguments, begins another
        call. Others repeat the name in each fragment.
        """
        name, arguments = (getattr(function, key, None) or "" for key in ("name", "arguments"))
        index, id = getattr(piece, "index", None), getattr(piece, "id", None)
        call = self._calls_at.get(index)
        if (
            call is None
            or (call.id and id and call.id != id)
            or (name and name != call.function.name and call.function.arguments)
        ):
            empty = SimpleNamespace(name="", arguments="")
            call = self._calls_at[index] = SimpleNamespace(id=None, function=empty, index=index or 0)
            self._calls.append(call)
        call.id = id or call.id
        call.function.name += name if name != call.function.name else ""
        call.function.arguments += arguments

    def response(self) -> Any:
        joined = {name: "".join(texts) or None for name, texts in self._texts.items()}
        calls = sorted(self._calls, key=lambda call: call.index)
        message = SimpleNamespace(**{"content": None, "refusal": None, **joined}, tool_calls=calls)
        choice = SimpleNamespace(message=message, finish_reason=self.finish_reason)
        return SimpleNamespace(choices=[choice], usage=self.usage, model=self.model)


async def anthropic_message(events: AsyncIterator[Any], started: float) -> StreamedReply:
    """The message assembled from the events of a stream. Raises CallFailed for one that breaks off."""
    clock = _Clock(started)
    message = SimpleNamespace(content=[], model=None, stop_reason=None, usage=SimpleNamespace())
    inputs: dict[int, list[str]] = {}
    ended = False
    async for event in events:
        if event.type == "message_start":
            message.model = event.message.model
            message.usage = SimpleNamespace(**vars(event.message.usage))
        elif event.type == "content_block_start":
            # As sent: of types that are unknown to it the client sets no attributes, or wrong ones with a warning.
            block = SimpleNamespace(**{**vars(event.content_block), **event.content_block.to_dict(warnings=False)})
            message.content.append(block)
            clock.received(block.type.endswith("tool_use"))
        elif event.type == "content_block_delta":
            _add_delta(message.content[event.index], event.delta, inputs.setdefault(event.index, []))
            clock.received(True)
        elif event.type == "message_delta":
            message.stop_reason = event.delta.stop_reason
            for name, count in vars(event.usage).items():
                if count is not None:
                    setattr(message.usage, name, count)
        ended = ended or event.type == "message_stop"
    if not ended:
        raise _broken_off()
    for index, parts in inputs.items():
        if message.content[index].type.endswith("tool_use") and parts:
            message.content[index].input = _object("".join(parts))
    return StreamedReply(message, clock.first_ms)


def _add_delta(block: Any, delta: Any, inputs: list[str]) -> None:
    if delta.type == "input_json_delta":
        inputs.append(delta.partial_json)
    for name in ("text", "thinking"):
        if delta.type == f"{name}_delta":
            setattr(block, name, (getattr(block, name, None) or "") + getattr(delta, name))


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _broken_off() -> CallFailed:
    return CallFailed("connection", "the stream broke off before the reply was complete", retryable=True)
