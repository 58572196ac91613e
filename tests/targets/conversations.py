"""Calls of chat targets and simulations with scripted models, and what those were asked."""

from __future__ import annotations

import asyncio
from typing import Any

from evalwright.model.chat import ChatReply, ChatRequest, Embedding, EmbeddingRequest, Moderation, Purpose, Usage
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, ToolCall
from evalwright.registry import load
from evalwright.session import Session


def says(text: str = "", *calls: ToolCall, tokens: tuple[int, int] = (100, 10), **fields: Any) -> ChatReply:
    return ChatReply(text, "model-1", tool_calls=list(calls), usage=Usage(*tokens), **fields)


class Scripted:
    """Models that reply in turn, by purpose; an exception among the replies is raised."""

    def __init__(self, **replies: list[ChatReply | Exception]) -> None:
        self._replies = {purpose: list(reply) for purpose, reply in replies.items()}
        self.requests: list[tuple[Purpose, ChatRequest]] = []

    async def chat(self, request: ChatRequest, purpose: Purpose = "judge") -> ChatReply:
        self.requests.append((purpose, request))
        reply = self._replies[purpose].pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def forget(self, request: ChatRequest) -> None:
        pass

    async def embed(self, request: EmbeddingRequest, purpose: Purpose = "judge") -> Embedding:
        raise NotImplementedError

    async def moderate(self, model: str, text: str) -> Moderation:
        raise NotImplementedError


def ask(adapter: str, config: dict[str, Any], given: Any, models: Scripted, trial: int = 0) -> Answer:
    """The answer of a target to one case."""

    async def asked() -> Answer:
        target = load("targets", adapter)(Variant("v", adapter, config))
        if hasattr(target, "open"):
            await target.open()
        try:
            return await target.run(Case("c1", given), trial)
        finally:
            await target.close()

    with Session(models=lambda: models):
        return asyncio.run(asked())
