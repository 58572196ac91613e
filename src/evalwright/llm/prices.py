"""What models cost if a suite has no price table: the providers' list prices, and their date.

`prices.json` has US dollars per million tokens as litellm 1.106.2 lists them (github.com/BerriAI/litellm, MIT), by the
provider's own name of a model, with the provider as a prefix except for OpenAI and Anthropic. `cached` is input read
from the provider's cache, `cache_write` input written to it; without them, both cost the same as other input. Thinking
is priced as output. Discounts, long prompts and priority tiers are not included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path

import msgspec

from evalwright.model.plan import Price

__all__ = ["built_in_price", "day_of_prices", "dollars", "most_dollars", "price_in"]

_ALIASES = {"gemini": "google"}
_PLAIN = ("openai", "anthropic", "azure")
"""Providers whose models are listed by their bare names. Azure charges the same as OpenAI."""
_DATED = re.compile(r"(.+)-(\d{8}|\d{4}-\d{2}-\d{2}|latest)")
_MILLION = 1_000_000


class _Row(msgspec.Struct):
    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None


class _Table(msgspec.Struct):
    day: date
    models: dict[str, _Row]


@cache
def _table() -> _Table:
    return msgspec.json.decode(Path(__file__).with_name("prices.json").read_bytes(), type=_Table)


def day_of_prices() -> date:
    return _table().day


@cache
def built_in_price(model: str) -> Price | None:
    """The list price of a model by any name that can be used for it; None if it is not listed.

    A snapshot (`gpt-4o-2024-08-06`, `claude-haiku-4-5-20251001`) costs the same as its model.
    """
    provider, slash, rest = model.removeprefix("litellm/").partition("/")
    provider = _ALIASES.get(provider, provider)
    if slash and provider == "openrouter":  # OpenRouter passes on the provider's prices
        return built_in_price(rest)
    name = rest if slash and provider in _PLAIN else f"{provider}{slash}{rest}"
    models = _table().models
    dated = _DATED.fullmatch(name)
    row = models.get(name) or (models.get(dated[1]) if dated else None)
    return None if row is None else Price(row.input, row.output, 0.0, row.cached, row.cache_write)


def price_in(prices: Mapping[str, Price], model: str) -> Price | None:
    """The price of a model in the user's table, by its name with or without its provider."""
    return prices.get(model) or prices.get(model.partition("/")[2])


def dollars(price: Price, token_input: int, token_output: int, cached: int = 0, cache_write: int = 0) -> float:
    """US dollars of these tokens; cached and newly cached ones are part of the input."""
    fresh, read, written = (
        price.input_per_million_tokens,
        price.cached_input_per_million_tokens,
        price.cache_write_per_million_tokens,
    )
    total = max(0, token_input - cached - cache_write) * fresh
    total += cached * (fresh if read is None else read) + cache_write * (fresh if written is None else written)
    return (total + token_output * price.output_per_million_tokens) / _MILLION


def most_dollars(price: Price, token_input: int, token_output: int) -> float:
    """The most that these tokens may cost: all input at its highest price."""
    fresh = price.input_per_million_tokens
    others = (price.cached_input_per_million_tokens, price.cache_write_per_million_tokens)
    dearest = max(fresh, *(fresh if cached is None else cached for cached in others))
    return (token_input * dearest + token_output * price.output_per_million_tokens) / _MILLION
