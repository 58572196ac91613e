"""The models of one run: routes, retries, budget, cache and recording behind the one interface `Models`."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from evalwright.errors import InputError
from evalwright.files.masker import Masker, masked_in
from evalwright.files.user_folder import user_folder
from evalwright.llm.budget import Fare, Spending
from evalwright.llm.cache import Cache, default_path
from evalwright.llm.choices import ModelChoices
from evalwright.llm.clients import Clients, method_of
from evalwright.llm.failures import CallFailed, error_for
from evalwright.llm.fitting import ANTHROPIC_TOKENS, Fits
from evalwright.llm.funds import Funds
from evalwright.llm.kept_calls import kept_call, questions_of
from evalwright.llm.rates import NOTHING, Demand, Rates
from evalwright.llm.recorded_calls import CallRecorder, RecordedCalls
from evalwright.llm.replies import cut_by_budget, is_truncated, is_unfinished, unfinished, writable
from evalwright.llm.retries import Gate, Pace, Rules, retried
from evalwright.llm.routes import Route, key_of, route_of
from evalwright.llm.thinking import ends_thinking, spoken
from evalwright.llm.token_estimates import MostTokens, likely_tokens, most_of
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest, Embedding, EmbeddingRequest, Moderation, Purpose
from evalwright.model.plan import Price

if TYPE_CHECKING:
    from evalwright.llm.batches import Batches

__all__ = ["LiveModels"]

T = TypeVar("T")
P = TypeVar("P", ChatReply, Embedding)
Again = Callable[[CallFailed], Awaitable[None]]
"""Awaited before a failed call is repeated."""

# Concurrent calls of an endpoint; a 429 halves them.
_WIDTH = 64
_UNCOUNTED = MostTokens(0)


class LiveModels:
    """Calls real models in one event loop, each endpoint with at most `width` concurrent calls.

    Models that are not in `prices` cost the provider's list price, unless
    `built_in_prices` is off.
    """

    def __init__(
        self,
        prices: Mapping[str, Price] | None = None,
        choices: ModelChoices | None = None,
        environment: Mapping[str, str] = os.environ,
        rules: Rules | None = None,
        width: int = _WIDTH,
        *,
        built_in_prices: bool = True,
    ) -> None:
        self._choices, self._environment = choices or ModelChoices(), environment
        self._mask = self._choices.mask or Masker.of({}, environment).mask_text
        budget, self._shared = self._choices.budget_usd, self._choices.shared
        funds = None if budget is None else Funds(budget, self._choices.spent_usd)
        self._spending = Spending(
            prices or {},
            funds if self._shared is None else self._shared.budget,
            allow_unpriced=self._choices.allow_unpriced,
            built_in=built_in_prices,
            warn=self._choices.warn,
            waiting=self._choices.waiting,
            ends=self._choices.ends,
        )
        self._rules, self._width = rules or Rules(), width
        pace = None if self._shared is None else self._shared.pace
        self._pace = pace or Pace(self._choices.requests_per_minute)
        self._clients = Clients(self._choices)
        self._fits = Fits()
        self._gates: dict[tuple[str, str | None], Gate] = {}
        self._rates: dict[Route, Rates] = {}
        self._recording = RecordedCalls(self._choices.replay) if self._choices.replay else None
        self._recorder = CallRecorder(self._choices.record, self._masked_text) if self._choices.record else None
        self._cache: Cache | None = None
        self._batches: Batches | None = None

    def price(self, model: str) -> Price | None:
        return self._spending.price(model)

    async def chat(self, request: ChatRequest, purpose: Purpose = "judge") -> ChatReply:
        request = writable(request)
        route = route_of(request, self._environment)
        key = key_of(request, at=None)
        with kept_call(request.model, lambda: questions_of(request), self._masked_text) as call:
            reply: ChatReply = await self._recorded_or_live(
                purpose, "chat", key, request, lambda: self._chat(request, route, purpose)
            )
            # the words of a system or a simulated user stay as they are
            answer = _judge_reply(reply) if purpose == "judge" else reply
            call.replied(answer)
        cut_off = is_unfinished(reply.finish_reason) or ends_thinking(reply.text, answer.text)
        if purpose == "judge" and reply.refusal is None and cut_off:
            self.forget(request)
            raise unfinished(answer)
        return answer

    def forget(self, request: ChatRequest) -> None:
        request = writable(request)
        route = route_of(request, self._environment)
        if self._recording is None and (cache := self._cache_for(route)) is not None:
            cache.forget(key_of(request, at=route.base_url or route.interface))

    async def _chat(self, request: ChatRequest, route: Route, purpose: Purpose) -> ChatReply:
        # Only judges' replies are cached: each trial of a system under test must be a new answer.
        cache = self._cache_for(route) if purpose == "judge" else None
        key = key_of(request, at=route.base_url or route.interface)
        cached = None if cache is None else cache.find(key, ChatReply)
        if cached is not None:
            return cached
        if self._choices.batch is not None and purpose == "judge":
            reply = await self._in_batch(key, request, route, self._choices.batch)
        else:
            reply = await self._at_once(request, route, purpose)
        # the same call may get another reply another time
        if cache is not None and reply.refusal is None and not is_unfinished(reply.finish_reason):
            cache.keep(key, reply)
        return reply

    async def _at_once(self, request: ChatRequest, route: Route, purpose: Purpose) -> ChatReply:
        adapts = purpose != "system"
        wanted = self._fits.of(route, request, adapts=adapts).max_tokens
        need = Demand(*likely_tokens(request, wanted))

        async def call(fare: Fare, again: Again) -> ChatReply:
            affordable = fare.token_output if self._spending.has_cap else None
            return await self._retried_call(
                route,
                lambda client: self._fits.chat(client, route, request, adapts=adapts, affordable=affordable),
                self._rules.of(request),
                need,
                _used_tokens,
                again,
            )

        reply = await self._paid_reply(request.model, self._highest_cost(request, route, wanted), call)
        if is_truncated(reply.finish_reason) and reply.limit is not None and reply.limit < (wanted or sys.maxsize):
            raise cut_by_budget(reply, purpose)
        return reply

    def _highest_cost(self, request: ChatRequest, route: Route, wanted: int | None) -> MostTokens:
        if not self._spending.has_cap:
            return _UNCOUNTED
        return most_of(request, ANTHROPIC_TOKENS if wanted is None and route.interface == "anthropic" else wanted)

    async def _in_batch(self, key: str, request: ChatRequest, route: Route, notes: Path) -> ChatReply:
        from evalwright.llm.batches import SHARE_OF_PRICE, Batches

        if self._batches is None:
            self._batches = Batches(notes, self._rules, self._masked_text, self._choices.batch_failed)
        batches, wanted = self._batches, self._fits.of(route, request, adapts=True).max_tokens
        client = await self._clients.of(route)
        if not hasattr(client, "batches"):
            raise CallFailed("bad_request", f"{route.model!r} does not support batches: leave out --batch")

        async def call(fare: Fare, _: Again) -> ChatReply:
            affordable = fare.token_output if self._spending.has_cap else None
            fit = self._fits.of(route, request, adapts=True, affordable=affordable)
            body = await batches.ask(key, client.batches, client.batch_question(route.model, request, fit))
            reply: ChatReply = client.batch_reply(route.model, body, fit)
            return msgspec.structs.replace(
                reply, reply_format=fit.reply_format, left_out=[*fit.left_out], limit=fit.max_tokens
            )

        return await self._paid_reply(request.model, self._highest_cost(request, route, wanted), call, SHARE_OF_PRICE)

    async def _paid_reply(
        self, model: str, most: MostTokens, call: Callable[[Fare, Again], Awaitable[P]], share: float = 1.0
    ) -> P:
        """The reply with its cost, at a share of the list price; the most that it can cost is reserved first."""
        fare = await self._spending.reserve(model, most, share)

        async def again(failure: CallFailed) -> None:
            nonlocal fare
            fare = await self._spending.again(fare, failure)

        try:
            reply = await call(fare, again)
        except BaseException as failure:  # a cancelled call, too, must not keep its reservation
            self._spending.release(fare, failure)
            raise
        cost = self._spending.cost(model, reply.usage, share)
        self._spending.settle(fare, cost, reply.usage)
        return msgspec.structs.replace(reply, cost_usd=cost)

    async def embed(self, request: EmbeddingRequest, purpose: Purpose = "judge") -> Embedding:
        question = writable(
            ChatRequest(
                request.model,
                [ChatMessage("user", list(request.texts))],
                tool_choice="embed",
                base_url=request.base_url,
                api_key_env=request.api_key_env,
            )
        )
        route = route_of(question, self._environment)

        def call(_: Fare, again: Again) -> Awaitable[Embedding]:
            return self._retried_call(
                route,
                lambda client: method_of(client, "embed", route)(route.model, question.messages[0].content),
                again=again,
            )

        async def live() -> Embedding:
            cache = self._cache_for(route) if purpose == "judge" else None
            key = key_of(question, at=route.base_url or route.interface)
            cached = None if cache is None else cache.find(key, Embedding)
            if cached is not None:
                return cached
            embedding: Embedding = await self._paid_reply(request.model, most_of(question, 0), call)
            if cache is not None:
                cache.keep(key, embedding)
            return embedding

        embedding: Embedding = await self._recorded_or_live(purpose, "embed", key_of(question, at=None), question, live)
        return embedding

    async def moderate(
        self, model: str, text: str, base_url: str | None = None, api_key_env: str | None = None
    ) -> Moderation:
        messages = [ChatMessage("user", text)]
        request = writable(
            ChatRequest(model, messages, tool_choice="moderate", base_url=base_url, api_key_env=api_key_env)
        )
        route = route_of(request, self._environment)
        moderation: Moderation = await self._recorded_or_live(
            "judge",
            "moderate",
            key_of(request, at=None),
            request,
            lambda: self._retried_call(
                route, lambda client: method_of(client, "moderate", route)(route.model, request.messages[0].content)
            ),
        )
        return moderation

    async def close(self) -> None:
        """Close connections and files."""
        if self._batches is not None:
            await self._batches.close()
            self._batches = None
        await self._clients.close()
        for file in (self._cache, self._recorder):
            if file is not None:
                file.close()
        self._cache = None

    async def _recorded_or_live(
        self, purpose: Purpose, kind: str, key: str, request: ChatRequest, live: Callable[[], Awaitable[Any]]
    ) -> Any:
        """The recorded reply if there is a recording, else the live one, which is recorded if the user wants it."""
        try:
            reply = await live() if self._recording is None else self._recording.find(key, request)
        except CallFailed as failure:
            raise error_for(purpose, failure, self._masked_text(str(failure))) from None
        if self._recorder is not None:
            self._recorder.keep(key, kind, request, reply)
        return reply

    def _masked_text(self, text: str) -> str:
        """The text without the run's secrets and without the models' keys, whatever their variables are called."""
        for key in self._clients.keys:
            text = masked_in(text, key)
        return self._mask(text)

    async def _retried_call(
        self,
        route: Route,
        call: Callable[[Any], Awaitable[T]],
        rules: Rules | None = None,
        need: Demand = NOTHING,
        used: Callable[[T], Demand] | None = None,
        again: Again | None = None,
    ) -> T:
        client = await self._clients.of(route)
        # One gate for all models and keys of an endpoint: as far as a client can tell, a 429 is about the endpoint.
        # Limits per minute in headers are about one model and key.
        gate = self._gates.setdefault((route.interface, route.base_url), Gate(self._width))
        rates = self._rates.get(route) or self._new_rates(route)
        return await retried(lambda: call(client), gate, self._pace, rules or self._rules, rates, need, used, again)

    def _new_rates(self, route: Route) -> Rates:
        rates = self._rates[route] = Rates()
        if self._shared is not None:
            rates.on_pause = self._shared.shared(f"{route.interface} {route.base_url} {route.model}", rates.wait)
        return rates

    def _cache_for(self, route: Route) -> Cache | None:
        """The cache; None if it is off: by choice, or, unless a file is named, for what answers on this machine."""
        # A local server is free of charge, and its model may change under the same name; so may the user's function,
        # and another project's function may have that name, too.
        is_local = route.is_loopback or route.is_function
        if self._choices.no_cache or (is_local and self._choices.cache is None):
            return None
        if self._cache is None:
            try:
                self._cache = Cache(self._choices.cache or user_folder() / default_path().name, self._masked_text)
            except (InputError, OSError):  # a damaged file in the user's cache folder, which this run did not ask for
                if self._choices.cache is not None:
                    raise
                return None
        return self._cache


def _judge_reply(reply: ChatReply) -> ChatReply:
    """The reply without thinking aloud, and without what Anthropic's models say before they refuse: no verdict."""
    return spoken(reply) if reply.refusal is None else msgspec.structs.replace(reply, text="")


def _used_tokens(reply: ChatReply) -> Demand:
    return Demand(reply.usage.token_input or 0, reply.usage.token_output or 0)
