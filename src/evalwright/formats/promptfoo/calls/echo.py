"""`echo`: the output is the prompt, at no cost."""

from __future__ import annotations

from evalwright.formats.promptfoo.calls import Caller, ProviderCall, ProviderReply
from evalwright.formats.promptfoo.providers import Provider

__all__ = ["Echo"]


class Echo(Caller):
    def __init__(self, provider: Provider, folder: str) -> None:
        pass

    async def __call__(self, call: ProviderCall) -> ProviderReply:
        return ProviderReply(call.prompt, 0.0)
