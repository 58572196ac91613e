"""`echo`: the output is the prompt, at no cost."""

from __future__ import annotations

from collections.abc import Iterator

from evalwright.formats.promptfoo.calls import ProviderCall, ProviderReply
from evalwright.formats.promptfoo.providers import Provider
from evalwright.model.chat import ChatRequest

__all__ = ["Echo"]


class Echo:
    def __init__(self, provider: Provider, folder: str) -> None:
        pass

    async def __call__(self, call: ProviderCall) -> ProviderReply:
        return ProviderReply(call.prompt, 0.0)

    def asks(self) -> Iterator[ChatRequest]:
        yield from ()

    async def close(self) -> None:
        pass
