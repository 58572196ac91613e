"""The cost of model calls and a hard limit for it: money is reserved before each call and settled after it.

Without the reservation, calls that run at the same time would each see enough money left, and overspend together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.llm.failures import CallFailed
from evalwright.llm.prices import built_in_price, dollars, price_in
from evalwright.model.chat import ChatMessage, ChatRequest, Usage
from evalwright.model.plan import Price

__all__ = ["Spending", "likely_tokens"]

_BYTES_A_TOKEN = 4
"""Roughly, for English text; only the reservation uses it, the cost itself comes from the reply's counts."""
_TOKENS_AN_IMAGE = 1600
"""Roughly what OpenAI and Anthropic count for a large image, whatever its size in bytes."""
_LIKELY_OUTPUT = 1024
"""Tokens reserved for the reply to a request without `max_tokens`."""
_MAY_BE_BILLED = ("timeout", "connection", "bad_reply")
"""Failures after which the provider may have done the work all the same, and bill it."""


class Spending:
    """US dollars spent and reserved.

    `cap_usd` is the limit, None if there is none. With a limit, calls of a model without a price are rejected.
    `built_in` prices hold for models that are not in `prices`.
    """

    def __init__(
        self,
        prices: Mapping[str, Price],
        cap_usd: float | None,
        *,
        allow_unpriced: bool = False,
        built_in: bool = True,
    ) -> None:
        self._prices, self._cap, self._allow_unpriced = prices, cap_usd, allow_unpriced
        self._built_in = built_in
        self.spent: float = 0.0
        self._reserved = 0.0

    def price(self, model: str) -> Price | None:
        """The price of a model: the suite's, by its name with or without its provider, else the built-in one."""
        return price_in(self._prices, model) or (built_in_price(model) if self._built_in else None)

    def cost(self, model: str, usage: Usage, share: float = 1.0) -> float | None:
        """US dollars of a call at a share of its price; None if the model has none or no tokens were counted."""
        price = self.price(model)
        if price is None or (usage.token_input is None and usage.token_output is None):
            return None
        return share * dollars(
            price,
            usage.token_input or 0,
            usage.token_output or 0,
            usage.token_cached or 0,
            usage.token_cache_write or 0,
        )

    def reserve(self, request: ChatRequest, most_output: int | None = None, share: float = 1.0) -> float:
        """Reserve the likely cost of a call, with at most `most_output` tokens in its reply, at a share of its price.

        Raises CallFailed `cost_limit` or `no_price`.
        """
        price = self.price(request.model)
        if price is None:
            if self._cap is not None and not self._allow_unpriced:
                message = (
                    f"{request.model!r} has no price, but there is a budget: add a price, or allow unpriced models"
                )
                raise CallFailed("no_price", message)
            return 0.0
        estimate = share * dollars(price, *likely_tokens(request, most_output))
        if self._cap is not None and self.spent + self._reserved + estimate > self._cap:
            used = f"${self.spent:.4f} spent and ${self._reserved:.4f} reserved of ${self._cap:.4f}"
            raise CallFailed("cost_limit", f"budget: {used}; a call of about ${estimate:.4f} would exceed it")
        self._reserved += estimate
        return estimate

    def settle(self, reserved: float, cost: float | None) -> None:
        """Replace the reservation by the cost of the finished call; if that is unknown (None), it counts in full."""
        self._reserved -= reserved
        self.spent += reserved if cost is None else cost

    def release(self, reserved: float, failure: BaseException) -> None:
        """Settle a failed call: it cost nothing if it was rejected, and counts in full if that is not certain."""
        refused = isinstance(failure, CallFailed) and failure.kind not in _MAY_BE_BILLED
        self.settle(reserved, 0.0 if refused else None)


def likely_tokens(request: ChatRequest, most_output: int | None = None) -> tuple[int, int]:
    """About how many tokens a call takes and gives, with at most `most_output`, else the request's own limit."""
    tokens = -(-_bytes(request.messages, request.system) // _BYTES_A_TOKEN)
    most_output = request.max_tokens if most_output is None else most_output
    return tokens, _LIKELY_OUTPUT if most_output is None else most_output


def _bytes(messages: Sequence[ChatMessage], system: str | None) -> int:
    contents = (message.content for message in messages)
    parts = [part for content in contents for part in (content if isinstance(content, list) else [content])]
    return sum(map(_bytes_of, [system or "", *parts]))


def _bytes_of(part: Any) -> int:
    if isinstance(part, dict) and part.get("type") in ("image", "image_url"):
        return _TOKENS_AN_IMAGE * _BYTES_A_TOKEN
    return len(str(part).encode(errors="replace"))
