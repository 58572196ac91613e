"""The cost of model calls and a hard limit for it: money is reserved before each call and settled after it.

A call reserves the most that it can cost: a token for each byte that is sent, which is more than any tokenizer
produces, and a reply as long as its token limit allows. Calls that do not fit beside those under way wait for them, in
the order in which they came. So no number of concurrent calls can spend more than there is.
"""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from evalwright.errors import UnsentCall, counted, money
from evalwright.llm.failures import CallFailed
from evalwright.llm.funds import Funds
from evalwright.llm.patience import standing_still
from evalwright.llm.prices import built_in_price, dollars, most_dollars, price_in
from evalwright.llm.token_estimates import MostTokens
from evalwright.model.chat import Usage
from evalwright.model.plan import Price

__all__ = ["Fare", "Spending"]

_MAY_BE_BILLED = ("timeout", "connection", "bad_reply")
"""Failures after which the provider may nevertheless have done the work, and charge for it."""
_PICO = 10**12
"""Money is counted in whole picodollars: sums of fractions would not be exact, and limits would be missed."""


class Fare(NamedTuple):
    """The money that is reserved for one call, and the limit of each reply that it pays for."""

    model: str
    most: MostTokens
    token_output: int
    share: float = 1.0
    pico: int = 0
    number: int = 0
    """0: nothing had to be reserved."""


class _WaitingCall(NamedTuple):
    model: str
    price: Price
    most: MostTokens
    share: float
    turn: asyncio.Future[Fare]


class Spending:
    """US dollars spent and reserved, in one event loop.

    `funds` are what may be spent; None if there is no limit, and then nothing is counted. With a limit, calls of a
    model without a price are rejected. `built_in` prices apply to models that are not in `prices`. `warn` is called,
    once for each model, about calls that cost more than they could and about those of unknown cost; and once when calls
    wait for each other. `waiting` is called with the number of waiting calls. Once the run `ends`, calls that would
    have to wait are not made.
    """

    def __init__(
        self,
        prices: Mapping[str, Price],
        funds: Funds | None,
        *,
        allow_unpriced: bool = False,
        built_in: bool = True,
        warn: Callable[[str], None] = lambda _: None,
        waiting: Callable[[int], None] = lambda _: None,
        ends: Callable[[], bool] = lambda: False,
    ) -> None:
        self._prices, self._allow_unpriced, self._built_in = prices, allow_unpriced, built_in
        self._funds = funds
        self._warn, self._warned = warn, set[tuple[str, str]]()
        self._note_waiting, self._ends = waiting, ends
        self._spent, self._set_aside, self._number = 0 if funds is None else _pico(funds.spent), 0, 0
        self._under_way: set[int] = set()
        self._waiting: deque[_WaitingCall] = deque()
        self._counted: dict[str, float] = {}
        """How many tokens a model counted for each of ours, if more than one."""
        self._asking: asyncio.Task[None] | None = None
        """Gets more money; the waiting calls are looked at again after that."""

    @property
    def spent(self) -> float:
        return self._spent / _PICO

    @property
    def has_cap(self) -> bool:
        return self._funds is not None

    def price(self, model: str) -> Price | None:
        """The price of a model: the suite's, by the model's name with or without its provider, else the built-in
        one."""
        return price_in(self._prices, model) or (built_in_price(model) if self._built_in else None)

    def cost(self, model: str, usage: Usage, share: float = 1.0) -> float | None:
        """US dollars of a call at a share of its price; None if the model has no price or tokens were not counted."""
        price = self.price(model)
        if price is None:
            return None
        lacks_input, lacks_output = usage.token_input is None, usage.token_output is None
        if (lacks_input and lacks_output) or most_dollars(price, lacks_input, lacks_output):
            if most_dollars(price, 1, 1):
                self._warn_once(
                    "unknown", model, f"the cost of calls of {model!r} is unknown: its replies do not count tokens"
                )
            return None
        return share * dollars(
            price,
            usage.token_input or 0,
            usage.token_output or 0,
            usage.token_cached or 0,
            usage.token_cache_write or 0,
        )

    async def reserve(self, model: str, most: MostTokens, share: float = 1.0) -> Fare:
        """Reserve what a call may cost at a share of its price; waits while other calls under way hold the money.

        Raises CallFailed `no_price`, or `cost_limit` if the money would not suffice even without them; Unsent if it
        would have to wait while the run ends.
        """
        price = self.price(model)
        if self._funds is not None and price is None and not self._allow_unpriced:
            message = f"{model!r} has no price, but there is a budget: add a price, or allow unpriced models"
            raise CallFailed("no_price", message)
        if self._funds is None or price is None:
            return Fare(model, most, most.token_output, share)
        turn: asyncio.Future[Fare] = asyncio.get_running_loop().create_future()
        if self._ends():  # those already waiting would be let in before this one
            self._dismiss()
        self._waiting.append(_WaitingCall(model, price, most, share, turn))
        self._admit(self._funds)
        if self._ends():
            self._dismiss()
        if turn.done():
            return turn.result()
        try:
            with standing_still():
                return await turn
        except asyncio.CancelledError:
            # the money was reserved before the cancellation arrived
            if not turn.cancelled() and turn.exception() is None:
                self._end(turn.result())
            self._admit(self._funds)  # those behind it may fit although it did not
            raise

    def settle(self, fare: Fare, cost: float | None, usage: Usage | None = None) -> None:
        """Replace the reservation by the cost of the finished call; if that is unknown (None), the reservation counts
        in full."""
        if self._funds is not None and fare.number in self._under_way:
            self._spent += fare.pico if cost is None else _pico(cost)
            self._funds.spent = self.spent
            if usage is not None:
                self._learn(fare, usage)
            self._end(fare)

    def release(self, fare: Fare, failure: BaseException) -> None:
        """Settle a failed call: it cost nothing if it was rejected, and counts in full if that is not certain."""
        self.settle(fare, None if _may_be_billed(failure) else 0.0)

    async def again(self, fare: Fare, failure: CallFailed) -> Fare:
        """The fare of a failed call that is about to be repeated: what its failure may have cost counts as spent.

        Raises CallFailed `cost_limit` if no money is left for it; nothing is reserved then.
        """
        if fare.number not in self._under_way or not _may_be_billed(failure):
            return fare
        self.settle(fare, None)
        limit = fare.token_output
        try:
            most = fare.most._replace(token_output=limit, least_output=limit)
            return await self.reserve(fare.model, most, fare.share)
        except CallFailed as refusal:
            raise CallFailed(refusal.kind, f"{refusal}, after {failure}") from failure

    def _admit(self, funds: Funds) -> None:
        """Give the waiting calls what they need, in their order, as far as the money goes."""
        while self._waiting:
            call = self._waiting[0]
            if not call.turn.done():  # otherwise its call was cancelled while it waited
                fare = self._fare(call, funds)
                if fare is None:
                    break
                if isinstance(fare, CallFailed):
                    call.turn.set_exception(fare)
                else:
                    self._under_way.add(fare.number)
                    self._set_aside += fare.pico
                    call.turn.set_result(fare)
            self._waiting.popleft()
        self._note_waiting(len(self._waiting))

    def _dismiss(self) -> None:
        """Give up all waiting calls: no part of them was sent."""
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            if not call.turn.done():
                call.turn.set_exception(UnsentCall())
        self._note_waiting(0)

    def _fare(self, call: _WaitingCall, funds: Funds) -> Fare | CallFailed | None:
        """The reservation for a call, why it cannot be made, or None while the money that it needs may still come."""
        unspent, tokens = _pico(funds.granted) - self._spent, call.most.token_output
        room = unspent - self._set_aside
        least, most = (self._most_pico(call, limit) for limit in (call.most.least_output, tokens))
        lacking = max(least - unspent, 0 if self._under_way else most - room)
        if most > room and self._may_get_more(funds, lacking, most - room):
            return None
        if least > unspent:
            used = f"{money(self.spent)} spent of {funds}"
            taken = f"{call.most.token_input:,} tokens in, {call.most.choices * call.most.least_output:,} out"
            wanted = f"a call of up to {money(least / _PICO)} ({taken})"
            return CallFailed("cost_limit", f"budget: {used}; {wanted} would exceed it")
        if most > room:
            if self._under_way:
                return None
            # Nothing is left to wait for: a default limit is lowered to what the money pays for.
            tokens = bisect_right(range(tokens), room, key=lambda n: self._most_pico(call, n)) - 1
        self._number += 1
        return Fare(call.model, call.most, tokens, call.share, self._most_pico(call, tokens), self._number)

    def _may_get_more(self, funds: Funds, least: int, wanted: int) -> bool:
        """Whether more money may come; the waiting calls are then looked at again."""
        asking = funds.more(least / _PICO, wanted / _PICO)
        if asking is not None and asking is not self._asking:
            self._asking = asking
            asking.add_done_callback(lambda _: self._continue(funds))
        return asking is not None

    def _continue(self, funds: Funds) -> None:
        if self._ends():
            self._dismiss()
        else:
            self._admit(funds)

    def _most_pico(self, call: _WaitingCall, token_output: int) -> int:
        token_input = math.ceil(call.most.token_input * self._counted.get(call.model, 1))
        return _pico(call.share * most_dollars(call.price, token_input, call.most.choices * token_output))

    def _learn(self, fare: Fare, usage: Usage) -> None:
        """Learn from a reply that used more than it should: its server counts differently, or ignores the limit."""
        was, actual = fare.most.token_input, usage.token_input or 0
        over = []
        if actual > was * self._counted.get(fare.model, 1):
            self._counted[fare.model] = actual / max(1, was)
            over.append(f"it counted {actual:,} tokens of input, expected at most {was:,}")
        if (usage.token_output or 0) > (limit := fare.most.choices * fare.token_output):
            over.append(f"its reply has {usage.token_output:,} tokens, its limit was {limit:,}")
        if over:
            message = f"the budget may be exceeded by calls of {fare.model!r}: {', and '.join(over)}"
            self._warn_once("exceeded", fare.model, message)

    def _warn_once(self, what: str, model: str, message: str) -> None:
        """Warn of something about a model, once."""
        if (what, model) not in self._warned:
            self._warned.add((what, model))
            self._warn(message)

    def _end(self, fare: Fare) -> None:
        self._under_way.discard(fare.number)
        self._set_aside -= fare.pico
        if self._funds is not None:
            self._continue(self._funds)
            self._explain()

    def _explain(self) -> None:
        """Explain, once, that calls are made a few at a time although a limit on their replies would allow more."""
        if len(self._waiting) <= len(self._under_way):
            return
        call = self._waiting[0]
        if call.most.least_output < call.most.token_output:
            each = money(self._most_pico(call, call.most.token_output) / _PICO)
            why = f"one of {call.model!r} may cost {each}: a smaller `max_tokens` lets more be made at a time"
            many = f"budget: {counted(len(self._waiting), 'call')} waited for {len(self._under_way)} under way, as"
            self._warn_once("waiting", "", f"{many} {why}")


def _pico(amount: float) -> int:
    return round(amount * _PICO)


def _may_be_billed(failure: BaseException) -> bool:
    if isinstance(failure, CallFailed):
        return failure.arrived and failure.kind in _MAY_BE_BILLED
    return not isinstance(failure, UnsentCall)
