"""The models of one run: routing, retries, money, cache, recording, all behind the one interface `Models`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from evalwright.errors import InputError
from evalwright.llm.cache import Cache, default_path
from evalwright.llm.choices import ModelChoices
from evalwright.llm.failures import CallFailed, raised_for
from evalwright.llm.keys import key_of
from evalwright.llm.recording import Recorder, Recording
from evalwright.llm.retrying import Gate, Pace, Rules, retried
from evalwright.llm.routes import Route, route_of
from evalwright.llm.spending import Spending
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest, Embedding, Moderation, Purpose
from evalwright.model.plan import Price

__all__ = ["LiveModels"]

T = TypeVar("T")

_WIDTH = 64
_MODERATION = "omni-moderation-latest"


class LiveModels:
    """Asks real models. Clients are made when first needed; one event loop only."""

    def __init__(
        self,
        prices: Mapping[str, Price] | None = None,
        choices: ModelChoices | None = None,
        environment: Mapping[str, str] = os.environ,
        rules: Rules | None = None,
    ) -> None:
        self._choices, self._environment = choices or ModelChoices(), environment
        self._spending = Spending(prices or {}, self._choices.budget_usd, allow_unpriced=self._choices.allow_unpriced)
        self._rules = rules or Rules()
        self._pace = Pace(self._choices.requests_per_minute)
        self._clients: dict[Route, Any] = {}
        self._gates: dict[str | None, Gate] = {}
        self._recording = Recording(self._choices.replay) if self._choices.replay else None
        self._recorder = Recorder(self._choices.record, self._choices.mask) if self._choices.record else None
        self._cache: Cache | None = None

    def price(self, model: str) -> Price | None:
        return self._spending.price(model)

    async def chat(self, request: ChatRequest, purpose: Purpose = "judge") -> ChatReply:
        route = route_of(request, self._environment)
        asked = key_of(request, at=None)
        reply: ChatReply = await self._answered(
            purpose, "chat", asked, request, lambda: self._chat(request, route, purpose)
        )
        return reply

    async def _chat(self, request: ChatRequest, route: Route, purpose: Purpose) -> ChatReply:
        cache = self._cache_for(route) if purpose == "judge" else None
        key = key_of(request, at=route.base_url or route.interface)
        known = None if cache is None else cache.find(key)
        if known is not None:
            return known
        reserved = self._spending.reserve(request)
        try:
            reply = await self._asked(route, request)
        except BaseException:
            self._spending.release(reserved)
            raise
        cost = self._spending.cost(request.model, reply.usage)
        self._spending.settle(reserved, cost)
        reply = msgspec.structs.replace(reply, cost_usd=cost)
        if cache is not None:
            cache.keep(key, reply)
        return reply

    async def _asked(self, route: Route, request: ChatRequest) -> ChatReply:
        reply: ChatReply = await self._retried(route, lambda client: client.chat(route.model, request))
        return reply

    async def embed(self, model: str, texts: Sequence[str], purpose: Purpose = "judge") -> Embedding:
        asked = ChatRequest(model, [ChatMessage("user", list(texts))], tool_choice="embed")
        route = route_of(asked, self._environment)

        async def embedded() -> Embedding:
            found: Embedding = await self._retried(route, lambda client: client.embed(route.model, texts))
            cost = self._spending.cost(model, found.usage)
            self._spending.settle(0.0, cost or 0.0)
            return msgspec.structs.replace(found, cost_usd=cost)

        found: Embedding = await self._answered(purpose, "embed", key_of(asked, at=None), asked, embedded)
        return found

    async def moderate(self, text: str, model: str | None = None) -> Moderation:
        asked = ChatRequest(model or _MODERATION, [ChatMessage("user", text)], tool_choice="moderate")
        route = route_of(asked, self._environment)
        found: Moderation = await self._answered(
            "judge",
            "moderate",
            key_of(asked, at=None),
            asked,
            lambda: self._retried(route, lambda client: client.moderate(route.model, text)),
        )
        return found

    async def close(self) -> None:
        """Close connections and files."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()
        for file in (self._cache, self._recorder):
            if file is not None:
                file.close()
        self._cache = None

    async def _answered(
        self, purpose: Purpose, kind: str, key: str, asked: ChatRequest, live: Callable[[], Awaitable[Any]]
    ) -> Any:
        """The recorded answer where there is a recording, else the live one, written down where that is asked for."""
        try:
            reply = await live() if self._recording is None else self._recording.find(key, asked)
        except CallFailed as failure:
            raise raised_for(purpose, failure.kind, self._choices.mask(str(failure))) from None
        if self._recorder is not None:
            self._recorder.keep(key, kind, asked, reply)
        return reply

    async def _retried(self, route: Route, call: Callable[[Any], Awaitable[T]]) -> T:
        if self._choices.no_network and not route.is_loopback:
            raise CallFailed(
                "network_refused", f"{route.model!r} is outside of this machine, and --no-network is given"
            )
        if route.key is None and route.needs_key:
            raise CallFailed("authentication", f"{route.key_variable} is not set: {route.model!r} needs a key")
        client = self._client(route)
        gate = self._gates.setdefault(route.base_url, Gate(_WIDTH))
        await self._pace.turn()
        return await retried(lambda: call(client), gate, self._rules)

    def _client(self, route: Route) -> Any:
        where = route._replace(model="") if route.interface != "callable" else route
        if where not in self._clients:
            try:
                if route.interface in ("callable", "litellm"):
                    from evalwright.llm.callable_client import CallableClient, LitellmClient

                    self._clients[where] = (CallableClient if route.interface == "callable" else LitellmClient)(route)
                elif route.interface == "anthropic":
                    from evalwright.llm.anthropic_client import AnthropicClient

                    self._clients[where] = AnthropicClient(route)
                else:
                    from evalwright.llm.openai_client import OpenAIClient

                    self._clients[where] = OpenAIClient(route)
            except ImportError as error:
                message = f"{route.model!r} needs the package {error.name}: pip install 'evalwright[judges]'"
                raise CallFailed("not_installed", message) from error
        return self._clients[where]

    def _cache_for(self, route: Route) -> Cache | None:
        """None where it is off: by choice, and for servers on this machine unless a file is named."""
        if self._choices.no_cache or (route.is_loopback and self._choices.cache is None):
            return None
        if self._cache is None:
            try:
                self._cache = Cache(self._choices.cache or default_path())
            except InputError:
                if self._choices.cache is not None:
                    raise
                return None
        return self._cache
