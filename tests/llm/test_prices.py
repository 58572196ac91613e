"""What models cost where a suite says nothing."""

import pytest

from evalwright.llm.budget import Spending
from evalwright.llm.prices import built_in_price, day_of_prices, dollars
from evalwright.model.chat import Usage
from evalwright.model.plan import Price
from llm.models import anthropic, outcomes_of, request
from targets.loopback import reply

MINI, PRO = Price(0.15, 0.6, 0.0, 0.075), Price(1.25, 10.0, 0.0, 0.125)


@pytest.mark.parametrize("prefix", ["", "openai/", "azure/", "openrouter/openai/", "litellm/"])
def test_a_model_has_one_price_under_all_its_names(prefix):
    assert built_in_price(f"{prefix}gpt-4o-mini") == built_in_price(f"{prefix}gpt-4o-mini-2024-07-18") == MINI


@pytest.mark.parametrize("name", ["gpt-4o-minimal", "groq/gpt-4o-mini", "python:m:f", "mine", "", "gpt-4o-mini-2024"])
def test_what_is_not_listed_has_no_price(name):
    assert built_in_price(name) is None


def test_the_prices_have_a_day_and_are_plausible():
    assert day_of_prices().year >= 2026
    assert built_in_price("gemini/gemini-2.5-pro") == built_in_price("google/gemini-2.5-pro") == PRO


def test_cached_input_is_a_part_of_the_input_at_a_price_of_its_own():
    price = Price(10.0, 100.0, 0.0, 1.0, 12.5)
    assert dollars(price, 1_000_000, 0, 600_000, 100_000) == pytest.approx(3.0 + 0.6 + 1.25)
    assert dollars(Price(10.0, 100.0), 1_000_000, 10_000, 600_000, 100_000) == pytest.approx(11.0)


def test_the_price_table_of_a_suite_comes_first_and_evalh_has_no_other():
    assert Spending({"gpt-4o-mini": Price(1.0, 1.0)}, None).price("openai/gpt-4o-mini") == Price(1.0, 1.0)
    assert Spending({}, None).price("gpt-4o-mini") == MINI
    assert Spending({}, None, built_in=False).price("gpt-4o-mini") is None


def test_what_openai_had_in_its_cache_costs_less():
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 800},
        "completion_tokens_details": {"reasoning_tokens": 60},
    }
    message = {"role": "assistant", "content": "yes"}
    body = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}
    (said,), _ = outcomes_of([reply(body, headers=("Content-Type: application/json",))], request(model="gpt-4o-mini"))
    assert said.usage == Usage(1000, 100, 60, 800)
    assert said.cost_usd == pytest.approx((200 * 0.15 + 800 * 0.075 + 100 * 0.6) / 1e6)


def test_what_anthropic_reads_from_its_cache_and_puts_there_is_input_too():
    cached = {"cache_read_input_tokens": 500, "cache_creation_input_tokens": 200}
    (said,), _ = outcomes_of([anthropic("yes", **cached)], request(model="claude-haiku-4-5"))
    assert said.usage == Usage(800, 10, None, 500, 200)
    assert said.cost_usd == pytest.approx((100 * 1 + 500 * 0.1 + 200 * 1.25 + 10 * 5) / 1e6)
