"""Evaluators that call models, with scripted models, and the requests to those."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.llm.thinking import spoken
from evalwright.model.chat import ChatReply, ChatRequest, Embedding, EmbeddingRequest, Moderation, Purpose, Usage
from evalwright.model.plan import Price
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case, Expected
from evalwright.model.trace import Output, Trace
from evalwright.session import Session

__all__ = ["Scripted", "case", "fails", "holds", "judged", "problems", "says", "trace"]


def says(text: Any = "", tokens: tuple[int | None, int | None] = (100, 10), **fields: Any) -> ChatReply:
    """A reply; what is no text is said as JSON."""
    text = text if isinstance(text, str) else json.dumps(text)
    return ChatReply(text, "model-1", usage=Usage(*tokens), **fields)


class Scripted:
    """Models that reply in turn, the last one for ever, or as a function of the request; exceptions are raised."""

    def __init__(
        self,
        *replies: ChatReply | Exception,
        by: Callable[[ChatRequest], ChatReply | Exception] | None = None,
        vectors: dict[str, list[float]] | None = None,
        price: Price | None = None,
    ) -> None:
        self._replies, self._by, self._vectors, self._price = list(replies), by, vectors or {}, price
        self.requests: list[ChatRequest] = []

    async def chat(self, request: ChatRequest, purpose: Purpose = "judge") -> ChatReply:
        assert purpose == "judge"
        self.requests.append(request)
        if self._by is not None:
            reply = self._by(request)
        else:
            reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        return spoken(reply)

    def forget(self, request: ChatRequest) -> None:
        pass

    async def embed(self, request: EmbeddingRequest, purpose: Purpose = "judge") -> Embedding:
        if unknown := [text for text in request.texts if text not in self._vectors]:
            raise EvaluatorError(f"unknown: {unknown}", "bad_request")
        return Embedding([self._vectors[text] for text in request.texts], request.model, cost_usd=0.001)

    async def moderate(self, model: str, text: str) -> Moderation:
        raise NotImplementedError

    def price(self, model: str) -> Price | None:
        return self._price

    @property
    def prompt(self) -> str:
        """All text of the last request."""
        request = self.requests[-1]
        return "\n\n".join([request.system or "", *(message.content for message in request.messages)])


def case(**fields: Any) -> Case:
    facts = fields.pop("facts", {})
    return Case("c1", {"user_message": "Where is order 1001?"}, Expected(facts=facts), **fields)


def trace(answer: str | None = "On its way.", thinking: str | None = None) -> Trace:
    now = datetime.now(UTC)
    asked = {"user_message": "Where is order 1001?"}
    return Trace("c1", "v", now, now, 0, input=asked, output=Output(answer, thinking))


def judged(
    kind: str,
    config: dict[str, Any],
    models: Scripted,
    *,
    on: Trace | None = None,
    of: Case | None = None,
) -> Evaluation:
    async def evaluate() -> Evaluation:
        given = build_evaluator(kind, config).evaluate(of or case(), on or trace())
        return await given if isinstance(given, Awaitable) else given

    with Session(models=lambda: models):
        return asyncio.run(evaluate())


def fails(kind: str, config: dict[str, Any], models: Scripted, **given: Any) -> EvaluatorError:
    """The error of an evaluator that cannot judge."""
    with pytest.raises(EvaluatorError) as caught:
        judged(kind, config, models, **given)
    return caught.value


def problems(kind: str, config: dict[str, Any]) -> dict[str, str]:
    """What is wrong with a configuration, by key."""
    with pytest.raises(InputError) as caught:
        build_evaluator(kind, config)
    return {problem.key: problem.message for problem in caught.value.problems}


def holds(*passed: Any, **more: Any) -> ChatReply:
    items = [{"text": "t", "passed": held, "reason": f"r{i}"} for i, held in enumerate(passed)]
    return says({"assertions": items, **more})
